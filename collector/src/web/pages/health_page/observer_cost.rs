//! What the proxy itself cost the exchanges it watched.

use skewtap_core::ledger::Segment;
use skewtap_core::verdict_json::VerdictJson;

use crate::web::pages::format::{Digits, lower_bound, nanoseconds, upper_bound};
use crate::web::pages::segment_words::title;

/// The proxy's time on one leg, over many exchanges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CostView {
    /// The leg.
    pub(super) title: &'static str,
    /// Exchanges in which it was measured.
    pub(super) exchanges: usize,
    /// Median of the lower bounds.
    pub(super) at_least: Digits,
    /// Median of the upper bounds.
    pub(super) at_most: Digits,
    /// The largest upper bound.
    pub(super) largest: Digits,
}

/// Both legs, as far as they were measured.
pub(super) fn of(verdicts: &[VerdictJson]) -> Vec<CostView> {
    [Segment::ProxyRequest, Segment::ProxyResponse]
        .into_iter()
        .filter_map(|segment| cost(verdicts, segment))
        .collect()
}

fn cost(verdicts: &[VerdictJson], segment: Segment) -> Option<CostView> {
    let rows = verdicts.iter().flat_map(|verdict| &verdict.segments);
    let rows: Vec<_> = rows.filter(|row| row.name == segment.name()).collect();
    let sorted = |of: fn(&&skewtap_core::verdict_json::SegmentJson) -> f64| {
        let mut lengths: Vec<i64> = rows.iter().map(|row| nanoseconds(of(row))).collect();
        lengths.sort_unstable();
        lengths
    };
    let (lows, highs) = (sorted(|row| row.lo_seconds), sorted(|row| row.hi_seconds));
    Some(CostView {
        title: title(segment),
        exchanges: rows.len(),
        at_least: lower_bound(*lows.get(lows.len() / 2)?),
        at_most: upper_bound(*highs.get(highs.len() / 2)?),
        largest: upper_bound(*highs.last()?),
    })
}
