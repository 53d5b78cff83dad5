//! Starting and stopping the whole collector.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Host;

use crate::config::Config;
use crate::engine::{Engine, EngineError, Outside};
use crate::export::{ExportConfig, ExportError, Exporter};
use crate::metrics::Metrics;
use crate::onward::Onward;
use crate::receive::bearer_tokens::{BearerTokens, TokenError};
use crate::receive::otlp_http::BodyLimits;
use crate::receive::tls::{Acceptors, TlsError};
use crate::receive::{Intake, otlp_grpc, otlp_http};
use crate::store::{OpenError, Store};
use crate::web::{self, WebState};
use crate::webhook::{Webhook, WebhookError};

/// How long connections may take to finish once the collector is told to stop.
const DRAIN: Duration = Duration::from_secs(5);

/// How long what is to be sent on may take to arrive after that.
const FINISH_SENDING: Duration = Duration::from_secs(3);

/// A collector that has its ports and its store, and can begin to serve.
#[derive(Debug)]
pub struct Collector {
    config: Config,
    otlp_grpc: TcpListener,
    otlp_http: TcpListener,
    http: TcpListener,
    addresses: Addresses,
    tls: Option<Acceptors>,
    tokens: BearerTokens,
    exporter: Option<Exporter>,
    webhook: Option<Webhook>,
    /// The address of the pages, for links.
    pages: String,
    store: Store,
}

/// Where a collector listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// OTLP over gRPC.
    pub otlp_grpc: SocketAddr,
    /// OTLP over HTTP.
    pub otlp_http: SocketAddr,
    /// Pages, API and metrics.
    pub http: SocketAddr,
}

/// Why a collector cannot start, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Something listens on the port already.
    #[error(
        "port {} is taken, so {what} cannot be received on {address}; \
         stop what uses it, or choose another with {flag}", address.port()
    )]
    PortTaken {
        /// What was to be received there.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The flag that changes it.
        flag: &'static str,
    },
    /// The system does not let it listen there.
    #[error("cannot listen on {address} for {what}: {source}; choose another with {flag}")]
    Listen {
        /// What was to be received there.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The flag that changes it.
        flag: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// TLS cannot be had on the OTLP ports.
    #[error(
        "no TLS for OTLP: {0}; give PEM files with --otlp-tls-cert, --otlp-tls-key and \
         --otlp-client-ca, or leave all three out for plain text"
    )]
    Tls(#[from] TlsError),
    /// The file of tokens cannot be used.
    #[error("the tokens in {} cannot be used: {source}; see --otlp-token-file", path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TokenError,
    },
    /// Nothing can be sent on.
    #[error("cannot send spans on to {url}: {source}; see --export-otlp")]
    Export {
        /// The backend, without what may be secret in its address.
        url: String,
        /// What is wrong with it.
        source: ExportError,
    },
    /// Nobody can be told of flagged verdicts.
    #[error("cannot tell {url} of flagged verdicts: {source}; see --webhook")]
    Webhook {
        /// The receiver, without what may be secret in its address.
        url: String,
        /// What is wrong with it.
        source: WebhookError,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// Why a collector stopped although it was not told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The store could not be read at the start.
    #[error("cannot read the store: {0}")]
    Store(#[source] rusqlite::Error),
    /// The system gave no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// Serving the pages failed.
    #[error("serving pages failed: {0}")]
    Web(#[source] io::Error),
    /// A thread ended with a panic.
    #[error("the {0} thread failed; what it said is in the log")]
    Panicked(&'static str),
}

impl From<EngineError> for ServeError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(source) => Self::Store(source),
            EngineError::Thread(source) => Self::Thread(source),
        }
    }
}

impl Collector {
    /// Takes the ports and opens the store. Nothing is received before [`Collector::serve`].
    ///
    /// # Errors
    /// [`StartError`] says which port or what of the store, and what to do.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let otlp_grpc = listen("OTLP over gRPC", "--otlp-grpc", config.otlp_grpc).await?;
        let otlp_http = listen("OTLP over HTTP", "--otlp-http", config.otlp_http).await?;
        let http = listen("requests for pages", "--http", config.http).await?;
        let addresses = Addresses {
            otlp_grpc: otlp_grpc.1,
            otlp_http: otlp_http.1,
            http: http.1,
        };
        let tls = config.otlp_tls.as_ref().map(Acceptors::read).transpose()?;
        let tokens = tokens(&config)?;
        let exporter = exporter(&config, addresses)?;
        let webhook = webhook(&config)?;
        let store = Store::open(&config.store)?;
        Ok(Self {
            otlp_grpc: otlp_grpc.0,
            otlp_http: otlp_http.0,
            http: http.0,
            addresses,
            tls,
            tokens,
            exporter,
            webhook,
            pages: match &config.pages_url {
                Some(url) => url.to_string(),
                None => format!("http://{}/", addresses.http),
            },
            config,
            store,
        })
    }

    /// Where it listens; with the ports that were free where port 0 was asked for.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Receives and serves until `shutdown` is ready; then stops receiving, writes down
    /// what came, and closes the store. Exchanges that are still open go on at the next start.
    ///
    /// # Errors
    /// [`ServeError`] when something failed on the way; what was acknowledged is on disk.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let metrics = Arc::new(Metrics::new(self.config.most_edges));
        let sending_ends = CancellationToken::new();
        let (export, exporting) = self
            .exporter
            .map(|e| e.start(&metrics, sending_ends.clone()))
            .unzip();
        let (webhook, telling) = self.webhook.map(|w| w.start(&metrics)).unzip();
        let write_back = self.config.export.as_ref().is_some_and(|e| e.write_back);
        let outside = Outside {
            addresses: self.addresses,
            metrics,
            tokens: self.tokens,
            onward: Onward {
                write_back: export.clone().filter(|_| write_back),
                webhook,
                pages: self.pages,
            },
            export,
        };
        let engine = Engine::start(self.store, &self.config, outside)?;
        let stop = CancellationToken::new();
        let servers = Servers {
            otlp_grpc: self.otlp_grpc,
            otlp_http: self.otlp_http,
            http: self.http,
            tls: self.tls,
            limits: BodyLimits {
                sent: self.config.most_request_bytes,
                decompressed: self.config.most_decompressed_bytes,
            },
        };
        let receiving = servers.run(engine.intake.clone(), engine.web.clone(), stop.clone());
        let mut serving = Box::pin(receiving);
        let served = tokio::select! {
            failed = &mut serving => failed,
            () = engine.ended.cancelled() => Ok(()),
            () = shutdown => {
                stop.cancel();
                // Connections that do not finish in time are left behind.
                tokio::time::timeout(DRAIN, &mut serving).await.unwrap_or(Ok(()))
            }
        };
        drop(serving);
        let stopped = tokio::task::spawn_blocking(|| engine.stop()).await;
        let stopped = stopped
            .unwrap_or(Err("shutdown"))
            .map_err(ServeError::Panicked);
        sending_ends.cancel();
        finish_sending([exporting, telling]).await;
        served.and(stopped)
    }
}

