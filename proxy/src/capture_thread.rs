//! Live capture in a thread of its own, and the packets it has seen.

use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle};

use skewtap_capture::live::{CaptureHandle, CaptureStats, LiveCapture, LiveError};
use skewtap_capture::packet_index::PacketIndex;
use skewtap_core::exchange::SourceState;

/// How long before it was noticed a loss can have happened, in nanoseconds. The counts of what
/// was lost are a millisecond old at most; the rest is for a thread that was not scheduled.
const LOSS_SLACK_NS: i64 = 20_000_000;

/// A running capture.
pub(crate) struct CaptureThread {
    seen: SeenPackets,
    thread: Option<JoinHandle<()>>,
}

/// The packets seen so far; for any thread.
#[derive(Clone)]
pub(crate) struct SeenPackets {
    handle: CaptureHandle,
    index: Arc<Mutex<PacketIndex>>,
    /// When the latest packet passed that the index has been told of.
    handled_ns: Arc<AtomicI64>,
    /// Set when the capture ended by itself, with the reason.
    failure: Arc<OnceLock<String>>,
}

/// Why there is no capture.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaptureError {
    /// It could not be opened.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// Its thread could not be started.
    #[error("the capture's thread could not be started")]
    Thread(#[source] std::io::Error),
}

impl CaptureThread {
    /// Begins to capture what goes to and from `ports`.
    ///
    /// # Errors
    /// When it is not permitted or not possible.
    pub(crate) fn start(ports: &[u16]) -> Result<Self, CaptureError> {
        let capture = LiveCapture::open(ports)?;
        let seen = SeenPackets {
            handle: capture.handle(),
            index: Arc::default(),
            handled_ns: Arc::default(),
            failure: Arc::default(),
        };
        let theirs = seen.clone();
        let thread = Builder::new()
            .name("skewtap-capture".to_owned())
            .spawn(move || theirs.run(capture))
            .map_err(CaptureError::Thread)?;
        Ok(Self {
            seen,
            thread: Some(thread),
        })
    }

    /// The packets seen.
    pub(crate) fn seen(&self) -> SeenPackets {
        self.seen.clone()
    }
}

impl Drop for CaptureThread {
    fn drop(&mut self) {
        self.seen.handle.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the capture's thread panicked");
        }
    }
}

impl SeenPackets {
    /// Looks at the packets; the capture waits meanwhile.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&mut PacketIndex) -> T) -> T {
        at(&mut self.index.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the capture has come as far as a packet that passed at `ns` or later.
    pub(crate) fn has_come_to(&self, ns: i64) -> bool {
        self.handled_ns.load(Relaxed) >= ns
    }

    /// Whether the capture still runs.
    pub(crate) fn state(&self) -> SourceState {
        match self.failure.get() {
            None => SourceState::Used,
            Some(why) => SourceState::Unavailable(why.clone()),
        }
    }

    /// What was taken in and lost so far.
    pub(crate) fn stats(&self) -> CaptureStats {
        self.handle.stats()
    }

    /// Captures what goes to and from one more port.
    pub(crate) fn add_port(&self, port: u16) {
        if let Err(error) = self.handle.add_port(port) {
            tracing::debug!(port, error = %error, "port not captured");
        }
    }

    fn run(&self, capture: LiveCapture) {
        let mut known = self.losses();
        let mut latest_ns = i64::MAX;
        let ended = capture.run(|segment| {
            let losses = self.losses();
            let lost = losses != known;
            self.look(|index| {
                index.add(&segment);
                if lost {
                    let from = latest_ns.min(segment.time_ns).saturating_sub(LOSS_SLACK_NS);
                    index.note_loss(from, segment.time_ns);
                }
            });
            (known, latest_ns) = (losses, segment.time_ns);
            self.handled_ns.fetch_max(segment.time_ns, Relaxed);
        });
        if let Err(error) = ended {
            tracing::warn!(error = %error, "packet capture ended");
            // It can only have ended once.
            let (Ok(()) | Err(_)) = self.failure.set(error.to_string());
        }
    }

    /// Rises whenever packets may have been lost.
    fn losses(&self) -> (u64, u64, u64) {
        let stats = self.handle.stats();
        (
            stats.dropped,
            stats.dropped_by_interface,
            stats.filter_changes,
        )
    }
}

impl std::fmt::Debug for SeenPackets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeenPackets")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
