//! How long a matcher waits, and how much it holds.

use std::time::Duration;

/// How long to wait, and how much to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatcherLimits {
    /// How long to wait for more once an exchange and all its spans are there; 0 to 1 s,
    /// 500 ms by default.
    pub linger: Duration,
    /// How long to wait for missing sides before judging what is there; 1 s to 5 minutes,
    /// 15 s by default. Exporters hold spans back for up to 5 s.
    pub settle: Duration,
    /// How long a complete match is held for what comes just behind; 5 s by default. What comes
    /// later is added to what the store has.
    pub keep_complete: Duration,
    /// How long anything else is held for what comes late; 150 s by default: batch delay,
    /// export timeout, retries and tail sampling of common exporters together.
    pub keep_incomplete: Duration,
    /// Client spans held at once; above 0, 100,000 by default. Beyond it one is let go early: of
    /// those that were judged the one that would go first, else of the others.
    pub most_open: usize,
}

impl Default for MatcherLimits {
    fn default() -> Self {
        Self {
            linger: Duration::from_millis(500),
            settle: Duration::from_secs(15),
            keep_complete: Duration::from_secs(5),
            keep_incomplete: Duration::from_secs(150),
            most_open: 100_000,
        }
    }
}