/// Lets what is on its way out arrive, for a while. Its queues have been let go of by now.
async fn finish_sending(tasks: [Option<JoinHandle<()>>; 2]) {
    let until = tokio::time::Instant::now() + FINISH_SENDING;
    for task in tasks.into_iter().flatten() {
        let abort = task.abort_handle();
        if tokio::time::timeout_at(until, task).await.is_err() {
            abort.abort();
            tracing::warn!("spans or messages that nobody took in time are left behind");
        }
    }
}

struct Servers {
    otlp_grpc: TcpListener,
    otlp_http: TcpListener,
    http: TcpListener,
    tls: Option<Acceptors>,
    limits: BodyLimits,
}

impl Servers {
    /// Serves until `stop` is cancelled or one of them fails.
    async fn run(
        self,
        intake: Intake,
        web: WebState,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let stopped = || stop.clone().cancelled_owned();
        let (grpc_tls, http_tls) = match self.tls {
            Some(tls) => (Some(tls.grpc), Some(tls.http)),
            None => (None, None),
        };
        let most_bytes = self.limits.decompressed;
        let grpc = otlp_grpc::serve(
            self.otlp_grpc,
            grpc_tls,
            intake.clone(),
            most_bytes,
            stopped(),
        );
        let http = otlp_http::serve(self.otlp_http, http_tls, intake, self.limits, stopped());
        let web = web::serve(self.http, web, stopped());
        let web = async { web.await.map_err(ServeError::Web) };
        let receiving = async {
            tokio::join!(grpc, http);
            Ok(())
        };
        tokio::try_join!(receiving, web).map(drop)
    }
}

fn tokens(config: &Config) -> Result<BearerTokens, StartError> {
    let Some(path) = &config.otlp_token_file else {
        return Ok(BearerTokens::default());
    };
    if config.otlp_tls.is_none()
        && !(config.otlp_grpc.ip().is_loopback() && config.otlp_http.ip().is_loopback())
    {
        tracing::warn!("without TLS the tokens of OTLP senders can be read on their way");
    }
    BearerTokens::read(path).map_err(|source| StartError::Tokens {
        path: path.clone(),
        source,
    })
}

fn exporter(config: &Config, own: Addresses) -> Result<Option<Exporter>, StartError> {
    let Some(export) = &config.export else {
        return Ok(None);
    };
    let made = if is_own(export, own) {
        Err(ExportError::Itself)
    } else {
        Exporter::new(export)
    };
    made.map(Some).map_err(|source| StartError::Export {
        url: export.url.origin().ascii_serialization(),
        source,
    })
}

/// Whether spans sent on would come back at once. A longer way round is not seen from here.
fn is_own(export: &ExportConfig, own: Addresses) -> bool {
    let here = match export.url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip == own.otlp_grpc.ip(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip == own.otlp_grpc.ip(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    let port = export.url.port_or_known_default();
    let own_ports = [own.otlp_grpc.port(), own.otlp_http.port()];
    here && port.is_some_and(|port| own_ports.contains(&port))
}

fn webhook(config: &Config) -> Result<Option<Webhook>, StartError> {
    let Some(webhook) = &config.webhook else {
        return Ok(None);
    };
    let made = Webhook::new(webhook);
    made.map(Some).map_err(|source| StartError::Webhook {
        url: webhook.url.origin().ascii_serialization(),
        source,
    })
}

async fn listen(
    what: &'static str,
    flag: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|source: io::Error| {
        if source.kind() == io::ErrorKind::AddrInUse {
            StartError::PortTaken {
                what,
                address,
                flag,
            }
        } else {
            StartError::Listen {
                what,
                address,
                flag,
                source,
            }
        }
    })
}
