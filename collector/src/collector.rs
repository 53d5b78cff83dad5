//! Starting and stopping the whole collector.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::engine::{Engine, EngineError};
use crate::receive::otlp_http::BodyLimits;
use crate::receive::{Intake, otlp_grpc, otlp_http};
use crate::store::{OpenError, Store};
use crate::web::{self, WebState};

/// How long connections may take to finish once the collector is told to stop.
const DRAIN: Duration = Duration::from_secs(5);

/// A collector that has its ports and its store, and can begin to serve.
#[derive(Debug)]
pub struct Collector {
    config: Config,
    otlp_grpc: TcpListener,
    otlp_http: TcpListener,
    http: TcpListener,
    addresses: Addresses,
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
    /// Receiving over gRPC failed.
    #[error("receiving OTLP over gRPC failed: {0}")]
    Grpc(#[from] tonic::transport::Error),
    /// Receiving or serving over HTTP failed.
    #[error("serving {what} failed: {source}")]
    Http {
        /// What was served.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
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
        let store = Store::open(&config.store)?;
        Ok(Self {
            config,
            otlp_grpc: otlp_grpc.0,
            otlp_http: otlp_http.0,
            http: http.0,
            addresses,
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
        let engine = Engine::start(self.store, &self.config, self.addresses)?;
        let stop = CancellationToken::new();
        let servers = Servers {
            otlp_grpc: self.otlp_grpc,
            otlp_http: self.otlp_http,
            http: self.http,
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
        served.and(stopped)
    }
}

struct Servers {
    otlp_grpc: TcpListener,
    otlp_http: TcpListener,
    http: TcpListener,
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
        let failed = |what| move |source| ServeError::Http { what, source };
        let grpc = otlp_grpc::serve(
            self.otlp_grpc,
            intake.clone(),
            self.limits.decompressed,
            stopped(),
        );
        let http = otlp_http::serve(self.otlp_http, intake, self.limits, stopped());
        let web = web::serve(self.http, web, stopped());
        tokio::try_join!(
            async { grpc.await.map_err(ServeError::Grpc) },
            async { http.await.map_err(failed("OTLP over HTTP")) },
            async { web.await.map_err(failed("pages")) },
        )
        .map(drop)
    }
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
