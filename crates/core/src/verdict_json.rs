//! A verdict as the JSON that the API, `--json` and exported cases share.
//!
//! Times are in seconds, as numbers; what is unknown is null. Every field that
//! is a measurement with bounds is an object with `lo_seconds` and `hi_seconds`.

mod exchange_json;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::clock::Interval;
use crate::exchange::SourceState;
use crate::ledger::{Explanation, Row, Segment};
use crate::verdict::{Bar, Finding, Verdict};

pub use exchange_json::ExchangeJson;

/// A verdict in the form of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct VerdictJson {
    /// The trace.
    pub trace_id: String,
    /// The client's span.
    pub client_span_id: String,
    /// `service.name` of the client.
    pub client_service: Option<String>,
    /// `service.name` of the server.
    pub server_service: Option<String>,
    /// Request method.
    pub method: String,
    /// Request path without the query.
    pub path: String,
    /// Low-cardinality path.
    pub route: Option<String>,
    /// Host and port asked for.
    pub authority: String,
    /// Status of the last exchange.
    pub status: Option<u16>,
    /// How the last exchange ended.
    pub outcome: Cow<'static, str>,
    /// Exchanges under this client span.
    pub exchanges: usize,
    /// First request byte, in nanoseconds since the Unix epoch, as text: it exceeds what a
    /// JSON number holds in many readers.
    pub started_unix_nano: Option<String>,
    /// Length of the client's span.
    pub client_seconds: Option<f64>,
    /// What the client observed, with or without a span.
    pub client_bounds: Option<Bounds>,
    /// Length of the server's span.
    pub server_seconds: Option<f64>,
    /// From the request's first byte to the response's last, between proxy and server.
    pub wire_seconds: Option<f64>,
    /// Client minus server; negative when the server saw more.
    pub gap_seconds: Option<f64>,
    /// Sum of the rows that are unexplained.
    pub unexplained_seconds: Option<f64>,
    /// What the segments add up to.
    pub total_seconds: Option<f64>,
    /// What that total is: `client-span`, `pick-up` or `wire`.
    pub total_from: Option<Cow<'static, str>>,
    /// The rows of the ledger.
    pub segments: Vec<SegmentJson>,
    /// The named causes.
    pub findings: Vec<FindingJson>,
    /// Contradictions.
    pub faults: Vec<StatementJson>,
    /// Whether it deserves attention.
    pub flagged: bool,
    /// What it rests on.
    pub quality: QualityJson,
    /// What to draw.
    pub bars: Vec<BarJson>,
    /// The exchanges with their instants, in order; none in documents older than this field.
    #[serde(default)]
    pub exchanges_detail: Vec<ExchangeJson>,
}

/// A length with bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Bounds {
    /// Lower bound.
    pub lo_seconds: f64,
    /// Upper bound.
    pub hi_seconds: f64,
}

/// A row of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SegmentJson {
    /// Name of the segment.
    pub name: Cow<'static, str>,
    /// Which exchange under the client span it belongs to, counted from 0; null for what belongs
    /// to the span as a whole.
    pub exchange: Option<usize>,
    /// What the ledger counts; the rows add up to `total_seconds`.
    pub seconds: f64,
    /// Lower bound.
    pub lo_seconds: f64,
    /// Upper bound.
    pub hi_seconds: f64,
    /// `ordinary`, `unexplained`, or the name of a cause.
    pub explanation: Cow<'static, str>,
}

/// A named cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FindingJson {
    /// Name of the cause.
    pub cause: Cow<'static, str>,
    /// The segment it explains.
    pub segment: Cow<'static, str>,
    /// Lower bound of the time it explains.
    pub lo_seconds: f64,
    /// Upper bound of the time it explains.
    pub hi_seconds: f64,
    /// `possible`, `likely` or `observed`.
    pub confidence: Cow<'static, str>,
    /// What was observed.
    pub evidence: Vec<StatementJson>,
    /// What would speak against it.
    pub refuted_by: Cow<'static, str>,
}

/// An observation or a contradiction in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StatementJson {
    /// What kind it is.
    pub kind: Cow<'static, str>,
    /// The words.
    pub statement: String,
}

/// What a verdict rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QualityJson {
    /// State of each source: `used`, `off`, or why it was not available.
    pub sources: Option<SourcesJson>,
    /// What is not there and would have sharpened the verdict.
    pub missing: Vec<Cow<'static, str>>,
    /// How far the client's clock is ahead of the proxy's.
    pub client_clock_offset: Option<Bounds>,
    /// How far the server's clock is ahead of the proxy's.
    pub server_clock_offset: Option<Bounds>,
    /// Anything else a reader should know.
    pub notes: Vec<String>,
}

/// State of each source of stamps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SourcesJson {
    /// Kernel receive stamps.
    pub kernel_stamps: String,
    /// Packet capture.
    pub capture: String,
    /// Receive-queue look-ups.
    pub queues: String,
    /// Process samples.
    pub processes: String,
}

/// A bar to draw, in seconds after the first request byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BarJson {
    /// `client`, `wire` or `server`.
    pub lane: Cow<'static, str>,
    /// What it is.
    pub name: String,
    /// Which exchange under the client span it belongs to, counted from 0; null for what belongs
    /// to the span as a whole.
    pub exchange: Option<usize>,
    /// Its earliest start.
    pub start_lo_seconds: f64,
    /// Its latest start.
    pub start_hi_seconds: f64,
    /// Its earliest end.
    pub end_lo_seconds: f64,
    /// Its latest end.
    pub end_hi_seconds: f64,
}

