//! A socket whose holder is to be sampled: what the watcher and the sampler share.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::owner::Wanted;
use crate::sample_log::SampleLog;

/// The watcher knows when bytes were unread, the sampler what the process did. Neither waits for
/// the other for longer than it takes to write a line into the log.
#[derive(Debug)]
pub(crate) struct SampleTarget {
    inode: AtomicU32,
    uid: AtomicU32,
    unread_ns: AtomicI64,
    finished: AtomicBool,
    log: Mutex<SampleLog>,
}

impl SampleTarget {
    /// A socket that was seen with bytes unread by a look-up begun at `unread_ns`.
    pub(crate) fn new(socket: Wanted, unread_ns: i64) -> Self {
        Self {
            inode: AtomicU32::new(socket.inode),
            uid: AtomicU32::new(socket.uid),
            unread_ns: AtomicI64::new(unread_ns),
            finished: AtomicBool::new(false),
            log: Mutex::default(),
        }
    }

    /// Notes another look-up, begun at `unread_ns`, that saw bytes unread.
    pub(crate) fn note_unread(&self, unread_ns: i64) {
        self.unread_ns.store(unread_ns, Ordering::Release);
    }

    /// Notes which socket it is now: a connection has no holder until it is accepted, and the
    /// listener stands in for it.
    pub(crate) fn note_socket(&self, socket: Wanted) {
        self.uid.store(socket.uid, Ordering::Relaxed);
        self.inode.store(socket.inode, Ordering::Release);
    }

    /// Which socket it is.
    pub(crate) fn socket(&self) -> Wanted {
        let inode = self.inode.load(Ordering::Acquire);
        Wanted {
            inode,
            uid: self.uid.load(Ordering::Relaxed),
        }
    }

    /// The log, with what look-ups have confirmed so far.
    pub(crate) fn log(&self) -> MutexGuard<'_, SampleLog> {
        let unread_ns = self.unread_ns.load(Ordering::Acquire);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.confirm(unread_ns);
        log
    }

    /// Ends the sampling.
    pub(crate) fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    /// Whether the sampling has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }
}
