//! A ledger as a table whose rows can be added up by hand.

use skewtap_core::ledger::Segment;
use skewtap_core::verdict_json::{SegmentJson, VerdictJson};

use super::format::{Digits, exact, lower_bound, nanoseconds, upper_bound};
use super::segment_words::{named, title};

/// Width of the drawing beside each row, in drawing units.
pub(super) const SHARE_WIDTH: f64 = 100.0;

/// The table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LedgerTable {
    /// The rows, in the order of the ledger; the last is what is left.
    pub(super) rows: Vec<RowView>,
    /// What they add up to, to the nanosecond.
    pub(super) total: Digits,
    /// What that total is.
    pub(super) total_is: String,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowView {
    /// A heading above the row, where another exchange begins.
    pub(super) heading: Option<String>,
    /// What the segment is called.
    pub(super) title: String,
    /// Its name in JSON.
    pub(super) name: String,
    /// Its lower bound.
    pub(super) lo: Digits,
    /// Its upper bound.
    pub(super) hi: Digits,
    /// What the ledger counts of it, to the nanosecond.
    pub(super) counted: Digits,
    /// That as a share of the total, in drawing units.
    pub(super) share: f64,
    /// `ordinary`, `unexplained` or the name of a cause.
    pub(super) explanation: String,
    /// The place of the finding that explains it on the page, counted from 1.
    pub(super) finding: Option<usize>,
    /// Whether it is a gap that stands out.
    pub(super) stands_out: bool,
}

/// The table of a verdict; `None` when it has no ledger.
pub(super) fn of(verdict: &VerdictJson) -> Option<LedgerTable> {
    let total_ns = nanoseconds(verdict.total_seconds?);
    let headings = headings(verdict);
    let rows = verdict
        .segments
        .iter()
        .zip(headings)
        .map(|(row, heading)| row_view(row, heading, verdict, total_ns))
        .collect();
    Some(LedgerTable {
        rows,
        total: exact(total_ns),
        total_is: match verdict.total_from.as_deref() {
            Some("client-span") => "The client's span".to_owned(),
            Some("pick-up") => "From the first request byte to the client's read".to_owned(),
            Some("wire") => "From the first request byte to the last response byte".to_owned(),
            Some(other) => other.to_owned(),
            None => "Total".to_owned(),
        },
    })
}

fn row_view(
    row: &SegmentJson,
    heading: Option<String>,
    verdict: &VerdictJson,
    total_ns: i64,
) -> RowView {
    let segment = named(&row.name);
    let explains = |cause: &str, segment: &str| cause == row.explanation && segment == row.name;
    let mut findings = verdict.findings.iter();
    RowView {
        heading,
        title: segment.map_or_else(|| row.name.to_string(), |s| title(s).to_owned()),
        name: row.name.to_string(),
        lo: lower_bound(nanoseconds(row.lo_seconds)),
        hi: upper_bound(nanoseconds(row.hi_seconds)),
        counted: exact(nanoseconds(row.seconds)),
        share: share(nanoseconds(row.seconds), total_ns),
        explanation: row.explanation.to_string(),
        finding: findings
            .position(|finding| explains(&finding.cause, &finding.segment))
            .map(|at| at.saturating_add(1)),
        stands_out: stands_out(row, segment, verdict),
    }
}

/// The rest is always called unexplained; it stands out only when that is what was flagged.
fn stands_out(row: &SegmentJson, segment: Option<Segment>, verdict: &VerdictJson) -> bool {
    if segment == Some(Segment::Unexplained) {
        let largest = super::headline::largest_gap(verdict);
        return verdict.flagged && largest.is_some_and(|(largest, _)| Some(largest) == segment);
    }
    row.explanation != "ordinary"
}

fn share(counted_ns: i64, total_ns: i64) -> f64 {
    if total_ns <= 0 {
        return 0.0;
    }
    // Hundredths of the width, in integers up to here.
    let width = i128::from(counted_ns.max(0)) * 10_000 / i128::from(total_ns);
    f64::from(i32::try_from(width.min(10_000)).unwrap_or_default()) * SHARE_WIDTH / 10_000.0
}

/// Where each exchange begins, when there are several.
fn headings(verdict: &VerdictJson) -> Vec<Option<String>> {
    let mut latest = None;
    let headings = verdict.segments.iter().map(|row| {
        let exchange = row.exchange.filter(|_| verdict.exchanges > 1)?;
        let begins = latest.replace(exchange) != Some(exchange);
        begins.then(|| {
            let number = exchange.saturating_add(1);
            format!("Exchange {number} of {}", verdict.exchanges)
        })
    });
    headings.collect()
}
