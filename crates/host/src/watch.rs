//! What a caller asks of a watch, and what it gets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use skewtap_core::clock::{ProxyClock, Stamp};
use skewtap_core::endpoint::{ProcessWatch, QueueWatch};

/// Which message on which connection is to be watched until its receiver has read it.
#[derive(Clone, Copy, Debug)]
pub struct WatchRequest {
    /// The address of the endpoint that is to read, as our socket names its peer.
    pub peer: SocketAddr,
    /// The address of our end.
    pub local: SocketAddr,
    /// Payload bytes sent on this connection from its start to the end of this message.
    pub bytes_sent: u64,
    /// `CLOCK_REALTIME` before the last `write` of the message, in nanoseconds.
    pub sent_before_ns: i64,
    /// Whether to look for the moment the endpoint's application accepts the connection.
    pub watch_accept: bool,
    /// Whether the endpoint had ended its sending side before the message was written (a read
    /// gave the end of the stream). Its closing is no sign of its having read, then.
    pub peer_had_ended: bool,
}

/// What a watch found.
#[derive(Clone, Debug)]
pub struct WatchResult {
    /// How it ended.
    pub queue: QueueWatch,
    /// When the application had read everything: between the clock before the last look-up that
    /// still saw unread bytes (or before the write, if none did) and the clock after the first
    /// that saw none. Only with [`QueueOutcome::Read`](skewtap_core::endpoint::QueueOutcome::Read).
    pub picked_up: Option<Stamp<ProxyClock>>,
    /// When the application accepted the connection; only if a look-up saw it waiting before.
    pub accepted: Option<Stamp<ProxyClock>>,
    /// What the process was doing meanwhile, if bytes lay unread for long enough.
    pub process: Option<ProcessWatch>,
    /// Why `process` is `None` although it was tried, in words.
    pub process_missing: Option<String>,
}

impl WatchResult {
    /// The result of a watch that never was.
    #[must_use]
    pub const fn not_watched() -> Self {
        Self {
            queue: QueueWatch::NOT_WATCHED,
            picked_up: None,
            accepted: None,
            process: None,
            process_missing: None,
        }
    }
}

/// A running watch. Dropping it ends the watch: the result says what was known by then.
#[derive(Debug)]
#[must_use = "dropping the handle ends the watch"]
pub struct WatchHandle(Arc<EndSignal>);

impl WatchHandle {
    /// Ends the watch; the same as dropping the handle. Costs one atomic store: the watcher
    /// notices within its current interval, some milliseconds, and calls back then.
    pub fn end(self) {
        drop(self);
    }

    /// Ends the watch with the caller's word that the endpoint had read everything by `by_ns`
    /// (`CLOCK_REALTIME`), because its next bytes had arrived then. If a look-up had seen unread
    /// bytes, this closes the bracket.
    pub fn end_as_read(self, by_ns: i64) {
        self.0.read_by_ns.store(by_ns, Ordering::Release);
        drop(self);
    }

    /// A handle and the watcher's side of it.
    pub(crate) fn new() -> (Self, Arc<EndSignal>) {
        let signal = Arc::new(EndSignal {
            ended: AtomicBool::new(false),
            read_by_ns: AtomicI64::new(NOT_READ),
        });
        (Self(Arc::clone(&signal)), signal)
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

const NOT_READ: i64 = i64::MIN;

/// Tells the watcher thread that a watch was ended, without waking it.
#[derive(Debug)]
pub(crate) struct EndSignal {
    ended: AtomicBool,
    read_by_ns: AtomicI64,
}

#[cfg(target_os = "linux")]
impl EndSignal {
    /// Whether the caller ended the watch.
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// When the caller says everything had been read by, if it says so.
    pub(crate) fn read_by_ns(&self) -> Option<i64> {
        let by_ns = self.read_by_ns.load(Ordering::Acquire);
        (by_ns != NOT_READ).then_some(by_ns)
    }
}
