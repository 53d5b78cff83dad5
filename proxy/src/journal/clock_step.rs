//! Whether the clock that stamps are taken on was stepped during an exchange.
//!
//! `CLOCK_MONOTONIC` is slewed as `CLOCK_REALTIME` is but never stepped, so that their difference
//! changes with a step and with nothing else. Two clocks cannot be read at one instant; how far
//! apart the readings were bounds the difference.

use skewtap_core::clock::Interval;
use skewtap_sockstamp::{monotonic_ns, realtime_ns};

/// How far `CLOCK_REALTIME` was ahead of `CLOCK_MONOTONIC` at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockDifference(Interval);

impl ClockDifference {
    pub(super) fn now() -> Self {
        let before_ns = realtime_ns();
        let between_ns = monotonic_ns();
        let after_ns = realtime_ns();
        Self::of(before_ns, between_ns, after_ns)
    }

    fn of(before_ns: i64, between_ns: i64, after_ns: i64) -> Self {
        let ahead = |ns: i64| ns.saturating_sub(between_ns);
        Self(Interval::between(ahead(before_ns), ahead(after_ns)))
    }

    /// The smallest step since `earlier` that explains both, in nanoseconds; 0 where none is needed.
    pub(super) fn least_step_since(self, earlier: Self) -> i64 {
        let step = self.0 - earlier.0;
        0_i64.clamp(step.lo(), step.hi())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_that_lie_apart_are_no_step() {
        let first = ClockDifference::of(1_000_000, 400, 1_000_090);
        for (before_ns, between_ns, after_ns) in [
            (2_000_000, 1_000_380, 2_000_020),
            (2_000_000, 1_000_470, 2_000_100),
            // The thread had to wait for a core in between.
            (2_000_000, 1_000_400, 2_700_000),
        ] {
            let second = ClockDifference::of(before_ns, between_ns, after_ns);
            assert_eq!(second.least_step_since(first), 0, "{second:?}");
        }
    }

    #[test]
    fn of_a_step_that_much_is_told_which_is_certain() {
        let first = ClockDifference::of(1_000_000, 400, 1_000_090);
        let forward = ClockDifference::of(9_000_000, 1_000_400, 9_000_060);
        assert_eq!(forward.least_step_since(first), 7_000_000 - 90);
        let back = ClockDifference::of(1_000_000, 6_000_400, 1_000_060);
        assert_eq!(back.least_step_since(first), -6_000_000 + 60);
    }

    #[test]
    fn a_clock_that_nobody_steps_was_not_stepped() {
        let first = ClockDifference::now();
        for _ in 0..10_000 {
            assert_eq!(ClockDifference::now().least_step_since(first), 0);
        }
    }
}
