//! The page of one exchange.

use askama::Template;
use skewtap_core::verdict_json::{Bounds, VerdictJson};

use super::edge_address::EdgeAddress;
use super::format::{Digits, Instant, instant, lower_bound, nanoseconds, upper_bound, within};
use super::headline::{self, Headline};
use super::ledger_table::{self, LedgerTable};
use super::segment_words::{named, title};
use super::waterfall::{self, Waterfall};

/// The page.
#[derive(Clone, Debug, Template)]
#[template(path = "exchange.html")]
pub(super) struct ExchangePage {
    verdict: VerdictJson,
    path: String,
    headline: Headline,
    started: Option<Instant>,
    waterfall: Option<Waterfall>,
    close_up: Option<Waterfall>,
    bars: Vec<BarRow>,
    ledger: Option<LedgerTable>,
    findings: Vec<FindingView>,
    missing: Vec<String>,
    sources: Vec<SourceView>,
    clocks: Vec<ClockView>,
    edge_href: String,
    json_href: String,
    case_href: String,
}

/// A row of the table that says what the drawing shows.
#[derive(Clone, Debug)]
struct BarRow {
    lane: String,
    name: String,
    start: (Digits, Digits),
    end: (Digits, Digits),
}

#[derive(Clone, Debug)]
struct FindingView {
    cause: String,
    confidence: String,
    /// The segment it explains, in words.
    segment: String,
    length: String,
    /// Kind and statement.
    evidence: Vec<(String, String)>,
    refuted_by: String,
}

#[derive(Clone, Debug)]
struct SourceView {
    name: &'static str,
    state: String,
    used: bool,
}

#[derive(Clone, Debug)]
struct ClockView {
    whose: &'static str,
    /// Lower and upper bound; `None` when nothing bounds it.
    bounds: Option<(Digits, Digits)>,
}

impl ExchangePage {
    /// The page of a verdict.
    pub(super) fn of(verdict: VerdictJson) -> Self {
        let quality = &verdict.quality;
        let clocks = [
            ("client", quality.client_clock_offset),
            ("server", quality.server_clock_offset),
        ];
        Self {
            path: path(&verdict),
            headline: headline::of(&verdict),
            started: verdict
                .started_unix_nano
                .as_deref()
                .and_then(|ns| ns.parse().ok())
                .and_then(instant),
            waterfall: Waterfall::of(&verdict),
            close_up: Waterfall::close_up(&verdict),
            bars: bar_rows(&verdict),
            ledger: ledger_table::of(&verdict),
            findings: findings(&verdict),
            missing: quality.missing.iter().map(|what| missing(what)).collect(),
            sources: sources(&verdict),
            clocks: clocks.map(|(whose, bounds)| clock(whose, bounds)).to_vec(),
            edge_href: EdgeAddress::of_verdict(&verdict).href("24h"),
            json_href: api_href(&verdict, ""),
            case_href: api_href(&verdict, "/case"),
            verdict,
        }
    }
}

fn api_href(verdict: &VerdictJson, what: &str) -> String {
    let (trace, span) = (&verdict.trace_id, &verdict.client_span_id);
    format!("/api/v1/exchanges/{trace}/{span}{what}")
}

/// What was asked for, as far as anybody said.
pub(super) fn path(verdict: &VerdictJson) -> String {
    let seen = Some(&verdict.path).filter(|path| !path.is_empty());
    let said = seen.or(verdict.route.as_ref());
    said.map_or_else(|| "(path unknown)".to_owned(), Clone::clone)
}

fn bar_rows(verdict: &VerdictJson) -> Vec<BarRow> {
    let bars = verdict.bars.iter().take(waterfall::MOST_BARS);
    bars.map(|bar| BarRow {
        lane: bar.lane.to_string(),
        name: bar.name.clone(),
        start: bounds(bar.start_lo_seconds, bar.start_hi_seconds),
        end: bounds(bar.end_lo_seconds, bar.end_hi_seconds),
    })
    .collect()
}

fn bounds(lo_seconds: f64, hi_seconds: f64) -> (Digits, Digits) {
    (
        lower_bound(nanoseconds(lo_seconds)),
        upper_bound(nanoseconds(hi_seconds)),
    )
}

fn findings(verdict: &VerdictJson) -> Vec<FindingView> {
    let views = verdict.findings.iter().map(|finding| FindingView {
        cause: finding.cause.to_string(),
        confidence: finding.confidence.to_string(),
        segment: named(&finding.segment)
            .map_or_else(|| finding.segment.to_string(), |s| title(s).to_owned()),
        length: within(
            nanoseconds(finding.lo_seconds),
            nanoseconds(finding.hi_seconds),
        ),
        evidence: finding
            .evidence
            .iter()
            .map(|said| (said.kind.to_string(), said.statement.clone()))
            .collect(),
        refuted_by: finding.refuted_by.to_string(),
    });
    views.collect()
}

fn clock(whose: &'static str, offset: Option<Bounds>) -> ClockView {
    ClockView {
        whose,
        bounds: offset.map(|offset| bounds(offset.lo_seconds, offset.hi_seconds)),
    }
}

fn sources(verdict: &VerdictJson) -> Vec<SourceView> {
    let Some(sources) = &verdict.quality.sources else {
        return Vec::new();
    };
    [
        ("Kernel receive stamps", &sources.kernel_stamps),
        ("Packet capture", &sources.capture),
        ("Receive queues", &sources.queues),
        ("Process samples", &sources.processes),
    ]
    .map(|(name, state)| SourceView {
        name,
        state: state.clone(),
        used: state == "used",
    })
    .to_vec()
}

/// What is not there, and what that costs.
pub(super) fn missing(what: &str) -> String {
    match what {
        "exchange" => "No proxy's record of this call: nothing is known of the wire.",
        "client_span" => {
            "The client's span: the client is judged by when it read the response, and its time \
             before sending and after reading is not seen."
        }
        "server_span" => "The server's span: its time cannot be told from the network's.",
        "client_pick_up" => {
            "When the client read the response: time in its socket cannot be told from time after \
             reading."
        }
        "request_stamps" => "The request's stamps: the wire's share is not known.",
        "response_stamps" => "The response's stamps: the wire's share is not known.",
        other => other,
    }
    .to_owned()
}
