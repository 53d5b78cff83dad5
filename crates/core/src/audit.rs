//! The one entry: what was seen and said of one client span, in; a verdict, out.

use crate::bars;
use crate::cause;
use crate::clock::{ClientClock, ClockOffset, Interval, ProxyClock, ServerClock};
use crate::contradiction;
use crate::exchange::{ExchangeRecord, Outcome};
use crate::exchange_detail::ExchangeDetail;
use crate::ledger::build::{self, Offsets};
use crate::ledger::{Explanation, Ledger};
use crate::peer_offset::{client_offset, server_offset};
use crate::policy::Policy;
use crate::quality;
use crate::reported_span::ReportedSpan;
use crate::verdict::{Fault, Finding, Verdict};
use crate::wire_path::WirePath;

/// Everything that belongs to one client span.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The exchanges, in the order of their first byte: several after retries or redirects.
    pub exchanges: Vec<ExchangeRecord>,
    /// The client's span, if it arrived.
    pub client: Option<ReportedSpan>,
    /// The servers' spans that arrived. Where the number is that of the exchanges, each belongs
    /// to the exchange in the same place.
    pub servers: Vec<ReportedSpan>,
}

/// What other exchanges told of the clocks of this one's endpoints.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownClocks {
    /// Bounds on the client's clock, if known.
    pub client: Option<ClockOffset<ClientClock, ProxyClock>>,
    /// Bounds on the server's clock, if known.
    pub server: Option<ClockOffset<ServerClock, ProxyClock>>,
}

/// Judges what belongs to one client span. `None` when there is nothing to compare: no exchange,
/// and not both spans.
#[must_use]
pub fn audit(observed: &Observed, clocks: &KnownClocks, policy: &Policy) -> Option<Verdict> {
    let last = observed.exchanges.last();
    let (trace_id, client_span_id) = match (last, &observed.client) {
        (Some(exchange), _) => (exchange.trace_id, exchange.join_span_id()),
        (None, Some(span)) if !observed.servers.is_empty() => (span.trace_id, span.span_id),
        (None, _) => return None,
    };
    let paths: Vec<WirePath> = observed.exchanges.iter().map(WirePath::of).collect();
    let (offsets, mut faults) = offsets(observed, clocks, policy);
    let mut ledger = build::build(observed, &paths, &offsets);
    let findings = ledger
        .as_mut()
        .map(|l| explain(l, observed, policy))
        .unwrap_or_default();
    faults.extend(
        ledger
            .iter()
            .flat_map(|ledger| contradiction::in_ledger(ledger, policy)),
    );
    faults.extend(contradiction::in_servers(observed, &paths, policy));
    let server = observed.servers.last();
    let started_ns = paths
        .first()
        .and_then(|path| path.request_first)
        .map(|stamp| stamp.lo());
    let client = client_observed(observed, &paths);
    Some(Verdict {
        trace_id,
        client_span_id,
        method: said(last.map(|e| &e.method), observed, |span| {
            span.method.as_ref()
        }),
        path: last.map(|e| e.path.clone()).unwrap_or_default(),
        route: server.and_then(|span| span.route.clone()),
        authority: last.map(|e| e.authority.clone()).unwrap_or_default(),
        status: last.map_or_else(|| server.and_then(|span| span.status), |e| e.status),
        outcome: last.map_or(Outcome::Complete, |e| e.outcome),
        exchanges: observed.exchanges.len(),
        client_service: observed.client.as_ref().map(|span| span.service.clone()),
        server_service: server.map(|span| span.service.clone()),
        started_ns,
        client,
        client_from_span: observed.client.is_some(),
        server_ns: server_time(observed),
        wire: wire_time(&paths),
        flagged: ledger
            .as_ref()
            .is_some_and(|ledger| is_flagged(ledger, policy)),
        ledger,
        findings,
        faults,
        quality: quality::of(observed, &paths, &offsets),
        bars: bars::of(observed, &paths, &offsets, started_ns.unwrap_or_default()),
        exchanges_detail: observed
            .exchanges
            .iter()
            .map(ExchangeDetail::from)
            .collect(),
    })
}

fn offsets(observed: &Observed, clocks: &KnownClocks, policy: &Policy) -> (Offsets, Vec<Fault>) {
    let mut faults = Vec::new();
    let client = observed.client.as_ref().and_then(|span| {
        let chosen = client_offset(&observed.exchanges, span, clocks.client, policy);
        faults.extend(chosen.faults);
        chosen.offset
    });
    let pairs = observed.exchanges.iter().zip(&observed.servers);
    let servers = pairs
        .map(|(exchange, span)| {
            let chosen = server_offset(exchange, span, clocks.server, policy);
            faults.extend(chosen.faults);
            chosen.offset
        })
        .collect();
    (Offsets { client, servers }, faults)
}

/// Marks each row of the ledger with what accounts for it, and gives the causes found.
fn explain(ledger: &mut Ledger, observed: &Observed, policy: &Policy) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in &mut ledger.rows {
        let long = row.within.lo() > policy.flag_above_ns;
        if !row.segment.is_gap() || !long {
            continue;
        }
        let exchange = row.exchange.and_then(|at| observed.exchanges.get(at));
        let finding = exchange.and_then(|exchange| cause::of_row(row, exchange, policy));
        row.explanation = match finding {
            Some(finding) => {
                let cause = finding.cause;
                findings.push(finding);
                Explanation::Cause(cause)
            }
            None => Explanation::Unexplained,
        };
    }
    findings
}

/// A gap deserves attention when even its lower bound is long: uncertainty never flags.
fn is_flagged(ledger: &Ledger, policy: &Policy) -> bool {
    ledger
        .rows
        .iter()
        .any(|row| row.segment.is_gap() && row.within.lo() > policy.flag_above_ns)
}

fn client_observed(observed: &Observed, paths: &[WirePath]) -> Option<Interval> {
    if let Some(span) = &observed.client {
        return Some(Interval::exactly(span.duration_ns()));
    }
    Some(paths.last()?.picked_up? - paths.first()?.request_first?)
}

fn server_time(observed: &Observed) -> Option<i64> {
    let lengths = observed.servers.iter().map(ReportedSpan::duration_ns);
    lengths.reduce(i64::saturating_add)
}

/// The sum over all exchanges; `None` unless every one was stamped at both ends.
fn wire_time(paths: &[WirePath]) -> Option<Interval> {
    let mut lengths = paths
        .iter()
        .map(|path| Some(path.answered? - path.asked_first?));
    let first = lengths.next()??;
    lengths.try_fold(first, |sum, next| Some(sum + next?))
}

fn said<'a>(
    seen: Option<&'a String>,
    observed: &'a Observed,
    of_span: impl Fn(&'a ReportedSpan) -> Option<&'a String>,
) -> String {
    let spans = || observed.client.iter().chain(&observed.servers);
    seen.or_else(|| spans().find_map(of_span))
        .cloned()
        .unwrap_or_default()
}
