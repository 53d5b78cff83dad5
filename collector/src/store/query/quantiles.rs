//! Quantiles read off counts by size class.

use skewtap_core::clock::Interval;

use crate::store::gap_bin;

/// Quantiles of gaps in nanoseconds, each as the interval that it surely lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantiles {
    /// How many gaps are known.
    pub(crate) known: u64,
    /// Half of the gaps are at most this.
    pub(crate) p50: Interval,
    /// 90 % of the gaps are at most this.
    pub(crate) p90: Interval,
    /// 99 % of the gaps are at most this.
    pub(crate) p99: Interval,
    /// The largest gap.
    pub(crate) max: Interval,
}

impl Quantiles {
    /// Of gaps that were counted by class; `None` when none is known.
    pub(super) fn of(counts: impl IntoIterator<Item = (i64, u64)>) -> Option<Self> {
        let mut known: Vec<(Interval, i64, u64)> = counts
            .into_iter()
            .filter_map(|(bin, count)| Some((gap_bin::bounds(bin)?, bin, count)))
            .collect();
        known.sort_unstable_by_key(|(_, bin, _)| *bin);
        let total: u64 = known.iter().map(|(_, _, count)| count).sum();
        // The smallest gap that at least `percent` of all gaps do not exceed.
        let at = |percent: u64| {
            let rank = total.saturating_mul(percent).div_ceil(100).max(1);
            let mut seen = 0;
            known.iter().find_map(|(within, _, count)| {
                seen += count;
                (seen >= rank).then_some(*within)
            })
        };
        Some(Self {
            known: total,
            p50: at(50)?,
            p90: at(90)?,
            p99: at(99)?,
            max: at(100)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_lies_where_it_is_said(
            mut gaps in proptest::collection::vec(-1_000_000_000_i64..10_000_000_000, 1..200)
        ) {
            let counts: Vec<_> = gaps.iter().map(|gap| (gap_bin::of(Some(*gap)), 1)).collect();
            let quantiles = Quantiles::of(counts).unwrap();
            gaps.sort_unstable();
            let at = |percent: usize| gaps[(gaps.len() * percent).div_ceil(100).max(1) - 1];
            for (percent, said) in [
                (50, quantiles.p50),
                (90, quantiles.p90),
                (99, quantiles.p99),
                (100, quantiles.max),
            ] {
                prop_assert!(said.contains(at(percent)), "{percent}: {} {said:?}", at(percent));
            }
        }
    }

    #[test]
    fn of_gaps_that_nobody_knows_there_are_none() {
        assert_eq!(Quantiles::of([(gap_bin::of(None), 7)]), None);
    }
}