impl From<&Verdict> for VerdictJson {
    fn from(verdict: &Verdict) -> Self {
        let ledger = verdict.ledger.as_ref();
        let client_span = verdict.client.filter(|_| verdict.client_from_span);
        Self {
            trace_id: verdict.trace_id.to_string(),
            client_span_id: verdict.client_span_id.to_string(),
            client_service: verdict.client_service.clone(),
            server_service: verdict.server_service.clone(),
            method: verdict.method.clone(),
            path: verdict.path.clone(),
            route: verdict.route.clone(),
            authority: verdict.authority.clone(),
            status: verdict.status,
            outcome: verdict.outcome.name().into(),
            exchanges: verdict.exchanges,
            started_unix_nano: verdict.started_ns.map(|ns| ns.to_string()),
            client_seconds: client_span.map(|span| seconds(span.lo())),
            client_bounds: verdict.client.map(Bounds::from),
            server_seconds: verdict.server_ns.map(seconds),
            wire_seconds: verdict.wire.map(|wire| seconds(wire.middle())),
            gap_seconds: verdict.gap_ns().map(seconds),
            unexplained_seconds: ledger.map(|ledger| seconds(ledger.unexplained_ns())),
            total_seconds: ledger.map(|ledger| seconds(ledger.total_ns)),
            total_from: ledger.map(|ledger| ledger.total_from.name().into()),
            segments: ledger
                .map(|ledger| ledger.rows.iter().map(SegmentJson::from).collect())
                .unwrap_or_default(),
            findings: verdict.findings.iter().map(FindingJson::from).collect(),
            faults: verdict
                .faults
                .iter()
                .map(|f| StatementJson {
                    kind: f.kind.into(),
                    statement: f.statement.clone(),
                })
                .collect(),
            flagged: verdict.flagged,
            quality: QualityJson::from(verdict),
            bars: verdict.bars.iter().map(BarJson::from).collect(),
            exchanges_detail: exchanges_detail(verdict),
        }
    }
}

fn exchanges_detail(verdict: &Verdict) -> Vec<ExchangeJson> {
    let started_ns = verdict.started_ns.unwrap_or_default();
    let details = verdict.exchanges_detail.iter();
    details
        .map(|detail| ExchangeJson::new(detail, started_ns))
        .collect()
}

impl From<Interval> for Bounds {
    fn from(within: Interval) -> Self {
        Self {
            lo_seconds: seconds(within.lo()),
            hi_seconds: seconds(within.hi()),
        }
    }
}

impl From<&Row> for SegmentJson {
    fn from(row: &Row) -> Self {
        Self {
            name: Segment::name(row.segment).into(),
            exchange: row.exchange,
            seconds: seconds(row.counted_ns),
            lo_seconds: seconds(row.within.lo()),
            hi_seconds: seconds(row.within.hi()),
            explanation: match row.explanation {
                Explanation::Ordinary => "ordinary".into(),
                Explanation::Unexplained => "unexplained".into(),
                Explanation::Cause(cause) => cause.into(),
            },
        }
    }
}

impl From<&Finding> for FindingJson {
    fn from(finding: &Finding) -> Self {
        Self {
            cause: finding.cause.into(),
            segment: finding.segment.name().into(),
            lo_seconds: seconds(finding.within.lo()),
            hi_seconds: seconds(finding.within.hi()),
            confidence: finding.confidence.name().into(),
            evidence: finding
                .evidence
                .iter()
                .map(|e| StatementJson {
                    kind: e.kind.into(),
                    statement: e.statement.clone(),
                })
                .collect(),
            refuted_by: finding.refuted_by.into(),
        }
    }
}

impl From<&Verdict> for QualityJson {
    fn from(verdict: &Verdict) -> Self {
        let quality = &verdict.quality;
        Self {
            sources: quality.sources.as_ref().map(|sources| SourcesJson {
                kernel_stamps: source_state(&sources.kernel_stamps),
                capture: source_state(&sources.capture),
                queues: source_state(&sources.queues),
                processes: source_state(&sources.processes),
            }),
            missing: quality.missing.iter().map(|what| (*what).into()).collect(),
            client_clock_offset: quality.client_clock.map(|offset| offset.bounds().into()),
            server_clock_offset: quality.server_clock.map(|offset| offset.bounds().into()),
            notes: quality.notes.clone(),
        }
    }
}

impl From<&Bar> for BarJson {
    fn from(bar: &Bar) -> Self {
        Self {
            lane: bar.lane.name().into(),
            name: bar.name.clone(),
            exchange: bar.exchange,
            start_lo_seconds: seconds(bar.start.lo()),
            start_hi_seconds: seconds(bar.start.hi()),
            end_lo_seconds: seconds(bar.end.lo()),
            end_hi_seconds: seconds(bar.end.hi()),
        }
    }
}

fn source_state(state: &SourceState) -> String {
    match state {
        SourceState::Used => "used".to_owned(),
        SourceState::Off => "off".to_owned(),
        SourceState::Unavailable(why) => why.clone(),
    }
}

/// Nanoseconds as seconds; a double holds a length of 100 days to the nanosecond.
fn seconds(ns: i64) -> f64 {
    let whole = ns / 1_000_000_000;
    let rest = ns % 1_000_000_000;
    #[expect(
        clippy::cast_precision_loss,
        reason = "a double has more digits than a length needs"
    )]
    let value = whole as f64 + rest as f64 / 1e9;
    value
}
