//! How far a peer's clock is ahead of the proxy's, agreed on by many exchanges.
//!
//! Each exchange bounds the offset by causality alone: a cause comes before its
//! effect. Single bounds may be wrong (a mismatched span, a paused machine), so
//! the answer is what most of the narrowest recent bounds have in common:
//! Marzullo's intersection ("Maintaining the time in a distributed system",
//! 1984), with the second-best edge on either side so that one wrong witness
//! cannot narrow it.

use std::collections::BTreeMap;

use crate::clock::Interval;

/// Bins are this long; within one only the narrowest bounds are kept.
const BIN_NS: i64 = 1_000_000_000;
/// Bounds kept in a bin: narrow ones had the least queueing in them.
const KEPT_PER_BIN: usize = 8;
/// How far to look on either side for witnesses, first and at most.
const NEAR_NS: i64 = 30 * BIN_NS;
const FAR_NS: i64 = 150 * BIN_NS;
/// Witnesses enough to stop looking further away.
const ENOUGH: usize = 8;
/// Fewer witnesses than this agree on nothing.
const LEAST: usize = 3;

/// What one exchange says of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Middle of the exchange, in nanoseconds on the proxy's clock.
    pub at_ns: i64,
    /// Half the length of the exchange, in nanoseconds: drift may have moved the offset meanwhile.
    pub half_ns: i64,
    /// Peer minus proxy, in nanoseconds.
    pub bounds: Interval,
}

/// The bounds that recent exchanges put on one peer's clock.
///
/// Holds at most eight bounds for each second of the last five minutes. The answer does not
/// depend on the order in which the constraints came.
#[derive(Clone, Debug)]
pub struct Consensus {
    drift_ppm: i64,
    bins: BTreeMap<i64, Vec<Constraint>>,
}

impl Consensus {
    /// An estimator for a clock that drifts by at most `drift_ppm` against the proxy's.
    #[must_use]
    pub fn new(drift_ppm: i64) -> Self {
        Self {
            drift_ppm,
            bins: BTreeMap::new(),
        }
    }

    /// Takes what one more exchange says.
    pub fn add(&mut self, constraint: Constraint) {
        let bin = self
            .bins
            .entry(constraint.at_ns.div_euclid(BIN_NS))
            .or_default();
        let order = |c: &Constraint| (c.bounds.width(), c.at_ns, c.bounds.lo(), c.half_ns);
        if let Err(at) = bin.binary_search_by_key(&order(&constraint), order) {
            bin.insert(at, constraint);
            bin.truncate(KEPT_PER_BIN);
        }
        if let Some(newest) = self.bins.keys().next_back().copied() {
            self.bins = self.bins.split_off(&(newest - 2 * FAR_NS / BIN_NS));
        }
    }

    /// The bounds around `at_ns`, or `None` where too few witnesses agree.
    #[must_use]
    pub fn bounds_at(&self, at_ns: i64) -> Option<Interval> {
        let mut reach = NEAR_NS;
        let mut witnesses = self.witnesses(at_ns, reach);
        while witnesses.len() < ENOUGH && reach < FAR_NS {
            reach += NEAR_NS;
            witnesses = self.witnesses(at_ns, reach);
        }
        agreed(&witnesses)
    }

    /// Bounds within `reach` of `at_ns`, widened by what drift may have done since.
    fn witnesses(&self, at_ns: i64, reach: i64) -> Vec<Interval> {
        let first = at_ns.saturating_sub(reach).div_euclid(BIN_NS);
        let last = at_ns.saturating_add(reach).div_euclid(BIN_NS);
        self.bins
            .range(first..=last)
            .flat_map(|(_, bin)| bin)
            .map(|c| {
                let away = at_ns
                    .saturating_sub(c.at_ns)
                    .saturating_abs()
                    .saturating_add(c.half_ns);
                c.bounds
                    .widened(away.saturating_add(999_999) / 1_000_000 * self.drift_ppm)
            })
            .collect()
    }
}

