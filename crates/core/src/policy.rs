//! Every threshold of the audit, with its unit, range and default.

/// The thresholds an audit uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A gap is flagged when its *lower* bound exceeds this. Nanoseconds, above 0;
    /// 50 ms by default, above what scheduling does to a healthy exchange on a busy machine.
    pub flag_above_ns: i64,
    /// Two statements about one instant contradict each other when they are further apart
    /// than this. Nanoseconds, 0 or more; 1 ms by default, the coarsest stamp of a common
    /// SDK (JavaScript floors span starts to it).
    pub span_resolution_ns: i64,
    /// How far the clocks of two processes of one machine may seem apart, in nanoseconds:
    /// 5 µs by default, the time between reading a clock and ending a span.
    pub same_host_slack_ns: i64,
    /// How fast two clocks may drift apart, in parts per million; 200 by default, more than
    /// ten times what unsynchronised quartz does.
    pub drift_ppm: i64,
    /// Rounds of process sampling that a cause needs; 3 by default.
    pub least_samples: u32,
    /// Share of the samples that must show a thread asleep before its sleep is called the
    /// cause, in percent; 80 by default.
    pub asleep_percent: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            flag_above_ns: 50_000_000,
            span_resolution_ns: 1_000_000,
            same_host_slack_ns: 5_000,
            drift_ppm: 200,
            least_samples: 3,
            asleep_percent: 80,
        }
    }
}
