//! Sums over many exchanges as JSON. Times are in seconds since the Unix epoch, lengths in
//! seconds; what is unknown is null.

use std::collections::BTreeMap;

use serde::Serialize;
use skewtap_core::clock::Interval;
use skewtap_core::verdict_json::Bounds;
use utoipa::ToSchema;

use crate::peer_clocks::PeerReport;
use crate::store::query::Quantiles;
use crate::store::query::aggregates::{
    CauseSeries, EdgeSummary, Edges, GapHistogram, GapSeries, Window,
};
use crate::store::query::scatter::{Point, Scatter};

/// The stretch of time that is summed up; for sums, the one asked for, rounded outward to whole
/// minutes, or to whole hours when it is longer than twelve.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Covered {
    /// Exchanges that began at or after this.
    since_unix_seconds: f64,
    /// Exchanges that began before this.
    until_unix_seconds: f64,
}

/// Quantiles of gaps, each with the bounds that it surely lies in.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QuantilesJson {
    /// How many gaps are known.
    known: u64,
    /// Half of the gaps are at most this.
    p50: Bounds,
    /// 90 % of the gaps are at most this.
    p90: Bounds,
    /// 99 % of the gaps are at most this.
    p99: Bounds,
    /// The largest gap.
    max: Bounds,
}

/// What was seen on each edge: who called whom, for what.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EdgesJson {
    covered: Covered,
    /// The edges, those with most flagged exchanges first; at most 1000.
    edges: Vec<EdgeJson>,
    /// Edges beyond those.
    left_out: usize,
}

/// What was seen on one edge.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EdgeJson {
    /// `service.name` of the client.
    client_service: Option<String>,
    /// `service.name` of the server.
    server_service: Option<String>,
    /// Low-cardinality path.
    route: Option<String>,
    /// Exchanges.
    exchanges: u64,
    /// Flagged ones among them.
    flagged: u64,
    /// Client minus server; null when no gap is known.
    gap: Option<QuantilesJson>,
    /// Exchanges by cause.
    causes: BTreeMap<String, u64>,
}

/// Gaps over time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GapSeriesJson {
    covered: Covered,
    /// Length of each period.
    step_seconds: i64,
    /// Periods in which exchanges began, oldest first.
    periods: Vec<GapPeriodJson>,
}

/// The gaps of one period.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GapPeriodJson {
    /// Its start.
    start_unix_seconds: f64,
    /// Exchanges.
    exchanges: u64,
    /// Flagged ones among them.
    flagged: u64,
    /// Client minus server; null when no gap is known.
    gap: Option<QuantilesJson>,
}

/// How many exchanges had which gap.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GapHistogramJson {
    covered: Covered,
    /// Size classes that occurred, smallest gap first. A class spans an eighth of its lower bound.
    bins: Vec<GapBinJson>,
    /// Exchanges whose gap is not known.
    unknown: u64,
}

/// One size class.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GapBinJson {
    /// Its shortest gap.
    lo_seconds: f64,
    /// Its longest gap.
    hi_seconds: f64,
    /// Exchanges.
    exchanges: u64,
    /// Flagged ones among them.
    flagged: u64,
}

/// Findings over time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CauseSeriesJson {
    covered: Covered,
    /// Length of each period.
    step_seconds: i64,
    /// Periods with findings, oldest first, and by cause within one period.
    periods: Vec<CausePeriodJson>,
}

/// The findings of one cause in one period.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CausePeriodJson {
    /// Its start.
    start_unix_seconds: f64,
    /// The cause.
    cause: String,
    /// Exchanges it was found in.
    exchanges: u64,
}

/// Single exchanges: how long the server took, and how long the client lagged behind it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScatterJson {
    covered: Covered,
    /// The exchanges, oldest first; at most 2000.
    points: Vec<PointJson>,
    /// Whether there are more exchanges than points. Each hundredth of the time covered then
    /// shows the first that began in it, up to the same number in each; of more than 20 edges,
    /// those met first.
    is_sample: bool,
}

/// One exchange.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PointJson {
    /// The trace.
    trace_id: String,
    /// The client's span.
    client_span_id: String,
    /// When it began.
    started_unix_seconds: f64,
    /// Length of the server's span.
    server_seconds: Option<f64>,
    /// From request out to response in, between proxy and server.
    wire_seconds: Option<f64>,
    /// What the client surely took after the response had been passed on to it.
    lag_seconds: Option<f64>,
    /// Client minus server.
    gap_seconds: Option<f64>,
    /// Whether it is flagged.
    flagged: bool,
}

/// How far the clocks of clients and servers are from the proxy's.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClocksJson {
    /// Clients and servers, those heard of last first; at most 1000.
    peers: Vec<PeerJson>,
}

