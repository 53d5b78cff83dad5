//! Statements about one exchange that cannot all be true.
//!
//! They are reported and change no number: the ledger keeps its negative row.

use crate::audit::Observed;
use crate::ledger::{Ledger, Row, Segment};
use crate::policy::Policy;
use crate::verdict::Fault;
use crate::wire_path::WirePath;

/// Rows that cannot be negative, and are by more than stamps can be wrong.
pub(crate) fn in_ledger(ledger: &Ledger, policy: &Policy) -> Vec<Fault> {
    let negative = |row: &&Row| row.within.hi() < -policy.span_resolution_ns;
    ledger
        .rows
        .iter()
        .filter(negative)
        .map(negative_row)
        .collect()
}

fn negative_row(row: &Row) -> Fault {
    let short_ns = row.within.hi().saturating_neg();
    let (kind, what) = match row.segment {
        Segment::ClientAfterRead | Segment::ClientAfterArrival => (
            "client_span_ends_early",
            "the client's span ends before it had the whole response; it may end with the head",
        ),
        Segment::ClientBeforeSend => (
            "client_span_starts_late",
            "the client's span starts after its first byte had reached the proxy",
        ),
        Segment::Unexplained => (
            "rows_exceed_total",
            "what the stamps prove is longer than the client's span",
        ),
        Segment::RequestTransfer
        | Segment::ProxyRequest
        | Segment::ServerBeforeSpan
        | Segment::ServerSpan
        | Segment::ServerAfterSpan
        | Segment::ServerAndNetwork
        | Segment::ProxyResponse
        | Segment::ClientUnread
        | Segment::BetweenExchanges => (
            "negative_segment",
            "the two stamps that bound this row are in the wrong order",
        ),
    };
    let short = at_least(short_ns);
    let statement = if kind == "negative_segment" {
        let row = row.segment.name().replace('_', " ");
        format!("{row}: {what}, by at least {short}")
    } else {
        format!("{what}, by at least {short}")
    };
    Fault { kind, statement }
}

/// Server spans longer than the request and response they belong to.
pub(crate) fn in_servers(observed: &Observed, paths: &[WirePath], policy: &Policy) -> Vec<Fault> {
    let pairs = observed.servers.iter().zip(paths);
    let longer = pairs.filter_map(|(span, path)| {
        let wire = path.answered? - path.asked_first?;
        let over_ns = span.duration_ns().saturating_sub(wire.hi());
        (over_ns > policy.span_resolution_ns).then(|| Fault {
            kind: "server_outlasts_wire",
            statement: format!(
                "the server's span is at least {} longer than its request and response were on \
                 the wire: it goes on after the response, or measures something else",
                at_least(over_ns)
            ),
        })
    });
    longer.collect()
}

/// A lower bound in seconds, rounded down so that it stays one.
fn at_least(ns: i64) -> String {
    let micros = ns.max(0) / 1_000;
    format!("{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
}
