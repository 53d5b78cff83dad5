//! Certificates for tests, and TLS round a socket.

use std::cell::RefCell;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use skewtap_proxy::Config;
use skewtap_proxy::tls::{Identity, TlsSettings};

use crate::harness::{config, nobody};

pub(crate) type Tls<C> = StreamOwned<C, TcpStream>;
pub(crate) type TlsClient = Tls<ClientConnection>;

/// An authority of its own, with files for what reads files.
pub(crate) struct Pki {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
    files: RefCell<u32>,
}

/// A certificate with its key.
pub(crate) struct Issued {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// A client that trusts one authority.
pub(crate) struct Trusting(Arc<ClientConfig>);

impl Pki {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
            folder: tempfile::tempdir().unwrap(),
            files: RefCell::new(0),
        }
    }

    pub(crate) fn root(&self) -> &CertificateDer<'static> {
        self.issuer.der()
    }

    /// A file with the authority's certificate.
    pub(crate) fn roots(&self) -> PathBuf {
        self.file(&self.issuer.pem())
    }

    /// A certificate for `name`.
    pub(crate) fn issue(&self, name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }

    /// Files with a certificate for `name`.
    pub(crate) fn identity(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            certificates: self.file(&certificate.pem()),
            key: self.file(&key.serialize_pem()),
        }
    }

    /// The certificate in the files.
    pub(crate) fn certificate_of(&self, identity: &Identity) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(&identity.certificates).unwrap()
    }

    /// A server for `name`.
    pub(crate) fn server_config(&self, name: &str) -> ServerConfig {
        let Issued { chain, key } = self.issue(name);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap()
    }

    /// A client that trusts this authority.
    pub(crate) fn trusted(&self) -> Trusting {
        Trusting::new(self.root().clone())
    }

    /// A client that trusts the certificate in `file`.
    pub(crate) fn trusting(file: &Path) -> Trusting {
        Trusting::new(CertificateDer::from_pem_file(file).unwrap())
    }

    fn file(&self, text: &str) -> PathBuf {
        let number = *self.files.borrow();
        *self.files.borrow_mut() = number + 1;
        let path = self.folder.path().join(format!("{number}.pem"));
        fs::write(&path, text).unwrap();
        path
    }
}

impl Trusting {
    /// The client's settings, with these protocols offered.
    pub(crate) fn offering(&self, protocols: &[&str]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.0);
        let bytes = |name: &&str| name.as_bytes().to_vec();
        config.alpn_protocols = protocols.iter().map(bytes).collect();
        Arc::new(config)
    }

    fn new(root: CertificateDer<'static>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self(Arc::new(config))
    }

    pub(crate) fn connect(&self, stream: TcpStream, name: &str) -> TlsClient {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        StreamOwned::new(ClientConnection::new(self.0.clone(), name).unwrap(), stream)
    }
}

/// TLS round a connection to what calls itself `name` and is vouched for by `pki`.
pub(crate) fn tls_client(stream: TcpStream, pki: &Pki, name: &str) -> TlsClient {
    Trusting::new(pki.root().clone()).connect(stream, name)
}

/// A proxy with TLS on both legs, whose upstream is `localhost` at the port of `upstream`.
pub(crate) fn both_legs(upstream: SocketAddr, pki: &Pki) -> Config {
    let url = format!("https://localhost:{}", upstream.port());
    Config {
        upstream: Some(url.parse().unwrap()),
        tls: TlsSettings {
            server: Some(pki.identity("localhost")),
            upstream_ca: Some(pki.roots()),
            ..TlsSettings::default()
        },
        ..config(nobody())
    }
}
