//! Requests to other programs, over HTTP and HTTPS.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use http_body::Body;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use url::Url;

use crate::receive::tls::{TlsError, authorities};

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client whose connections are kept and made again as needed.
pub(crate) type HttpsClient<B> = Client<HttpsConnector<HttpConnector>, B>;

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The certificates of the authorities to trust cannot be read.
    #[error(transparent)]
    Authorities(#[from] TlsError),
    /// This system has none.
    #[error("no certificates of authorities were found on this system: {0}")]
    NoSystemAuthorities(#[source] std::io::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// A client for `url`.
///
/// Servers are trusted whose certificates come from the authorities in the file `authorities`, or
/// from those the system trusts where there is none. `http2` speaks HTTP/2 alone, from the start.
///
/// # Errors
/// [`ClientError`], when certificates are needed and cannot be had.
pub(crate) fn client<B>(
    url: &Url,
    authorities_file: Option<&PathBuf>,
    http2: bool,
) -> Result<HttpsClient<B>, ClientError>
where
    B: Body<Data: Buf + Send> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let tls = match authorities_file {
        Some(path) => tls.with_root_certificates(authorities(path)?),
        None if url.scheme() == "https" => tls
            .with_native_roots()
            .map_err(ClientError::NoSystemAuthorities)?,
        None => tls.with_root_certificates(RootCertStore::empty()),
    };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls.with_no_client_auth())
        .https_or_http();
    let connector = if http2 {
        connector.enable_http2().wrap_connector(tcp)
    } else {
        connector.enable_all_versions().wrap_connector(tcp)
    };
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .http2_only(http2)
        .build(connector))
}
