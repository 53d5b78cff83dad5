//! Starting, serving and stopping.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use skewtap_core::exchange::{SourceState, Sources};
use skewtap_host::{Watcher, WatcherSettings};
use skewtap_sockstamp::Primer;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::admin::Observed;
use crate::authority::AuthorityError;
use crate::capture_thread::CaptureThread;
use crate::config::{Config, ConfigError};
use crate::listen::{Listening, listen};
use crate::metrics::Metrics;
use crate::note::Notes;
use crate::own_connections::OwnConnections;
use crate::reload::Reloader;
use crate::serving::Serving;
use crate::tls::TlsError;
use crate::worker::{self, Seed};
use crate::{admin, finisher, records_thread, ship};

/// Most notes that wait for the finisher.
const NOTES_ROOM: usize = 65_536;

/// Why a proxy could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Settings that cannot be used, all of them.
    #[error("settings cannot be used: {}", list(.0))]
    Config(Vec<ConfigError>),
    /// Certificates that cannot be used.
    #[error("TLS cannot be spoken as it is set")]
    Tls(#[source] TlsError),
    /// An authority that cannot be used.
    #[error("TLS cannot be intercepted")]
    Authority(#[from] AuthorityError),
    /// A port that could not be opened.
    #[error("cannot listen on {address}: choose another address with {flag}")]
    Listen {
        /// The address wanted.
        address: SocketAddr,
        /// The flag of the program that changes it.
        flag: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

/// Why a proxy stopped serving other than by being told to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A forwarding thread could not be started or could not run.
    #[error("forwarding thread failed")]
    Worker(#[source] io::Error),
    /// The thread that ships records could not be started.
    #[error("thread for records failed")]
    Records(#[source] io::Error),
}

/// The addresses that a proxy listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For clients, in the order of [`Config::listen`].
    pub traffic: Vec<SocketAddr>,
    /// For `/healthz` and `/metrics`.
    pub admin: Option<SocketAddr>,
}

/// A proxy that listens but does not serve yet.
pub struct Proxy {
    config: Arc<Config>,
    reloader: Reloader,
    addresses: Addresses,
    traffic: Vec<TcpListener>,
    admin: Option<TcpListener>,
    metrics: Arc<Metrics>,
    sources: Sources,
    watcher: Option<Arc<Watcher>>,
    capture: Option<CaptureThread>,
    _primer: Option<Primer>,
}

impl Proxy {
    /// Checks the settings, opens the ports and tries every source of stamps. Clients can
    /// connect from here on; they are served once [`Proxy::serve`] runs.
    ///
    /// # Errors
    /// [`StartError`] says what cannot be used and how to change it.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        config.check().map_err(StartError::Config)?;
        let (primer, stamps) = start_stamps(&config).await;
        let (traffic, admin, addresses) = open_all(&config)?;
        let serving = Serving::load(config, &addresses.traffic).await?;
        let config = Arc::clone(&serving.config);
        let (capture, capture_state) = start_capture(&serving, &addresses);
        let metrics = Arc::new(Metrics::new());
        let own = addresses.traffic.clone();
        let watcher = config
            .queues
            .then(|| Arc::new(Watcher::start(watching(&config))));
        let watched = watcher
            .as_ref()
            .map(|watcher| watcher.availability().clone());
        let sources = Sources {
            kernel_stamps: stamps,
            capture: capture_state,
            queues: watched
                .as_ref()
                .map_or(SourceState::Off, |state| state.queues.clone()),
            processes: watched.map_or(SourceState::Off, |state| state.processes),
        };
        Ok(Self {
            config,
            reloader: Reloader::new(serving, own, Arc::clone(&metrics)),
            addresses,
            traffic,
            admin,
            metrics,
            sources,
            watcher,
            capture,
            _primer: primer,
        })
    }

    /// Where it listens, with the ports that the kernel chose.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses.clone()
    }

    /// What gives it new settings while it serves.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Which sources of stamps are at work.
    #[must_use]
    pub fn sources(&self) -> Sources {
        self.sources.clone()
    }

    /// Serves until `shutdown` is ready, then stops accepting, lets open exchanges end, ships
    /// what is left, each within [`Config::drain_timeout`], and returns.
    ///
    /// # Errors
    /// [`ServeError`] when it cannot go on.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let stop = CancellationToken::new();
        let _stop_on_every_way_out = stop.clone().drop_guard();
        let (notes, notes_out) = Notes::new(NOTES_ROOM);
        let ending = CancellationToken::new();
        let (records, shipping) = ship::prepare(&self.config, &self.metrics, ending.clone());
        let packets = self.capture.as_ref().map(CaptureThread::seen);
        let setup = finisher::Setup::new(&self.config, self.sources, packets.clone());
        let finishing = finisher::run(setup, notes_out, records);
        let records_end =
            records_thread::start(finishing, shipping).map_err(ServeError::Records)?;
        if let Some(listener) = self.admin {
            let observed = Observed {
                metrics: Arc::clone(&self.metrics),
                packets: packets.clone(),
                watcher: self.watcher.clone(),
            };
            tokio::spawn(admin::serve(listener, observed, stop.clone()));
        }
        let mut workers = Vec::new();
        let permits = Arc::new(Semaphore::new(self.config.max_connections));
        let own = self.config.transparent.then(OwnConnections::default);
        for number in 0..self.config.workers {
            let seed = Seed {
                number: number as u64,
                serving: self.reloader.watch(),
                metrics: Arc::clone(&self.metrics),
                notes: notes.clone(),
                watcher: self.watcher.clone(),
                packets: packets.clone(),
                own: own.clone(),
                listeners: clones(&self.traffic).map_err(ServeError::Worker)?,
                permits: Arc::clone(&permits),
                stop: stop.clone(),
            };
            workers.push(start_worker(seed)?);
        }
        // Only the workers keep the finisher going, and it alone the shipper.
        drop((notes, self.traffic));
        let outcome = serve_until(shutdown, &mut workers).await;
        stop.cancel();
        for worker in workers {
            finished(worker.await)?;
        }
        ending.cancel();
        if records_end.await.is_err() {
            tracing::error!("the thread of the records panicked");
        }
        outcome
    }
}

