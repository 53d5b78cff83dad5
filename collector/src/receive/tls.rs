//! TLS on the OTLP ports, from files in PEM.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// The files that TLS on the OTLP ports needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that lead to its authority, in PEM.
    pub certificate: PathBuf,
    /// The certificate's private key, in PEM.
    pub key: PathBuf,
    /// Certificates of the authorities that senders must have theirs from, in PEM; `None` lets
    /// in senders without one.
    pub client_ca: Option<PathBuf>,
}

/// Why TLS cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not what it should be.
    #[error("cannot read {what} from {}: {source}", path.display())]
    File {
        /// What was to be in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// There are no certificates in the file.
    #[error("there is no certificate in {}", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The certificates of the senders' authorities cannot be used.
    #[error("the client authorities in {} cannot be used: {source}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Certificate and key cannot be used together.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// TLS for the two ports, which differ in the protocols they offer.
#[derive(Clone)]
pub(crate) struct Acceptors {
    /// For gRPC: HTTP/2 alone.
    pub(crate) grpc: TlsAcceptor,
    /// For HTTP: either version.
    pub(crate) http: TlsAcceptor,
}

impl std::fmt::Debug for Acceptors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acceptors").finish_non_exhaustive()
    }
}

impl Acceptors {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] says which file or what of it.
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let authorities = Arc::new(authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider)
                    .build()
                    .map_err(|error| unusable(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|source| TlsError::File {
            what: "a private key",
            path: files.key.clone(),
            source,
        })?;
        let config = builder.with_single_cert(certificates(&files.certificate)?, key)?;
        let offering = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            TlsAcceptor::from(Arc::new(config))
        };
        Ok(Self {
            grpc: offering(&[b"h2"]),
            http: offering(&[b"h2", b"http/1.1"]),
        })
    }
}

/// All certificates of a file.
///
/// # Errors
/// [`TlsError`] when it cannot be read or there is none.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |source| TlsError::File {
        what: "certificates",
        path: path.to_owned(),
        source,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable)?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate {
            path: path.to_owned(),
        });
    }
    Ok(certificates)
}

/// The certificates of a file as authorities to trust.
///
/// # Errors
/// [`TlsError`] when one of them cannot be used as such.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store
            .add(certificate)
            .map_err(|error| unusable(path, error))?;
    }
    Ok(store)
}

fn unusable(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> TlsError {
    TlsError::Authorities {
        path: path.to_owned(),
        source: Box::new(error),
    }
}
