//! The first page: what is flagged now, by edge and by cause, over time.

use std::collections::BTreeMap;

use askama::Template;

use super::chart::Chart;
use super::edge_address::EdgeAddress;
use super::format::about;
use super::list::{self, RowView};
use super::over_time::{self, UNEXPLAINED};
use super::since::{self, Choice};
use crate::collector::Addresses;
use crate::store::query::Page;
use crate::store::query::aggregates::{CauseSeries, EdgeSummary, Edges, GapSeries};

/// Edges that the page lists.
const MOST_EDGES: usize = 50;

/// The latest flagged exchanges that the page lists.
pub(super) const LATEST: usize = 10;

/// The page.
#[derive(Clone, Debug, Template)]
#[template(path = "overview.html")]
pub(super) struct OverviewPage {
    since: Vec<Choice>,
    /// Nothing was ever seen: the page says how to begin.
    is_new: bool,
    is_narrowed: bool,
    addresses: Addresses,
    exchanges: u64,
    flagged: u64,
    flagged_edges: usize,
    all_edges: usize,
    over_time: Chart,
    edges: Vec<EdgeView>,
    edges_left_out: usize,
    causes: Vec<CauseView>,
    latest: Vec<RowView>,
}

#[derive(Clone, Debug)]
struct EdgeView {
    href: String,
    client: String,
    server: String,
    route: String,
    exchanges: u64,
    flagged: u64,
    median: Option<String>,
    p99: Option<String>,
}

#[derive(Clone, Debug)]
struct CauseView {
    name: String,
    /// The list of its exchanges.
    href: Option<String>,
    exchanges: u64,
}

/// What the store says of the time that the page shows.
pub(super) struct Seen {
    /// Whether the store holds any exchange, of whatever time.
    pub(super) any: bool,
    /// The edges.
    pub(super) edges: Edges,
    /// The gaps.
    pub(super) gaps: GapSeries,
    /// The causes.
    pub(super) causes: CauseSeries,
    /// The latest flagged exchanges.
    pub(super) latest: Page,
}

impl OverviewPage {
    /// The page on `seen`, which began in the last `since`, as an address has it.
    pub(super) fn of(since: &str, addresses: Addresses, seen: &Seen) -> Self {
        let edges = &seen.edges.edges;
        let sum = |of: fn(&EdgeSummary) -> u64| edges.iter().map(of).fold(0, u64::saturating_add);
        let flagged = sum(|edge| edge.flagged);
        Self {
            since: since::bounded_choices(since),
            is_new: !seen.any,
            is_narrowed: false,
            addresses,
            exchanges: sum(|edge| edge.exchanges),
            flagged,
            flagged_edges: edges.iter().filter(|edge| edge.flagged > 0).count(),
            all_edges: edges.len().saturating_add(seen.edges.left_out),
            over_time: over_time::chart(&seen.causes, &seen.gaps),
            edges: edges
                .iter()
                .take(MOST_EDGES)
                .map(|edge| edge_view(edge, since))
                .collect(),
            edges_left_out: edges
                .len()
                .saturating_sub(MOST_EDGES)
                .saturating_add(seen.edges.left_out),
            causes: causes(edges, flagged),
            latest: seen.latest.verdicts.iter().filter_map(list::row).collect(),
        }
    }
}

fn edge_view(edge: &EdgeSummary, since: &str) -> EdgeView {
    let address = EdgeAddress::of(edge);
    EdgeView {
        href: address.href(since),
        client: address.client(),
        server: address.server(),
        route: address.route(),
        exchanges: edge.exchanges,
        flagged: edge.flagged,
        median: edge.gap.map(|gap| about(gap.p50)),
        p99: edge.gap.map(|gap| about(gap.p99)),
    }
}

/// Every cause, the most frequent first, and what was flagged without one.
fn causes(edges: &[EdgeSummary], flagged: u64) -> Vec<CauseView> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (cause, exchanges) in edges.iter().flat_map(|edge| &edge.causes) {
        let sum = sums.entry(cause).or_default();
        *sum = sum.saturating_add(*exchanges);
    }
    let explained = sums.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
    let mut causes: Vec<_> = sums.into_iter().collect();
    causes.sort_by_key(|(_, exchanges)| std::cmp::Reverse(*exchanges));
    let mut views: Vec<CauseView> = causes
        .into_iter()
        .map(|(cause, exchanges)| CauseView {
            name: cause.to_owned(),
            href: Some(list::href_of_cause(cause)),
            exchanges,
        })
        .collect();
    let rest = flagged.saturating_sub(explained);
    if rest > 0 {
        views.push(CauseView {
            name: UNEXPLAINED.to_owned(),
            href: None,
            exchanges: rest,
        });
    }
    views
}
