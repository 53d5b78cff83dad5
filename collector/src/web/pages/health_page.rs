//! The page on what the measurement rests on: sources, what they lack, drops, and own cost.

mod counters;
mod observer_cost;
mod source_states;

use askama::Template;
use skewtap_core::verdict_json::VerdictJson;

use self::counters::CounterView;
use self::observer_cost::CostView;
use self::source_states::{MissingView, SourceView};
use crate::collector::Addresses;
use crate::store::query::Page;

/// Exchanges that the page looks at, the latest ones.
pub(super) const LOOKED_AT: usize = 200;

/// The page.
#[derive(Clone, Debug, Template)]
#[template(path = "health.html")]
pub(super) struct HealthPage {
    trouble: Option<String>,
    addresses: Addresses,
    looked_at: usize,
    sources: Vec<SourceView>,
    missing: Vec<MissingView>,
    costs: Vec<CostView>,
    drops: Vec<CounterView>,
    others: Vec<CounterView>,
}

impl HealthPage {
    /// The page on the latest exchanges and the collector's own metrics in text form.
    /// `trouble` is why the store cannot be written.
    pub(super) fn of(
        trouble: Option<String>,
        addresses: Addresses,
        latest: &Page,
        metrics: &str,
    ) -> Self {
        let verdicts: Vec<VerdictJson> = latest
            .verdicts
            .iter()
            .filter_map(|stored| serde_json::from_str(&stored.document).ok())
            .collect();
        let (drops, others) = counters::of(metrics);
        Self {
            trouble,
            addresses,
            looked_at: verdicts.len(),
            sources: source_states::sources(&verdicts),
            missing: source_states::missing(&verdicts),
            costs: observer_cost::of(&verdicts),
            drops,
            others,
        }
    }
}
