//! How far an endpoint's clock is ahead of the proxy's, for one exchange.
//!
//! Three witnesses, used together where they agree: causality within this
//! exchange, the fact that both run under one kernel, and what other exchanges
//! of the same peer said. Causality is the one that cannot lie; where another
//! contradicts it, that one is dropped and the contradiction reported.

use crate::clock::{
    ClientClock, Clock, ClockOffset, Interval, ProxyClock, ServerClock, Source, Stamp,
};
use crate::clock_consensus::Constraint;
use crate::endpoint::{QueueOutcome, QueueWatch};
use crate::exchange::ExchangeRecord;
use crate::milestone::Milestone;
use crate::policy::Policy;
use crate::reported_span::ReportedSpan;
use crate::verdict::Fault;

/// A response of at most this many bytes leaves the receive queue with the first read of any
/// common client, whose buffers hold at least a page; so the span cannot end before the pick-up.
const ONE_READ_BYTES: i64 = 4096;

/// The bounds chosen for one peer, and what contradicted them.
#[derive(Clone, Debug)]
pub(crate) struct PeerOffset<C: Clock> {
    /// Peer minus proxy; `None` when nothing bounds it.
    pub(crate) offset: Option<ClockOffset<C, ProxyClock>>,
    /// Contradictions met on the way.
    pub(crate) faults: Vec<Fault>,
}

/// A span's start, as uncertain as the resolution of the clock that stamped it.
pub(crate) fn span_start<C: Clock>(span: &ReportedSpan) -> Stamp<C> {
    let resolution = resolution_ns(span.start_ns);
    Stamp::between(
        span.start_ns,
        span.start_ns.saturating_add(resolution),
        Source::Span,
    )
}

/// A span's end; SDKs that round the start add an exact duration, so the end is off alike.
pub(crate) fn span_end<C: Clock>(span: &ReportedSpan) -> Stamp<C> {
    let resolution = resolution_ns(span.start_ns);
    Stamp::between(
        span.end_ns,
        span.end_ns.saturating_add(resolution),
        Source::Span,
    )
}

/// What the exchanges of one client span say of the client's clock, by causality alone: its span
/// starts before its first byte reaches the proxy, and ends after the response head left for it.
#[must_use]
pub fn client_constraint(exchanges: &[ExchangeRecord], span: &ReportedSpan) -> Option<Constraint> {
    let first = exchanges
        .first()?
        .milestones
        .best(Milestone::DownRequestFirst)?;
    let last = exchanges.last()?;
    let answered = last
        .milestones
        .best(Milestone::DownResponseHead)
        .or(last.milestones.best(Milestone::DownResponseFirst))?;
    let read = last.milestones.best(Milestone::ClientPickedUp).filter(|_| {
        last.response_bytes
            .is_some_and(|bytes| bytes <= ONE_READ_BYTES)
    });
    let known_by_then = read.map_or(answered.lo(), |read| read.lo().max(answered.lo()));
    let lowest = span_start::<ClientClock>(span)
        .lo()
        .saturating_sub(first.hi());
    let highest = span_end::<ClientClock>(span)
        .hi()
        .saturating_sub(known_by_then);
    constraint(lowest, highest, first, answered)
}

/// What an exchange says of the server's clock, by causality alone: its span starts after the
/// request head left the proxy, and before the first byte of the response came back.
#[must_use]
pub fn server_constraint(exchange: &ExchangeRecord, span: &ReportedSpan) -> Option<Constraint> {
    let asked = exchange
        .milestones
        .best(Milestone::UpRequestHead)
        .or(exchange.milestones.best(Milestone::UpRequestFirst))?;
    let answered = exchange.milestones.best(Milestone::UpResponseFirst)?;
    let start = span_start::<ServerClock>(span);
    let lowest = start.lo().saturating_sub(answered.hi());
    let highest = start.hi().saturating_sub(asked.lo());
    constraint(lowest, highest, asked, answered)
}

pub(crate) fn client_offset(
    exchanges: &[ExchangeRecord],
    span: &ReportedSpan,
    known: Option<ClockOffset<ClientClock, ProxyClock>>,
    policy: &Policy,
) -> PeerOffset<ClientClock> {
    let own = client_constraint(exchanges, span).map(|c| c.bounds);
    let here = exchanges
        .last()
        .is_some_and(|exchange| is_here(&exchange.client_queue));
    choose("client", own, own, here, known, policy)
}

