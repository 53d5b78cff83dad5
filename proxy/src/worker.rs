//! A thread that accepts and forwards.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use skewtap_host::Watcher;
use skewtap_sockstamp::realtime_ns;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::authority::Authority;
use crate::capture_thread::SeenPackets;
use crate::config::Config;
use crate::downstream;
use crate::journal::LegAddresses;
use crate::metrics::Metrics;
use crate::note::Notes;
use crate::stamped_io::Scratch;
use crate::target::Router;
use crate::tls::Clients;

/// Bytes read at once.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Pause after a failed accept that is not the connection's fault, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Exchanges that one worker can number.
const IDS_EACH: u64 = 1 << 48;

/// What all connections of a worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) config: Arc<Config>,
    pub(crate) router: Router,
    /// `None` when clients do not speak TLS to the proxy.
    pub(crate) tls_server: Option<Arc<ServerConfig>>,
    pub(crate) tls_clients: Arc<Clients>,
    /// `None` when nothing is intercepted.
    pub(crate) authority: Option<Arc<Authority>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) notes: Notes,
    /// `None` when no endpoint is watched.
    pub(crate) watcher: Option<Arc<Watcher>>,
    /// `None` when no packet is captured.
    pub(crate) packets: Option<SeenPackets>,
    pub(crate) scratch: Scratch,
    next_id: Cell<u64>,
    cuts_off: Cell<bool>,
}

impl Worker {
    /// Whether the proxy itself ends what is still open.
    pub(crate) fn cuts_off(&self) -> bool {
        self.cuts_off.get()
    }

    /// A number that no other exchange of this proxy has.
    pub(crate) fn next_exchange_id(&self) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id.wrapping_add(1));
        id
    }
}

/// What a worker is made of; can be sent to its thread.
pub(crate) struct Seed {
    pub(crate) number: u64,
    pub(crate) config: Arc<Config>,
    pub(crate) router: Router,
    /// `None` when clients do not speak TLS to the proxy.
    pub(crate) tls_server: Option<Arc<ServerConfig>>,
    pub(crate) tls_clients: Arc<Clients>,
    /// `None` when nothing is intercepted.
    pub(crate) authority: Option<Arc<Authority>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) notes: Notes,
    pub(crate) watcher: Option<Arc<Watcher>>,
    pub(crate) packets: Option<SeenPackets>,
    pub(crate) listener: std::net::TcpListener,
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) stop: CancellationToken,
}

/// Runs a worker on the calling thread until `stop`, then lets open exchanges end within the
/// time allowed.
///
/// # Errors
/// What kept the worker from starting.
pub(crate) fn run(seed: Seed) -> std::io::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    runtime.block_on(accept_until_stopped(seed))
}

async fn accept_until_stopped(seed: Seed) -> std::io::Result<()> {
    let listener = TcpListener::from_std(seed.listener)?;
    let drain_timeout = seed.config.drain_timeout;
    let worker = Rc::new(Worker {
        config: seed.config,
        router: seed.router,
        tls_server: seed.tls_server,
        tls_clients: seed.tls_clients,
        authority: seed.authority,
        metrics: seed.metrics,
        notes: seed.notes,
        watcher: seed.watcher,
        packets: seed.packets,
        scratch: Rc::new(RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice())),
        next_id: Cell::new(seed.number.wrapping_mul(IDS_EACH)),
        cuts_off: Cell::new(false),
    });
    let connections = TaskTracker::new();
    let accepting = accept(&worker, &listener, &seed.permits, &connections, &seed.stop);
    seed.stop.run_until_cancelled(accepting).await;
    drop(listener);
    connections.close();
    if tokio::time::timeout(drain_timeout, connections.wait())
        .await
        .is_err()
    {
        worker.cuts_off.set(true);
        tracing::warn!(open = connections.len(), "connections cut off at the end");
    }
    Ok(())
}

async fn accept(
    worker: &Rc<Worker>,
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    connections: &TaskTracker,
    stop: &CancellationToken,
) {
    // The semaphore is never closed, so a permit always comes.
    while let Ok(permit) = Arc::clone(permits).acquire_owned().await {
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let accepted_ns = realtime_ns();
        let Ok(local) = socket.local_addr() else {
            continue;
        };
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(error = %error, "client left at once");
        }
        let open = worker.metrics.connection_opened();
        let addresses = LegAddresses { local, peer };
        let serving = downstream::serve(
            Rc::clone(worker),
            socket,
            addresses,
            accepted_ns,
            stop.clone(),
        );
        let connection = async move {
            serving.await;
            drop((open, permit));
        };
        let span = tracing::debug_span!("connection", client = %peer);
        connections.spawn_local(connection.instrument(span));
    }
}
