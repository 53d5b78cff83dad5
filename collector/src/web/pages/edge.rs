//! The page of one edge: how its gaps are distributed, and whether its client's lags have a rhythm.

mod gap_charts;
mod lag_chart;
mod size_classes;

use askama::Template;

use self::lag_chart::Rhythm;
use super::chart::Chart;
use super::edge_address::EdgeAddress;
use super::format::about;
use super::since::{self, Choice};
use crate::store::query::aggregates::{Edges, GapHistogram, GapSeries};
use crate::store::query::scatter::Scatter;

/// The page.
#[derive(Clone, Debug, Template)]
#[template(path = "edge.html")]
pub(super) struct EdgePage {
    client: String,
    server: String,
    route: String,
    /// What the form sends along, so that it stays on this edge.
    fields: Vec<(&'static str, String)>,
    since: Vec<Choice>,
    list_href: String,
    exchanges: u64,
    flagged: u64,
    median: Option<String>,
    p99: Option<String>,
    largest: Option<String>,
    rhythm: Rhythm,
    lag: Chart,
    gaps: Chart,
    quantiles: Chart,
    sizes: Chart,
    /// How many exchanges are drawn as points, if that is not all.
    drawn: Option<usize>,
}

/// What the store says of an edge.
pub(super) struct Seen {
    /// Its sums; several where not all of its names were given.
    pub(super) sums: Edges,
    /// Its gaps over time.
    pub(super) gaps: GapSeries,
    /// Its gaps by size.
    pub(super) sizes: GapHistogram,
    /// Its exchanges one by one.
    pub(super) points: Scatter,
}

impl EdgePage {
    /// The page on what was `seen` of an edge in the last `since`, as an address has it.
    pub(super) fn of(address: &EdgeAddress, since: &str, seen: &Seen) -> Self {
        let edges = &seen.sums.edges;
        let points = &seen.points.points;
        // Quantiles of several edges do not add up to those of all.
        let gap = match edges.as_slice() {
            [edge] => edge.gap,
            _ => None,
        };
        let rhythm = lag_chart::rhythm(points);
        Self {
            client: address.client(),
            server: address.server(),
            route: address.route(),
            fields: address.parameters(),
            since: since::bounded_choices(since),
            list_href: address.list_href(),
            exchanges: edges.iter().map(|edge| edge.exchanges).sum(),
            flagged: edges.iter().map(|edge| edge.flagged).sum(),
            median: gap.map(|gap| about(gap.p50)),
            p99: gap.map(|gap| about(gap.p99)),
            largest: gap.map(|gap| about(gap.max)),
            lag: lag_chart::chart(points, &rhythm),
            rhythm,
            gaps: gap_charts::points(points),
            quantiles: gap_charts::quantiles(&seen.gaps),
            sizes: size_classes::chart(&seen.sizes),
            drawn: seen.points.is_sample.then_some(points.len()),
        }
    }
}
