//! What the watcher did and what it could not do, counted.

/// Counts since the watcher was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatcherCounters {
    /// Watches accepted.
    pub watched: u64,
    /// Watches refused because too many were running or waiting.
    pub refused: u64,
    /// Look-ups made.
    pub polls: u64,
    /// Look-ups whose answer the kernel dropped.
    pub lost_answers: u64,
    /// Watches whose process was to be sampled.
    pub sampled_watches: u64,
    /// Watches whose process should have been sampled, but too many were being sampled.
    pub sampling_refused: u64,
    /// Samples taken of single threads.
    pub samples: u64,
    /// CPU time of the thread that looks into queues, in nanoseconds.
    pub watcher_cpu_ns: i64,
    /// CPU time of the thread that samples processes, in nanoseconds.
    pub sampler_cpu_ns: i64,
}
