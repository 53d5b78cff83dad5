//! A verdict in one sentence.

use skewtap_core::ledger::Segment;
use skewtap_core::verdict_json::{FindingJson, SegmentJson, VerdictJson};

use super::format::{length, millis, nanoseconds, within};
use super::segment_words::{named, phrase};

/// A server that saw more than its client by less than this is within what spans can tell.
const NEGATIVE_GAP_NS: i64 = 1_000_000;

/// The sentence, in the parts a page sets apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headline {
    /// What each side says: `client 8.021 s, server 7.510 s, wire 7.511 s`.
    pub(super) figures: String,
    /// Where the difference lies.
    pub(super) place: String,
    /// Why, as far as known; empty when nothing is flagged.
    pub(super) cause: String,
}

/// The headline of a verdict.
pub(super) fn of(verdict: &VerdictJson) -> Headline {
    Headline {
        figures: format!(
            "client {}, server {}, wire {}",
            client(verdict),
            known(verdict.server_seconds),
            known(verdict.wire_seconds)
        ),
        place: place(verdict),
        cause: if verdict.flagged {
            cause(verdict)
        } else {
            String::new()
        },
    }
}

/// The row that holds the most proven time of a gap; `None` when no row proves any.
pub(super) fn largest_gap(verdict: &VerdictJson) -> Option<(Segment, &SegmentJson)> {
    let rows = verdict.segments.iter();
    let gaps = rows.filter_map(|row| Some((named(&row.name)?, row)));
    gaps.filter(|(segment, row)| segment.is_gap() && row.lo_seconds > 0.0)
        .max_by(|(_, a), (_, b)| a.lo_seconds.total_cmp(&b.lo_seconds))
}

/// The finding that explains the largest gap, or else the first.
pub(super) fn main_finding(verdict: &VerdictJson) -> Option<&FindingJson> {
    let largest = largest_gap(verdict).map(|(segment, _)| segment.name());
    let of_largest = |finding: &&FindingJson| Some(finding.segment.as_ref()) == largest;
    let mut findings = verdict.findings.iter();
    findings.find(of_largest).or(verdict.findings.first())
}

fn client(verdict: &VerdictJson) -> String {
    match (verdict.client_seconds, verdict.client_bounds) {
        (Some(seconds), _) => in_sentence(seconds),
        (None, Some(bounds)) => format!(
            "{} (by its reads; it sent no span)",
            within(
                nanoseconds(bounds.lo_seconds),
                nanoseconds(bounds.hi_seconds)
            )
        ),
        (None, None) => "unknown".to_owned(),
    }
}

fn known(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "unknown".to_owned(), in_sentence)
}

fn in_sentence(seconds: f64) -> String {
    let ns = nanoseconds(seconds);
    if ns.abs() < NEGATIVE_GAP_NS {
        length(ns)
    } else {
        format!("{} s", millis(ns))
    }
}

fn place(verdict: &VerdictJson) -> String {
    let gap_ns = verdict.gap_seconds.map(nanoseconds);
    if let Some(short_ns) = gap_ns.filter(|ns| *ns < -NEGATIVE_GAP_NS) {
        let length = length(short_ns.saturating_neg());
        let more = format!("the server's span is {length} longer than the client's");
        return match largest_flagged(verdict) {
            Some(gap) => format!("{more}, and {gap}"),
            None => more,
        };
    }
    if let Some(gap) = largest_flagged(verdict) {
        return gap;
    }
    if verdict.segments.is_empty() {
        return "too little was seen to say where the time went".to_owned();
    }
    match gap_ns {
        Some(ns) => format!("the difference of {} is nothing unusual", length(ns)),
        None => "no long gap was found".to_owned(),
    }
}

fn largest_flagged(verdict: &VerdictJson) -> Option<String> {
    let (segment, row) = largest_gap(verdict).filter(|_| verdict.flagged)?;
    let length = within(nanoseconds(row.lo_seconds), nanoseconds(row.hi_seconds));
    Some(format!("{length} {}", phrase(segment)))
}

fn cause(verdict: &VerdictJson) -> String {
    main_finding(verdict).map_or_else(
        || "cause: unexplained".to_owned(),
        |finding| format!("cause: {} ({})", finding.cause, finding.confidence),
    )
}
