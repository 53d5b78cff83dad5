//! How much watching is wanted, and what it may cost.

use std::time::Duration;

/// How much watching is wanted, and what it may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatcherSettings {
    /// Whether to look into receive queues at all.
    pub queues: bool,
    /// Whether to sample the processes that leave bytes unread; needs `queues`.
    pub processes: bool,
    /// How long bytes must lie unread before their process is sampled; 5 ms by default.
    pub unread_before_sampling: Duration,
    /// Time between two rounds of samples; 10 ms by default.
    pub sampling_interval: Duration,
    /// When to give up on a message that stays unread; 60 s by default.
    pub longest_watch: Duration,
    /// How many messages are watched at once; any more are refused and counted. 4096 by default.
    pub most_watches: usize,
    /// Share of one core that looking into queues may take in the long run, in percent, at
    /// least 1; 2 by default. Sampling processes may take as much again. When it is used up,
    /// look-ups come more seldom and brackets grow wider.
    pub cpu_budget_percent: u32,
}

impl Default for WatcherSettings {
    fn default() -> Self {
        Self {
            queues: true,
            processes: true,
            unread_before_sampling: Duration::from_millis(5),
            sampling_interval: Duration::from_millis(10),
            longest_watch: Duration::from_secs(60),
            most_watches: 4096,
            cpu_budget_percent: 2,
        }
    }
}
