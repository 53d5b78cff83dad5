//! Which server's span belongs to which exchange, where one client span has several of either.

use skewtap_core::clock::Interval;
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::milestone::Milestone;
use skewtap_core::reported_span::ReportedSpan;

/// How much longer than the wire a server's span may be and still belong to it, in
/// nanoseconds: some servers end their span after the last byte left.
const LONGER_THAN_WIRE_NS: i64 = 100_000_000;

/// Picks at most one of `servers` for each of `exchanges`, and gives them in the order of
/// the exchanges. Both lists are in order of time.
///
/// The best pair is taken first: the same connection before a length that fits, then the
/// same status, the same method, and the same place in the order.
pub(super) fn choose(
    exchanges: &[ExchangeRecord],
    servers: Vec<ReportedSpan>,
) -> Vec<ReportedSpan> {
    let mut pairs: Vec<(Fit, usize, usize)> = Vec::new();
    for (e, exchange) in exchanges.iter().enumerate() {
        for (s, server) in servers.iter().enumerate() {
            // An exchange that never had a connection to a server has no server's span.
            if exchange.up.is_some() {
                pairs.push((Fit::of(exchange, server), e, s));
            }
        }
    }
    if exchanges.is_empty() {
        return servers.into_iter().take(1).collect();
    }
    pairs.sort_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut server_of: Vec<Option<usize>> = vec![None; exchanges.len()];
    for (_, e, s) in pairs {
        if !server_of.contains(&Some(s))
            && let Some(slot @ None) = server_of.get_mut(e)
        {
            *slot = Some(s);
        }
    }
    let mut servers: Vec<Option<ReportedSpan>> = servers.into_iter().map(Some).collect();
    server_of
        .into_iter()
        .flatten()
        .filter_map(|s| servers.get_mut(s).and_then(Option::take))
        .collect()
}

/// How well a server's span fits an exchange; the first field that differs decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    same_connection: bool,
    fits_in_time: bool,
    same_status: bool,
    same_method: bool,
}

impl Fit {
    fn of(exchange: &ExchangeRecord, server: &ReportedSpan) -> Self {
        Self {
            same_connection: upstream_port(exchange)
                .is_some_and(|port| server.peer_port == Some(port)),
            fits_in_time: wire(exchange).is_none_or(|wire| {
                server.duration_ns() <= wire.hi().saturating_add(LONGER_THAN_WIRE_NS)
            }),
            same_status: exchange.status.is_some() && exchange.status == server.status,
            same_method: server.method.as_deref() == Some(&exchange.method),
        }
    }
}

fn upstream_port(exchange: &ExchangeRecord) -> Option<u16> {
    let (_, port) = exchange.up.as_ref()?.local.rsplit_once(':')?;
    port.parse().ok()
}

fn wire(exchange: &ExchangeRecord) -> Option<Interval> {
    let sent = exchange.milestones.best(Milestone::UpRequestFirst)?;
    let received = exchange.milestones.best(Milestone::UpResponseLast)?;
    Some(received - sent)
}
