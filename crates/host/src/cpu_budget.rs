//! Keeps a thread's CPU time within a share of one core.

/// A thread's account: wall time pays in, CPU time draws, and the thread pauses while it is
/// overdrawn. Saved-up time is capped, so that a burst after a long rest stays short.
#[derive(Debug)]
pub(crate) struct CpuBudget {
    percent: i64,
    balance_ns: i64,
    seen_wall_ns: i64,
    seen_cpu_ns: i64,
}

/// Wall time whose share may be saved up, in nanoseconds.
const SAVED_FROM_NS: i64 = 2_000_000_000;

impl CpuBudget {
    /// An account of `percent` of a core, full at the start. Both clocks in nanoseconds.
    pub(crate) fn new(percent: u32, wall_ns: i64, cpu_ns: i64) -> Self {
        let percent = i64::from(percent.clamp(1, 100));
        Self {
            percent,
            balance_ns: Self::most(percent),
            seen_wall_ns: wall_ns,
            seen_cpu_ns: cpu_ns,
        }
    }

    /// Settles the account; returns how long to pause until it is no longer overdrawn, in
    /// nanoseconds, 0 for not at all.
    pub(crate) fn settle(&mut self, wall_ns: i64, cpu_ns: i64) -> u64 {
        let paid_in = wall_ns.saturating_sub(self.seen_wall_ns) / 100 * self.percent;
        let drawn = cpu_ns.saturating_sub(self.seen_cpu_ns);
        self.seen_wall_ns = wall_ns;
        self.seen_cpu_ns = cpu_ns;
        let balance = self
            .balance_ns
            .saturating_add(paid_in)
            .saturating_sub(drawn);
        self.balance_ns = balance.min(Self::most(self.percent));
        let overdrawn = u64::try_from(self.balance_ns.saturating_neg()).unwrap_or(0);
        overdrawn.saturating_mul(100) / self.percent.unsigned_abs()
    }

    const fn most(percent: i64) -> i64 {
        SAVED_FROM_NS / 100 * percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_thread_that_never_rests_is_held_to_its_share() {
        let mut budget = CpuBudget::new(2, 0, 0);
        let (mut wall, mut cpu) = (0, 0);
        while wall < 100_000 * MS {
            wall += MS;
            cpu += MS;
            wall += i64::try_from(budget.settle(wall, cpu)).unwrap();
        }
        let above = cpu - wall / 50;
        assert!(above <= 41 * MS, "{above} ns above the share");
        assert!(cpu >= wall / 50);
    }

    #[test]
    fn a_rest_saves_up_no_more_than_the_share_of_two_seconds() {
        let mut budget = CpuBudget::new(2, 0, 0);
        assert_eq!(budget.settle(3_600_000 * MS, 0), 0);
        assert_eq!(budget.settle(3_600_000 * MS, 40 * MS), 0);
        assert_eq!(budget.settle(3_600_000 * MS, 41 * MS), 50 * 1_000_000);
    }

    #[test]
    fn a_clock_that_jumps_does_not_break_it() {
        let mut budget = CpuBudget::new(0, 0, 0);
        budget.settle(i64::MAX, i64::MIN);
        budget.settle(i64::MIN, i64::MAX);
    }
}
