//! Counting what the threads do.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::counters::WatcherCounters;

/// The counts as the threads keep them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) watched: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) polls: AtomicU64,
    pub(crate) lost_answers: AtomicU64,
    pub(crate) sampled_watches: AtomicU64,
    pub(crate) sampling_refused: AtomicU64,
    pub(crate) samples: AtomicU64,
    pub(crate) watcher_cpu_ns: AtomicI64,
    pub(crate) sampler_cpu_ns: AtomicI64,
}

impl Counters {
    /// The counts as they stand; each is right, though not all are of the same moment.
    pub(crate) fn read(&self) -> WatcherCounters {
        WatcherCounters {
            watched: self.watched.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            polls: self.polls.load(Ordering::Relaxed),
            lost_answers: self.lost_answers.load(Ordering::Relaxed),
            sampled_watches: self.sampled_watches.load(Ordering::Relaxed),
            sampling_refused: self.sampling_refused.load(Ordering::Relaxed),
            samples: self.samples.load(Ordering::Relaxed),
            watcher_cpu_ns: self.watcher_cpu_ns.load(Ordering::Relaxed),
            sampler_cpu_ns: self.sampler_cpu_ns.load(Ordering::Relaxed),
        }
    }
}

/// Adds to one count.
pub(crate) fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
}
