//! An authority for the servers, and a certificate for `localhost`.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;

/// Files in PEM.
pub(super) struct Certificates(TempDir);

impl Certificates {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        // A certificate whose issuer has its own name is taken for a self-signed one.
        let name = (DnType::CommonName, "authority of the matrix");
        params.distinguished_name.push(name.0, name.1);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![String::from("localhost")]).unwrap();
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &authority).unwrap();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        write("roots.pem", authority.pem());
        write("certificate.pem", certificate.pem());
        write("key.pem", key.serialize_pem());
        Self(folder)
    }

    /// What clients of the servers must trust.
    pub(super) fn roots(&self) -> PathBuf {
        self.path("roots.pem")
    }

    pub(super) fn certificate(&self) -> PathBuf {
        self.path("certificate.pem")
    }

    pub(super) fn key(&self) -> PathBuf {
        self.path("key.pem")
    }

    fn path(&self, name: &str) -> PathBuf {
        let folder: &Path = self.0.path();
        folder.join(name)
    }
}
