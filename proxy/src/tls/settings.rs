//! From certificate files to what TLS connections are made with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::sync::OnceCell;

/// The protocols that are offered and accepted inside TLS, as their names are registered.
const HTTP_1_1: &[u8] = b"http/1.1";
pub(super) const HTTP_2: &[u8] = b"h2";

/// Which versions of HTTP a server is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only.
    Http2,
    /// Both, HTTP/2 rather; the server chooses.
    Either,
}

impl Offer {
    fn protocols(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![HTTP_1_1.to_vec()],
            Self::Http2 => vec![HTTP_2.to_vec()],
            Self::Either => vec![HTTP_2.to_vec(), HTTP_1_1.to_vec()],
        }
    }
}

/// How the proxy speaks TLS to servers and clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// What the proxy shows to its clients; with it, it speaks TLS to all of them.
    pub server: Option<Identity>,
    /// Certificates (PEM) that servers may be signed with, besides those the system trusts.
    pub upstream_ca: Option<PathBuf>,
    /// What the proxy shows to servers that ask for a client certificate.
    pub upstream_identity: Option<Identity>,
}

/// A certificate with its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate and what links it to a root, in that order (PEM).
    pub certificates: PathBuf,
    /// The private key (PEM: PKCS#8, PKCS#1 or SEC1).
    pub key: PathBuf,
}

/// Why TLS cannot be spoken as it is set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file that cannot be used.
    #[error("{} cannot be read as PEM; give a readable file with {wanted}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        wanted: &'static str,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// A file without what it should hold.
    #[error("{} holds no {wanted}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        wanted: &'static str,
    },
    /// A certificate and a key that cannot be used, or not together.
    #[error("{} cannot be used with its key", path.display())]
    Identity {
        /// The file with the certificate.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// No certificate to trust.
    #[error("the system trusts no certificate at all; name some with --upstream-ca")]
    NoRoots,
    /// The files could not be read to the end.
    #[error("loading certificates was given up")]
    GivenUp,
    /// The library refuses its own usual settings.
    #[error("TLS cannot be set up")]
    Library(#[from] rustls::Error),
}

/// What connections to servers are made with, loaded when first needed.
#[derive(Debug)]
pub(crate) struct Clients {
    settings: TlsSettings,
    configs: OnceCell<Configs>,
}

/// One for each offer.
#[derive(Clone, Debug)]
struct Configs {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    either: Arc<ClientConfig>,
}

impl Configs {
    fn new(config: &ClientConfig) -> Self {
        let offering = |offer: Offer| {
            let mut config = config.clone();
            config.alpn_protocols = offer.protocols();
            Arc::new(config)
        };
        Self {
            http1: offering(Offer::Http1),
            http2: offering(Offer::Http2),
            either: offering(Offer::Either),
        }
    }
}

impl Clients {
    pub(crate) fn new(settings: TlsSettings) -> Self {
        Self {
            settings,
            configs: OnceCell::new(),
        }
    }

    /// The settings of every connection to a server that is offered this.
    ///
    /// # Errors
    /// A file cannot be used.
    pub(crate) async fn config(&self, offer: Offer) -> Result<Arc<ClientConfig>, TlsError> {
        let load = || async {
            let settings = self.settings.clone();
            let loading = tokio::task::spawn_blocking(move || client_config(&settings));
            loading
                .await
                .unwrap_or(Err(TlsError::GivenUp))
                .map(|config| Configs::new(&config))
        };
        let configs = self.configs.get_or_try_init(load).await?;
        Ok(Arc::clone(match offer {
            Offer::Http1 => &configs.http1,
            Offer::Http2 => &configs.http2,
            Offer::Either => &configs.either,
        }))
    }
}

/// What connections from clients are made with.
///
/// # Errors
/// A file cannot be used.
pub(crate) fn server_config(identity: &Identity) -> Result<ServerConfig, TlsError> {
    let (certificates, key) = load(identity)?;
    server_config_of(certificates, key).map_err(|source| TlsError::Identity {
        path: identity.certificates.clone(),
        source,
    })
}

/// What connections are made with from clients that are shown these certificates.
///
/// # Errors
/// The key does not belong to the first of them.
pub(crate) fn server_config_of(
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.alpn_protocols = Offer::Either.protocols();
    Ok(config)
}

fn client_config(settings: &TlsSettings) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in system.errors {
        tracing::warn!(error = %error, "certificate of the system not loaded");
    }
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = &settings.upstream_ca {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|source| TlsError::Identity {
                    path: path.clone(),
                    source,
                })?;
        }
    }
    if roots.is_empty() {
        return Err(TlsError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match &settings.upstream_identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (certificates, key) = load(identity)?;
            let path = || identity.certificates.clone();
            builder
                .with_client_auth_cert(certificates, key)
                .map_err(|source| TlsError::Identity {
                    path: path(),
                    source,
                })?
        }
    };
    Ok(config)
}

type Loaded = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn load(identity: &Identity) -> Result<Loaded, TlsError> {
    let key = PrivateKeyDer::from_pem_file(&identity.key).map_err(|source| TlsError::File {
        path: identity.key.clone(),
        wanted: "a private key",
        source,
    })?;
    Ok((certificates(&identity.certificates)?, key))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wanted = "certificates";
    let unreadable = |source| TlsError::File {
        path: path.to_owned(),
        wanted,
        source,
    };
    let found = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(unreadable)?;
    if found.is_empty() {
        return Err(TlsError::Empty {
            path: path.to_owned(),
            wanted,
        });
    }
    Ok(found)
}
