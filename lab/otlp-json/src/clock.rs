//! Times as a clock shows them that is off by a known amount.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since the Unix epoch, as a clock shows the instant that is so many milliseconds
/// ahead (behind, if negative). What would lie before the epoch is 0, for OTLP has no negative times.
#[must_use]
pub fn shifted_unix_nanos(instant: SystemTime, ahead_ms: i64) -> u64 {
    let since_epoch = instant.duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
    let shift = ahead_ms.unsigned_abs().saturating_mul(1_000_000);
    if ahead_ms < 0 {
        nanos.saturating_sub(shift)
    } else {
        nanos.saturating_add(shift)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_may_be_ahead_or_behind() {
        let instant = UNIX_EPOCH + Duration::new(10, 1);
        assert_eq!(shifted_unix_nanos(instant, 0), 10_000_000_001);
        assert_eq!(shifted_unix_nanos(instant, 2_500), 12_500_000_001);
        assert_eq!(shifted_unix_nanos(instant, -2_500), 7_500_000_001);
        assert_eq!(shifted_unix_nanos(instant, i64::MIN), 0);
    }
}