/// One process on one side of exchanges.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PeerJson {
    /// `client` or `server`.
    side: &'static str,
    /// `service.name`.
    service: String,
    /// What tells it from others of that name.
    instance: String,
    /// When it was last heard of, on the proxy's clock.
    heard_unix_seconds: f64,
    /// How far its clock was ahead of the proxy's then; null where too few exchanges agree.
    ahead: Option<Bounds>,
}

impl From<Window> for Covered {
    fn from(window: Window) -> Self {
        Self {
            since_unix_seconds: seconds(window.since_ns),
            until_unix_seconds: seconds(window.until_ns),
        }
    }
}

impl From<Quantiles> for QuantilesJson {
    fn from(quantiles: Quantiles) -> Self {
        Self {
            known: quantiles.known,
            p50: quantiles.p50.into(),
            p90: quantiles.p90.into(),
            p99: quantiles.p99.into(),
            max: quantiles.max.into(),
        }
    }
}

impl From<&Edges> for EdgesJson {
    fn from(edges: &Edges) -> Self {
        Self {
            covered: edges.covered.into(),
            edges: edges.edges.iter().map(EdgeJson::from).collect(),
            left_out: edges.left_out,
        }
    }
}

impl From<&EdgeSummary> for EdgeJson {
    fn from(edge: &EdgeSummary) -> Self {
        Self {
            client_service: edge.client_service.clone(),
            server_service: edge.server_service.clone(),
            route: edge.route.clone(),
            exchanges: edge.exchanges,
            flagged: edge.flagged,
            gap: edge.gap.map(QuantilesJson::from),
            causes: edge.causes.clone(),
        }
    }
}

impl From<&GapSeries> for GapSeriesJson {
    fn from(series: &GapSeries) -> Self {
        let periods = series.periods.iter().map(|period| GapPeriodJson {
            start_unix_seconds: seconds(period.start_ns),
            exchanges: period.exchanges,
            flagged: period.flagged,
            gap: period.gap.map(QuantilesJson::from),
        });
        Self {
            covered: series.covered.into(),
            step_seconds: series.step_s,
            periods: periods.collect(),
        }
    }
}

impl From<&GapHistogram> for GapHistogramJson {
    fn from(histogram: &GapHistogram) -> Self {
        let bins = histogram.bins.iter().map(|bin| {
            let Bounds {
                lo_seconds,
                hi_seconds,
            } = bin.within.into();
            GapBinJson {
                lo_seconds,
                hi_seconds,
                exchanges: bin.exchanges,
                flagged: bin.flagged,
            }
        });
        Self {
            covered: histogram.covered.into(),
            bins: bins.collect(),
            unknown: histogram.unknown,
        }
    }
}

impl From<&CauseSeries> for CauseSeriesJson {
    fn from(series: &CauseSeries) -> Self {
        let periods = series.periods.iter().map(|period| CausePeriodJson {
            start_unix_seconds: seconds(period.start_ns),
            cause: period.cause.clone(),
            exchanges: period.exchanges,
        });
        Self {
            covered: series.covered.into(),
            step_seconds: series.step_s,
            periods: periods.collect(),
        }
    }
}

impl ScatterJson {
    /// Of the exchanges of `window`.
    pub(super) fn new(window: Window, scatter: &Scatter) -> Self {
        Self {
            covered: window.into(),
            points: scatter.points.iter().map(PointJson::from).collect(),
            is_sample: scatter.is_sample,
        }
    }
}

impl From<&Point> for PointJson {
    fn from(point: &Point) -> Self {
        Self {
            trace_id: point.trace_id.to_string(),
            client_span_id: point.client_span_id.to_string(),
            started_unix_seconds: seconds(point.started_ns),
            server_seconds: point.server_ns.map(seconds),
            wire_seconds: point.wire_ns.map(seconds),
            lag_seconds: point.lag_ns.map(seconds),
            gap_seconds: point.gap_ns.map(seconds),
            flagged: point.flagged,
        }
    }
}

impl From<Vec<PeerReport>> for ClocksJson {
    fn from(reports: Vec<PeerReport>) -> Self {
        let peers = reports.into_iter().map(|report| PeerJson {
            side: if report.is_client { "client" } else { "server" },
            service: report.service,
            instance: report.instance,
            heard_unix_seconds: seconds(report.heard_ns),
            ahead: report.ahead_ns.map(Bounds::from),
        });
        Self {
            peers: peers.collect(),
        }
    }
}

/// Nanoseconds as seconds. Of a length up to 100 days none is lost; of a time in our days less
/// than a microsecond.
pub(super) fn seconds(ns: i64) -> f64 {
    Bounds::from(Interval::exactly(ns)).lo_seconds
}