pub(crate) fn server_offset(
    exchange: &ExchangeRecord,
    span: &ReportedSpan,
    known: Option<ClockOffset<ServerClock, ProxyClock>>,
    policy: &Policy,
) -> PeerOffset<ServerClock> {
    let own = server_constraint(exchange, span).map(|c| c.bounds);
    // A server's span may outlast its response a little, and some servers linger; so its end
    // bounds nothing by itself. But one that fits into the wait for its response lies there.
    let plausible = own.and_then(|own| {
        let answered = exchange.milestones.best(Milestone::UpResponseLast)?;
        let ends_by = answered.hi().saturating_add(policy.flag_above_ns);
        let lowest = span_end::<ServerClock>(span).lo().saturating_sub(ends_by);
        own.intersect(Interval::between(lowest, i64::MAX))
            .or(Some(own))
    });
    choose(
        "server",
        own,
        plausible,
        is_here(&exchange.server_queue),
        known,
        policy,
    )
}

/// Takes causality's bounds and narrows them by whatever else does not contradict `plausible`.
fn choose<C: Clock>(
    side: &str,
    own: Option<Interval>,
    plausible: Option<Interval>,
    same_kernel: bool,
    known: Option<ClockOffset<C, ProxyClock>>,
    policy: &Policy,
) -> PeerOffset<C> {
    let mut faults = Vec::new();
    let mut bounds = own;
    if same_kernel {
        let prior = Interval::exactly(0).widened(policy.same_host_slack_ns);
        match (
            bounds,
            plausible.map_or(Some(prior), |p| p.intersect(prior)),
        ) {
            (None, prior) => bounds = prior,
            (Some(own), Some(prior)) => bounds = own.intersect(prior).or(Some(own)),
            (Some(_), None) => {
                let ahead = plausible.unwrap_or(prior);
                faults.push(clock_disagreement(side, ahead));
            }
        }
    }
    if let Some(known) = known.map(ClockOffset::bounds) {
        match bounds.map_or(Some(known), |bounds| bounds.intersect(known)) {
            Some(both) => bounds = Some(both),
            None => faults.push(Fault {
                kind: "clock_inconsistent",
                statement: format!(
                    "the {side}'s other exchanges put its clock elsewhere than this one does: \
                     a step of the clock, or a span that belongs to something else"
                ),
            }),
        }
    }
    PeerOffset {
        offset: bounds.map(ClockOffset::within),
        faults,
    }
}

fn clock_disagreement(side: &str, ahead: Interval) -> Fault {
    let (lo, hi) = (ahead.lo() / 1_000_000, ahead.hi() / 1_000_000);
    Fault {
        kind: "clock_disagreement",
        statement: format!(
            "the {side} runs on the proxy's machine, yet its spans are stamped {lo} to {hi} ms \
             ahead of that machine's clock"
        ),
    }
}

fn constraint(
    lowest: i64,
    highest: i64,
    from: Stamp<ProxyClock>,
    to: Stamp<ProxyClock>,
) -> Option<Constraint> {
    let during = to - from;
    (lowest <= highest).then(|| Constraint {
        at_ns: from.lo().saturating_add(during.middle() / 2),
        half_ns: (during.hi() / 2).max(0),
        bounds: Interval::between(lowest, highest),
    })
}

/// Whether the endpoint's socket was found in the proxy's own network namespace, which means
/// one kernel and so one `CLOCK_REALTIME`.
fn is_here(watch: &QueueWatch) -> bool {
    match watch.outcome {
        QueueOutcome::Read | QueueOutcome::LeftUnread | QueueOutcome::StillUnread => true,
        QueueOutcome::NotHere | QueueOutcome::NotWatched => false,
    }
}

/// The coarsest resolution that a start stamp can have been taken with: JavaScript gives whole
/// milliseconds, Python on some systems whole microseconds. A finer stamp that happens to end in
/// zeros is only taken for less certain than it is.
fn resolution_ns(start_ns: i64) -> i64 {
    [1_000_000, 1_000]
        .into_iter()
        .find(|unit| start_ns % unit == 0)
        .unwrap_or(0)
}
