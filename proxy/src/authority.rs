//! The local authority that vouches for the proxy where TLS is intercepted.
//!
//! It is made once, by `skewtap ca init`, and never leaves the machine. Only hosts that are
//! named for it are ever intercepted, and only clients that were told to trust it go along.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::host_pattern::HostPattern;
use crate::tls;

const CERTIFICATE_FILE: &str = "ca.pem";
const KEY_FILE: &str = "ca-key.pem";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const AUTHORITY_LIFE: Duration = Duration::from_secs(2 * 365 * 24 * 60 * 60);
const HOST_LIFE: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Certificates that are made again once they are this old.
const FRESH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Most hosts whose certificates are kept.
const MOST_KEPT: usize = 1_024;

/// Why there is no authority to use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// There is one already.
    #[error("{} is there already; remove it first to make another", .0.display())]
    Exists(PathBuf),
    /// A file could not be written or read.
    #[error("{}: {doing}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} is not what `skewtap ca init` writes", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rcgen::Error,
    },
    /// A certificate could not be made.
    #[error("a certificate could not be made")]
    Certificate(#[from] rcgen::Error),
    /// A certificate that was made cannot be used.
    #[error("a certificate that was made cannot be used")]
    Tls(#[from] rustls::Error),
}

/// Where an authority's certificate is kept below `folder`.
#[must_use]
pub fn certificate_file(folder: &Path) -> PathBuf {
    folder.join(CERTIFICATE_FILE)
}

/// Makes a new authority in `folder`: a certificate, and a key that only the user can read.
///
/// # Errors
/// There is one already, or it cannot be written.
pub fn create(folder: &Path) -> Result<(), AuthorityError> {
    let file_error = |path: &Path, doing| {
        let path = path.to_owned();
        move |source| AuthorityError::File {
            path,
            doing,
            source,
        }
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(file_error(folder, "cannot make the folder"))?;
    let key = KeyPair::generate()?;
    let certificate = authority_params().self_signed(&key)?;
    for (name, mode, text) in [
        (KEY_FILE, 0o600, key.serialize_pem()),
        (CERTIFICATE_FILE, 0o644, certificate.pem()),
    ] {
        let path = folder.join(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path);
        let mut file = file.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => AuthorityError::Exists(path.clone()),
            _ => file_error(&path, "cannot be written")(source),
        })?;
        file.write_all(text.as_bytes())
            .map_err(file_error(&path, "cannot be written"))?;
    }
    Ok(())
}

/// The authority, with the hosts that it may vouch for.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    hosts: Vec<HostPattern>,
    made: Mutex<HashMap<String, Made>>,
}

/// What clients of one host are shown.
struct Made {
    config: Arc<ServerConfig>,
    at: SystemTime,
}

impl Authority {
    /// Reads the authority in `folder`, for `hosts`: names, or `*.name` for all names below one.
    ///
    /// # Errors
    /// It is not there, or not readable.
    pub(crate) fn load(folder: &Path, hosts: &[String]) -> Result<Self, AuthorityError> {
        let read = |name: &str| {
            let path = folder.join(name);
            let doing = "cannot be read; make an authority with `skewtap ca init`";
            let text = fs::read_to_string(&path);
            let text = text.map_err(|source| AuthorityError::File {
                path: path.clone(),
                doing,
                source,
            })?;
            Ok::<_, AuthorityError>((path, text))
        };
        let (path, key) = read(KEY_FILE)?;
        let content = |source| AuthorityError::Content { path, source };
        let key = KeyPair::from_pem(&key).map_err(content)?;
        let (path, certificate) = read(CERTIFICATE_FILE)?;
        let bad = |source| AuthorityError::Content { path, source };
        let der = CertificateDer::from_pem_slice(certificate.as_bytes());
        let der = der.map_err(|_| rcgen::Error::CouldNotParseCertificate);
        let loaded = der.and_then(|der| Ok((Issuer::from_ca_cert_der(&der, key)?, der)));
        let (issuer, certificate) = loaded.map_err(bad)?;
        Ok(Self {
            issuer,
            certificate,
            hosts: hosts.iter().map(|host| HostPattern::new(host)).collect(),
            made: Mutex::new(HashMap::new()),
        })
    }

    /// Whether it may vouch for `host`.
    pub(crate) fn covers(&self, host: &str) -> bool {
        self.hosts.iter().any(|hosts| hosts.matches(host))
    }

    /// What connections are made with from clients that want to speak to `host`.
    ///
    /// # Errors
    /// The host's name cannot stand in a certificate.
    pub(crate) fn server_config(&self, host: &str) -> Result<Arc<ServerConfig>, AuthorityError> {
        let host = host.to_ascii_lowercase();
        let now = SystemTime::now();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = made.get(&host)
            && now.duration_since(found.at).is_ok_and(|age| age < FRESH)
        {
            return Ok(Arc::clone(&found.config));
        }
        let config = Arc::new(self.make(&host, now)?);
        if made.len() >= MOST_KEPT {
            made.clear();
        }
        let kept = Made {
            config: Arc::clone(&config),
            at: now,
        };
        made.insert(host, kept);
        Ok(config)
    }

    fn make(&self, host: &str, now: SystemTime) -> Result<ServerConfig, AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![host.to_owned()])?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "skewtap");
        params.not_before = (now - DAY).into();
        params.not_after = (now + HOST_LIFE).into();
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer)?;
        let chain = vec![certificate.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der());
        let key = key.map_err(|why| rustls::Error::General(why.to_owned()))?;
        Ok(tls::server_config_of(chain, key)?)
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

fn authority_params() -> CertificateParams {
    let now = SystemTime::now();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    let name = "skewtap development authority";
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = (now - DAY).into();
    params.not_after = (now + AUTHORITY_LIFE).into();
    // It vouches for hosts, not for further authorities.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_key_is_for_the_user_alone_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path()).unwrap();
        let key = folder.path().join(KEY_FILE);
        let mode = fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let before = fs::read(&key).unwrap();
        assert!(matches!(
            create(folder.path()),
            Err(AuthorityError::Exists(path)) if path == key
        ));
        assert_eq!(fs::read(&key).unwrap(), before);
    }

    #[test]
    fn without_an_authority_the_way_to_make_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Authority::load(folder.path(), &[]).unwrap_err();
        assert!(missing.to_string().contains("skewtap ca init"), "{missing}");
    }
}
