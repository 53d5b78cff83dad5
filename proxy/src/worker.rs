//! A thread that accepts and forwards.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use skewtap_host::Watcher;
use skewtap_sockstamp::{original_destination, realtime_ns};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::capture_thread::SeenPackets;
use crate::downstream;
use crate::journal::LegAddresses;
use crate::listen::Listeners;
use crate::metrics::Metrics;
use crate::note::Notes;
use crate::own_connections::OwnConnections;
use crate::serving::Serving;
use crate::stamped_io::Scratch;
use crate::target::Target;

/// Bytes read at once.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Pause after a failed accept that is not the connection's fault, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Exchanges that one worker can number.
const IDS_EACH: u64 = 1 << 48;

/// What all connections of a worker share that are served by the same settings, which can be
/// reached right through it.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) serving: Arc<Serving>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) notes: Notes,
    /// `None` when no endpoint is watched.
    pub(crate) watcher: Option<Arc<Watcher>>,
    /// `None` when no packet is captured.
    pub(crate) packets: Option<SeenPackets>,
    /// `None` unless connections are redirected here.
    pub(crate) own: Option<OwnConnections>,
    pub(crate) scratch: Scratch,
    next_id: Rc<Cell<u64>>,
    cuts_off: Rc<Cell<bool>>,
}

impl Deref for Worker {
    type Target = Serving;

    fn deref(&self) -> &Serving {
        &self.serving
    }
}

impl Worker {
    fn new(seed: &Seed) -> Self {
        Self {
            serving: Arc::clone(&seed.serving.borrow()),
            metrics: Arc::clone(&seed.metrics),
            notes: seed.notes.clone(),
            watcher: seed.watcher.clone(),
            packets: seed.packets.clone(),
            own: seed.own.clone(),
            scratch: Rc::new(RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice())),
            next_id: Rc::new(Cell::new(seed.number.wrapping_mul(IDS_EACH))),
            cuts_off: Rc::default(),
        }
    }

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

    /// Both ends of a connection that was accepted, IPv4 without its IPv6 clothes.
    fn ends_of(&self, socket: &TcpStream, peer: SocketAddr) -> io::Result<LegAddresses> {
        let local = socket.local_addr()?;
        let meant = match self.own {
            None => local,
            Some(_) => original_destination(socket.as_fd()).unwrap_or_else(|error| {
                tracing::debug!(error = %error, "not redirected");
                local
            }),
        };
        let [local, peer, meant] = [local, peer, meant]
            .map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()));
        Ok(LegAddresses { local, peer, meant })
    }

    /// Where everything on such a connection goes; `None` unless connections are redirected here.
    /// A client that meant to come here is led no further than here.
    pub(crate) fn destination(&self, ends: LegAddresses) -> Option<Target> {
        self.own.as_ref()?;
        let host = ends.meant.ip().to_string();
        Some(Target::tcp(&host, ends.meant.port(), false))
    }
}

/// What a worker is made of; can be sent to its thread.
pub(crate) struct Seed {
    pub(crate) number: u64,
    pub(crate) serving: watch::Receiver<Arc<Serving>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) notes: Notes,
    pub(crate) watcher: Option<Arc<Watcher>>,
    pub(crate) packets: Option<SeenPackets>,
    pub(crate) own: Option<OwnConnections>,
    pub(crate) listeners: Vec<std::net::TcpListener>,
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

async fn accept_until_stopped(mut seed: Seed) -> std::io::Result<()> {
    let listeners = std::mem::take(&mut seed.listeners);
    let mut listeners = Listeners::new(listeners)?;
    let mut worker = Rc::new(Worker::new(&seed));
    let connections = TaskTracker::new();
    let stop = seed.stop.clone();
    let accepting = accept(&mut worker, &mut listeners, &mut seed, &connections);
    stop.run_until_cancelled(accepting).await;
    drop(listeners);
    connections.close();
    let allowed = worker.config.drain_timeout;
    if tokio::time::timeout(allowed, connections.wait())
        .await
        .is_err()
    {
        worker.cuts_off.set(true);
        tracing::warn!(open = connections.len(), "connections cut off at the end");
    }
    Ok(())
}

async fn accept(
    worker: &mut Rc<Worker>,
    listeners: &mut Listeners,
    seed: &mut Seed,
    connections: &TaskTracker,
) {
    // The semaphore is never closed, so a permit always comes.
    while let Ok(permit) = Arc::clone(&seed.permits).acquire_owned().await {
        let (socket, peer) = match listeners.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = %error, "connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let accepted_ns = realtime_ns();
        // An error means that nobody is left to change the settings.
        if seed.serving.has_changed().unwrap_or(false) {
            let serving = Arc::clone(&seed.serving.borrow_and_update());
            *worker = Rc::new(Worker {
                serving,
                ..Worker::clone(worker)
            });
        }
        let Ok(addresses) = worker.ends_of(&socket, peer) else {
            continue;
        };
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(error = %error, "client left at once");
        }
        let open = worker.metrics.connection_opened();
        let serving = downstream::serve(
            Rc::clone(worker),
            socket,
            addresses,
            accepted_ns,
            seed.stop.clone(),
        );
        let connection = async move {
            serving.await;
            drop((open, permit));
        };
        let span = tracing::debug_span!("connection", client = %peer);
        connections.spawn_local(connection.instrument(span));
    }
}
