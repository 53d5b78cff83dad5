//! What the two threads of the watcher have in common: exact timers and a share of a core.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use skewtap_sockstamp::monotonic_ns;

use crate::cpu_budget::CpuBudget;

/// How late the kernel may wake the thread to save power, in nanoseconds; 50,000 is usual.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN.saturating_add(999);

/// Longest single pause, so that a thread that is to end is not waited for long.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The pace of the current thread.
#[derive(Debug)]
pub(crate) struct Pace {
    budget: CpuBudget,
}

impl Pace {
    /// Sets the current thread's timers to be exact, and opens its account of CPU time.
    pub(crate) fn of_this_thread(percent: u32) -> Self {
        if let Err(error) = set_current_timer_slack(Some(TIMER_SLACK_NS)) {
            tracing::debug!(%error, "timers stay inexact");
        }
        Self {
            budget: CpuBudget::new(percent, monotonic_ns(), cpu_ns()),
        }
    }

    /// Notes the CPU time used so far, and sleeps while more than the share is used up, up to a
    /// tenth of a second; returns whether it is used up still. Nothing wakes the thread from this
    /// sleep, so that many events do not cost more than few.
    pub(crate) fn pause(&mut self, used_ns: &AtomicI64) -> bool {
        let used = cpu_ns();
        used_ns.store(used, Ordering::Relaxed);
        let overdrawn = Duration::from_nanos(self.budget.settle(monotonic_ns(), used));
        if !overdrawn.is_zero() {
            std::thread::sleep(overdrawn.min(LONGEST_PAUSE));
        }
        overdrawn > LONGEST_PAUSE
    }
}

fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(time.tv_nsec)
}