/// What at least three, and at least 60 %, of the intervals have in common, loosened to the
/// second-highest lower and second-lowest upper edge.
fn agreed(intervals: &[Interval]) -> Option<Interval> {
    let (count, at) = most_overlapped(intervals)?;
    if count < LEAST || count * 10 < intervals.len() * 6 {
        return None;
    }
    let agreeing = intervals.iter().filter(|i| i.contains(at));
    let mut lows: Vec<i64> = agreeing.clone().map(|i| i.lo()).collect();
    let mut highs: Vec<i64> = agreeing.map(|i| i.hi()).collect();
    lows.sort_unstable_by(|a, b| b.cmp(a));
    highs.sort_unstable();
    Some(Interval::between(*lows.get(1)?, *highs.get(1)?))
}

/// The point that the most intervals contain, and how many do.
fn most_overlapped(intervals: &[Interval]) -> Option<(usize, i64)> {
    // At one point, an interval that begins there is counted before one that ends there.
    let mut edges: Vec<(i64, bool)> = intervals
        .iter()
        .flat_map(|i| [(i.lo(), false), (i.hi(), true)])
        .collect();
    edges.sort_unstable();
    let (mut open, mut best) = (0_usize, None);
    for (at, is_end) in edges {
        if is_end {
            open = open.saturating_sub(1);
        } else {
            open += 1;
            if best.is_none_or(|(count, _)| open > count) {
                best = Some((open, at));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn consensus_of(drift_ppm: i64, constraints: &[(i64, i64, i64)]) -> Consensus {
        let mut consensus = Consensus::new(drift_ppm);
        for (at_ns, lo, hi) in constraints {
            let bounds = Interval::between(*lo, *hi);
            consensus.add(Constraint {
                at_ns: *at_ns,
                half_ns: 0,
                bounds,
            });
        }
        consensus
    }

    #[test]
    fn the_second_best_edges_bound_what_all_share() {
        let consensus = consensus_of(
            0,
            &[(0, MS, 4 * MS), (1, 2 * MS, 5 * MS), (2, 3 * MS, 6 * MS)],
        );
        assert_eq!(
            consensus.bounds_at(0),
            Some(Interval::between(2 * MS, 5 * MS))
        );
    }

    #[test]
    fn an_outlier_changes_nothing() {
        let consensus = consensus_of(
            0,
            &[
                (0, MS, 4 * MS),
                (1, 2 * MS, 5 * MS),
                (2, 3 * MS, 6 * MS),
                (3, 100 * MS, 101 * MS),
            ],
        );
        assert_eq!(
            consensus.bounds_at(0),
            Some(Interval::between(2 * MS, 5 * MS))
        );
    }

    #[test]
    fn disjoint_halves_agree_on_nothing() {
        let low = [(0, 0, MS), (1, 0, MS), (2, 0, MS)];
        let high = [
            (3, 9 * MS, 10 * MS),
            (4, 9 * MS, 10 * MS),
            (5, 9 * MS, 10 * MS),
        ];
        assert_eq!(consensus_of(0, &[low, high].concat()).bounds_at(0), None);
    }

    #[test]
    fn old_bounds_widen_by_drift() {
        let at = 10 * BIN_NS;
        let same = [(0, 0, MS), (1, 0, MS), (2, 0, MS)];
        let bounds = consensus_of(200, &same).bounds_at(at).unwrap();
        assert_eq!(bounds, Interval::between(-2 * MS, 3 * MS));
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let there = [(0, MS, 4 * MS), (1, 2 * MS, 5 * MS), (2, 3 * MS, 6 * MS)];
        let mut back = there;
        back.reverse();
        let twice = [there, back].concat();
        let expected = consensus_of(200, &there).bounds_at(7 * MS);
        assert!(expected.is_some());
        assert_eq!(consensus_of(200, &back).bounds_at(7 * MS), expected);
        assert_eq!(consensus_of(200, &twice).bounds_at(7 * MS), expected);
    }

    #[test]
    fn memory_is_bounded() {
        let mut consensus = Consensus::new(200);
        for n in 0..100_000_i64 {
            let bounds = Interval::between(n % 7, 50 + n % 11);
            consensus.add(Constraint {
                at_ns: n * 10 * MS,
                half_ns: 0,
                bounds,
            });
        }
        let kept: usize = consensus.bins.values().map(Vec::len).sum();
        assert!(kept <= 301 * KEPT_PER_BIN, "{kept} constraints kept");
    }
}
