//! Periods in which the capture may have lost packets.

use std::collections::VecDeque;

/// Most periods held; beyond that the oldest are taken together.
const PERIODS_CAP: usize = 256;

/// Periods in the order in which they were noted, times in nanoseconds since the Unix epoch.
#[derive(Debug, Default)]
pub(super) struct LossyPeriods {
    periods: VecDeque<(i64, i64)>,
}

impl LossyPeriods {
    pub(super) fn note(&mut self, from: i64, to: i64) {
        let (from, to) = (from.min(to), from.max(to));
        match self.periods.back_mut() {
            Some(last) if last.0 <= to && from <= last.1 => {
                *last = (last.0.min(from), last.1.max(to));
            }
            _ => self.periods.push_back((from, to)),
        }
        if self.periods.len() > PERIODS_CAP
            && let Some(first) = self.periods.pop_front()
            && let Some(second) = self.periods.front_mut()
        {
            *second = (first.0.min(second.0), first.1.max(second.1));
        }
    }

    /// Whether any period has an instant from `from` to `to`.
    pub(super) fn touch(&self, from: i64, to: i64) -> bool {
        self.periods
            .iter()
            .rev()
            .any(|period| period.0 <= to && from <= period.1)
    }
}
