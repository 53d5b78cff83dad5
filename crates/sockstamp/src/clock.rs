//! The two clocks of this machine, as `i64` nanoseconds.

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, clockid_t, timespec};

/// `CLOCK_REALTIME`: nanoseconds since the Unix epoch, negative before it. It can be stepped;
/// compare it with [`monotonic_ns`] to notice.
#[must_use]
pub fn realtime_ns() -> i64 {
    now_ns(CLOCK_REALTIME)
}

/// `CLOCK_MONOTONIC`: nanoseconds since an arbitrary start, never stepped.
#[must_use]
pub fn monotonic_ns() -> i64 {
    now_ns(CLOCK_MONOTONIC)
}

#[expect(
    unsafe_code,
    reason = "the standard library gives only one of these clocks as a number, and that slowly"
)]
fn now_ns(clock: clockid_t) -> i64 {
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid, writable timespec for the length of the call.
    // The call cannot fail: both clocks exist wherever `libc` names them.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(now.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_advance_by_the_time_that_passes() {
        let (real, steady) = (realtime_ns(), monotonic_ns());
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(monotonic_ns() - steady >= 5_000_000);
        // A step of the wall clock during the test would be the only exception.
        assert!(realtime_ns() - real >= 4_900_000);
    }
}
