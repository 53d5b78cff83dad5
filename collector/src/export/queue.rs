//! What waits to be sent on, bounded in bytes. Handing over never waits.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::metrics::{ExportCounts, ExportDrop};

/// Where a batch of spans comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was received.
    Received,
    /// It was found out here.
    WrittenBack,
}

impl Origin {
    /// The name used in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::WrittenBack => "written_back",
        }
    }
}

/// A batch that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// An `ExportTraceServiceRequest` in protobuf.
    pub(super) body: Bytes,
    /// Spans in it.
    pub(super) spans: u64,
    /// Where it comes from.
    pub(super) origin: Origin,
    /// Given back once it has been sent or dropped.
    _room: OwnedSemaphorePermit,
}

/// The way to the backend; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ExportQueue {
    queue: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
    counts: ExportCounts,
}

/// A queue of at most `most_bytes`, in steps of a KiB, and the other end of it.
pub(super) fn new(
    most_bytes: usize,
    counts: ExportCounts,
) -> (ExportQueue, mpsc::UnboundedReceiver<Waiting>) {
    // Every batch takes at least a KiB of the room, which bounds how many there are as well.
    let (queue, waiting) = mpsc::unbounded_channel();
    let kib = (most_bytes / 1024).min(Semaphore::MAX_PERMITS);
    let queue = ExportQueue {
        queue,
        room: Arc::new(Semaphore::new(kib)),
        counts,
    };
    (queue, waiting)
}

impl ExportQueue {
    /// Hands a request of `spans` spans over, or leaves it out and counts it when too much waits.
    pub(crate) fn offer(&self, origin: Origin, spans: u64, body: Bytes) {
        let kib = u32::try_from(body.len() / 1024 + 1).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(kib) else {
            self.counts.dropped(ExportDrop::QueueFull, spans);
            return;
        };
        let batch = Waiting {
            body,
            spans,
            origin,
            _room: room,
        };
        self.counts.waiting.inc_by(spans_as_gauge(spans));
        if self.queue.send(batch).is_err() {
            self.counts.waiting.dec_by(spans_as_gauge(spans));
            self.counts.dropped(ExportDrop::Stopped, spans);
        }
    }
}

/// A number of spans in the type that gauges have.
pub(super) fn spans_as_gauge(spans: u64) -> i64 {
    i64::try_from(spans).unwrap_or(i64::MAX)
}
