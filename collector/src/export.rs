//! Sending on over OTLP: every span that is received, as it came, and with it what the proxy saw
//! and what was found out, as further spans of the same trace.
//!
//! Nothing waits for the backend: what it does not take is kept up to a number of bytes, and
//! beyond that left out and counted.

mod backend;
mod metrics_push;
mod open_metrics;
mod queue;
mod shipping;
mod span_ids;
pub(crate) mod write_back;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

use self::backend::Backend;
pub(crate) use self::queue::{ExportQueue, Origin};
use crate::https_client::ClientError;
use crate::metrics::Metrics;

/// Where spans are sent on to. [`ExportConfig::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct ExportConfig {
    /// The backend. Over HTTP `/v1/traces` is added to the path unless it ends so.
    pub url: Url,
    /// How to speak to it.
    pub protocol: ExportProtocol,
    /// Headers sent with every request, such as the backend's key.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Certificates of the authorities to trust over `https`, in PEM; those the system trusts by
    /// default.
    pub authorities: Option<PathBuf>,
    /// Bytes that may wait for the backend; 64 MiB by default.
    pub most_queued_bytes: usize,
    /// How often to push the collector's own metrics there; never by default.
    pub metrics_every: Option<Duration>,
    /// Whether to add spans of what was found out to each trace; so by default.
    pub write_back: bool,
}

/// How OTLP travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportProtocol {
    /// gRPC.
    Grpc,
    /// Protobuf over HTTP.
    Http,
}

impl ExportConfig {
    /// The defaults for `url`: port 4318 or a path mean HTTP, anything else gRPC.
    #[must_use]
    pub fn new(url: Url) -> Self {
        let has_path = !matches!(url.path(), "" | "/");
        let protocol = if url.port() == Some(4318) || has_path {
            ExportProtocol::Http
        } else {
            ExportProtocol::Grpc
        };
        Self {
            url,
            protocol,
            headers: Vec::new(),
            authorities: None,
            most_queued_bytes: 64 << 20,
            metrics_every: None,
            write_back: true,
        }
    }
}

/// Why nothing can be sent on.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It is no address of a backend.
    #[error("write it as http://host:port or https://host:port")]
    Url,
    /// It is the address this collector receives on.
    #[error("that is where this collector receives, so every span would come back for ever")]
    Itself,
    /// No connection could ever be made.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// What sends on, ready to be started.
#[derive(Debug)]
pub(crate) struct Exporter {
    backend: Backend,
    most_queued_bytes: usize,
    metrics_every: Option<Duration>,
}

impl Exporter {
    /// An exporter that connects when there is something to send.
    ///
    /// # Errors
    /// [`ExportError`], when the settings cannot be used.
    pub(crate) fn new(config: &ExportConfig) -> Result<Self, ExportError> {
        Ok(Self {
            backend: Backend::new(config)?,
            most_queued_bytes: config.most_queued_bytes,
            metrics_every: config.metrics_every,
        })
    }

    /// Starts to send. The task ends when `stopping` is cancelled, every clone of the queue is
    /// dropped and it is empty.
    pub(crate) fn start(
        self,
        metrics: &Arc<Metrics>,
        stopping: CancellationToken,
    ) -> (ExportQueue, JoinHandle<()>) {
        let metrics = Arc::clone(metrics);
        let counts = metrics.export.clone();
        let (queue, waiting) = queue::new(self.most_queued_bytes, counts.clone());
        let task = tokio::spawn(async move {
            let pushing = async {
                if let Some(every) = self.metrics_every {
                    metrics_push::push(&self.backend, &metrics, every, stopping).await;
                }
            };
            tokio::join!(shipping::ship(&self.backend, waiting, counts), pushing);
        });
        (queue, task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_told_by_port_and_path() {
        for (url, protocol) in [
            ("http://127.0.0.1:4317", ExportProtocol::Grpc),
            ("https://backend.example", ExportProtocol::Grpc),
            ("http://127.0.0.1:4318", ExportProtocol::Http),
            ("http://127.0.0.1:9000/v1/traces", ExportProtocol::Http),
            ("https://backend.example/otlp", ExportProtocol::Http),
        ] {
            let config = ExportConfig::new(url.parse().unwrap());
            assert_eq!(config.protocol, protocol, "{url}");
        }
    }
}