type WorkerEnd = oneshot::Receiver<io::Result<()>>;

/// Waits for the signal to stop, or for a worker that ends without it.
async fn serve_until(
    shutdown: impl Future<Output = ()>,
    workers: &mut Vec<WorkerEnd>,
) -> Result<(), ServeError> {
    let mut shutdown = std::pin::pin!(shutdown);
    let early = std::future::poll_fn(|cx| {
        if shutdown.as_mut().poll(cx).is_ready() {
            return std::task::Poll::Ready(None);
        }
        for (at, worker) in workers.iter_mut().enumerate() {
            if let std::task::Poll::Ready(ended) = std::pin::Pin::new(worker).poll(cx) {
                return std::task::Poll::Ready(Some((at, ended)));
            }
        }
        std::task::Poll::Pending
    })
    .await;
    match early {
        None => Ok(()),
        Some((at, ended)) => {
            workers.swap_remove(at);
            finished(ended)
        }
    }
}

fn start_worker(seed: Seed) -> Result<WorkerEnd, ServeError> {
    let (ended, end) = oneshot::channel();
    let name = format!("skewtap-fwd-{}", seed.number);
    std::thread::Builder::new()
        .name(name)
        .spawn(move || {
            // The other end is gone only when serving was given up.
            let (Ok(()) | Err(_)) = ended.send(worker::run(seed));
        })
        .map_err(ServeError::Worker)?;
    Ok(end)
}

fn finished(end: Result<io::Result<()>, oneshot::error::RecvError>) -> Result<(), ServeError> {
    let panicked = |_| io::Error::other("the thread panicked");
    end.map_err(panicked)
        .and_then(|end| end)
        .map_err(ServeError::Worker)
}

type Opened = (Vec<TcpListener>, Option<TcpListener>, Addresses);

/// Opens all ports.
fn open_all(config: &Config) -> Result<Opened, StartError> {
    let mut traffic = Vec::new();
    let mut traffic_addresses = Vec::new();
    for wanted in &config.listen {
        let (listener, address) = open(config, *wanted, "--listen")?;
        traffic.push(listener);
        traffic_addresses.push(address);
    }
    let admin = config.admin.map(|wanted| open(config, wanted, "--admin"));
    let (admin, admin_address) = admin.transpose()?.unzip();
    let addresses = Addresses {
        traffic: traffic_addresses,
        admin: admin_address,
    };
    Ok((traffic, admin, addresses))
}

fn open(
    config: &Config,
    wanted: SocketAddr,
    flag: &'static str,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let beside = |other: &SocketAddr| other.is_ipv4() && other.port() == wanted.port();
    let how = Listening {
        backlog: config.backlog,
        stamps: config.kernel_stamps,
        only_v6: config.listen.iter().any(beside),
    };
    let opened = listen(wanted, how).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    opened.map_err(|source| StartError::Listen {
        address: wanted,
        flag,
        source,
    })
}

fn clones(listeners: &[TcpListener]) -> io::Result<Vec<TcpListener>> {
    listeners.iter().map(TcpListener::try_clone).collect()
}

/// Opens the capture if it is wanted; what keeps it from working is said once.
fn start_capture(serving: &Serving, addresses: &Addresses) -> (Option<CaptureThread>, SourceState) {
    if !serving.config.capture {
        return (None, SourceState::Off);
    }
    let own = addresses.traffic.iter().map(SocketAddr::port);
    let ports = own.chain(serving.router.upstream_ports());
    let ports: Vec<u16> = BTreeSet::from_iter(ports).into_iter().collect();
    match CaptureThread::start(&ports) {
        Ok(capture) => (Some(capture), SourceState::Used),
        Err(error) => {
            tracing::warn!(error = %error, "packets are not captured, going on without");
            (None, SourceState::Unavailable(error.to_string()))
        }
    }
}

fn watching(config: &Config) -> WatcherSettings {
    WatcherSettings {
        queues: config.queues,
        processes: config.processes,
        longest_watch: config.longest_watch,
        ..WatcherSettings::default()
    }
}

/// Has the kernel stamp what arrives, if that is wanted, for as long as the primer lives.
async fn start_stamps(config: &Config) -> (Option<Primer>, SourceState) {
    if !config.kernel_stamps {
        return (None, SourceState::Off);
    }
    // The primer waits for the kernel, a few milliseconds as a rule.
    let primer = tokio::task::spawn_blocking(Primer::new).await;
    match primer.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
        Ok(primer) => (Some(primer), SourceState::Used),
        Err(error) => (None, SourceState::Unavailable(error.to_string())),
    }
}

fn list(faults: &[ConfigError]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    faults.join("; ")
}
