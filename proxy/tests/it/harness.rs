//! A running proxy, an origin server made of a closure, and waiting for records.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use skewtap_core::clock::{ProxyClock, Source, Stamp};
use skewtap_core::exchange::{ExchangeRecord, Sources};
use skewtap_core::milestone::Milestone;
use skewtap_proxy::{Config, Proxy, Reloader};
use tokio::sync::oneshot;

use crate::collector::{self, Shipped};

/// Longest wait for anything that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Far longer than bytes take on loopback, shorter than the pauses that tests plant.
const SHORTLY_NS: i64 = 40_000_000;

/// A trace context as a client sends it.
pub(crate) const CONTEXT: &str =
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";

/// Where a proxy listens.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    /// The first address for clients.
    pub(crate) traffic: SocketAddr,
    /// All of them.
    pub(crate) all: Vec<SocketAddr>,
    pub(crate) admin: Option<SocketAddr>,
}

/// A proxy in a thread of its own, with a collector for its records.
pub(crate) struct Running {
    pub(crate) addresses: Addresses,
    pub(crate) sources: Sources,
    pub(crate) reloader: Reloader,
    /// Where its records go.
    pub(crate) otlp: Option<url::Url>,
    records: mpsc::Receiver<Shipped>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Settings of most tests: an upstream, no capture, free ports.
pub(crate) fn config(upstream: SocketAddr) -> Config {
    Config {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        upstream: Some(format!("http://{upstream}").parse().unwrap()),
        capture: false,
        activity_wait: Duration::from_millis(100),
        drain_timeout: Duration::from_secs(5),
        ..Config::default()
    }
}

impl Running {
    /// Starts a proxy with a collector of its own.
    pub(crate) fn start(config: Config) -> Self {
        let (kept, records) = mpsc::channel();
        let (ready, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async move {
                let mut config = config;
                if config.otlp.is_none() {
                    let address = collector::start(kept).await;
                    config.otlp = Some(format!("http://{address}").parse().unwrap());
                }
                let otlp = config.otlp.clone();
                let proxy = Proxy::bind(config).await.unwrap();
                let started = (proxy.addresses(), proxy.sources(), proxy.reloader());
                ready.send((started, otlp)).unwrap();
                let stopped = async {
                    // Dropped or sent: either way the test is over.
                    let (Ok(()) | Err(_)) = stopped.await;
                };
                proxy.serve(stopped).await.unwrap();
            });
        });
        let ((addresses, sources, reloader), otlp) = started.recv().unwrap();
        Self {
            addresses: Addresses {
                traffic: addresses.traffic[0],
                all: addresses.traffic,
                admin: addresses.admin,
            },
            sources,
            reloader,
            otlp,
            records,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// A connection to the proxy.
    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.addresses.traffic)
    }

    /// The next record.
    pub(crate) fn record(&self) -> ExchangeRecord {
        self.shipped().record
    }

    /// The next record with what came round it.
    pub(crate) fn shipped(&self) -> Shipped {
        self.records.recv_timeout(PATIENCE).unwrap()
    }

    /// So many records, in the order in which their exchanges began.
    pub(crate) fn records(&self, count: usize) -> Vec<ExchangeRecord> {
        let mut records: Vec<_> = (0..count).map(|_| self.record()).collect();
        let begun = |record: &ExchangeRecord| {
            record
                .milestones
                .best(Milestone::DownRequestHead)
                .map(Stamp::hi)
        };
        records.sort_by_key(begun);
        records
    }

    /// Stops the proxy; gives the records that had not been asked for.
    pub(crate) fn stop(mut self) -> Vec<ExchangeRecord> {
        self.end();
        self.records
            .try_iter()
            .map(|shipped| shipped.record)
            .collect()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the proxy panicked");
        }
    }
}

/// A connection that fails a test instead of hanging it.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Serves `connections` connections, one after the other, in a thread that gives what the closure
/// gives.
pub(crate) fn origin<T: Send + 'static>(
    connections: usize,
    mut serve: impl FnMut(TcpStream) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<Vec<T>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        (0..connections)
            .map(|_| {
                let (stream, _) = listener.accept().unwrap();
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                serve(stream)
            })
            .collect()
    });
    (address, thread)
}

/// An address where nothing listens.
pub(crate) fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// `CLOCK_REALTIME`, the clock of all stamps.
pub(crate) fn now_ns() -> i64 {
    skewtap_sockstamp::realtime_ns()
}

/// Writes, with the clock before and after.
pub(crate) fn timed_write(stream: &mut TcpStream, bytes: &[u8]) -> (i64, i64) {
    let before = now_ns();
    stream.write_all(bytes).unwrap();
    (before, now_ns())
}

/// A stamp that must be there.
#[track_caller]
pub(crate) fn stamp(
    record: &ExchangeRecord,
    milestone: Milestone,
    source: Source,
) -> Stamp<ProxyClock> {
    record
        .milestones
        .from_source(milestone, source)
        .unwrap_or_else(|| panic!("{milestone} has no {source} stamp"))
}

/// Asserts that the kernel's stamp can be true of bytes written from `sent.0` to `sent.1`. The
/// kernel may bring them to the receiver after the write returned, but not much.
#[track_caller]
pub(crate) fn assert_arrived(record: &ExchangeRecord, milestone: Milestone, sent: (i64, i64)) {
    let read = stamp(record, milestone, Source::User);
    let by = (sent.1 + SHORTLY_NS).min(read.hi());
    let came = stamp(record, milestone, Source::Kernel);
    assert_within(came, (sent.0, by), milestone.name());
}

/// Asserts that a stamp can be true of something that happened from `from` to `to`.
#[track_caller]
pub(crate) fn assert_within(stamp: Stamp<ProxyClock>, (from, to): (i64, i64), what: &str) {
    assert!(
        stamp.lo() <= to && from <= stamp.hi(),
        "{what}: stamp [{}, {}] is not of [{from}, {to}]",
        stamp.lo(),
        stamp.hi()
    );
}
