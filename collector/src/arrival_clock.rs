//! The collector's clock: when something arrived, and how long it has been waited for.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch as they were when the clock was made, counted on by a
/// clock that is never stepped. So a change of the system's time cannot stretch or cut a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalClock {
    made_ns: i64,
    made: Instant,
}

impl ArrivalClock {
    /// A clock that starts from the system's time.
    pub(crate) fn new() -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            made_ns: i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX),
            made: Instant::now(),
        }
    }

    /// When the clock was made, by the system's time then.
    pub(crate) const fn made_ns(&self) -> i64 {
        self.made_ns
    }

    /// The time now.
    pub(crate) fn now_ns(&self) -> i64 {
        let passed = i64::try_from(self.made.elapsed().as_nanos()).unwrap_or(i64::MAX);
        self.made_ns.saturating_add(passed)
    }
}
