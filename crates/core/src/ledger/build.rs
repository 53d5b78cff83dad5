//! Builds the ledger of one client span from its exchanges and spans.

use super::{Explanation, Ledger, Row, Segment, TotalFrom};
use crate::audit::Observed;
use crate::clock::{ClientClock, ClockOffset, Interval, ProxyClock, ServerClock, Stamp};
use crate::peer_offset::{span_end, span_start};
use crate::reported_span::ReportedSpan;
use crate::wire_path::WirePath;

/// What is known of the clocks while one ledger is built.
pub(crate) struct Offsets {
    pub(crate) client: Option<ClockOffset<ClientClock, ProxyClock>>,
    /// One for each exchange, in order.
    pub(crate) servers: Vec<Option<ClockOffset<ServerClock, ProxyClock>>>,
}

/// Splits the client's span, or what stands in for it. `None` when no exchange and no pair of
/// spans gives anything to split.
pub(crate) fn build(observed: &Observed, paths: &[WirePath], offsets: &Offsets) -> Option<Ledger> {
    let client = observed.client.as_ref();
    let (Some(first), Some(last)) = (paths.first(), paths.last()) else {
        return spans_alone(client?, observed.servers.first()?);
    };
    let (total_ns, total_from) = total(client, first, last)?;
    let mut rows = Rows::default();
    let outside = client.and_then(|span| client_side(span, first, last, offsets.client));
    rows.push(Segment::ClientBeforeSend, outside.map(|o| o.before));
    let mut earlier: Option<&WirePath> = None;
    for (at, path) in paths.iter().enumerate() {
        rows.exchange = None;
        if let Some(earlier) = earlier {
            rows.push(
                Segment::BetweenExchanges,
                between(earlier.end(), path.request_first),
            );
        }
        rows.exchange = Some(at);
        let server = observed.servers.get(at);
        let offset = offsets.servers.get(at).copied().flatten();
        exchange_rows(&mut rows, path, server, offset);
        earlier = Some(path);
    }
    let after = if last.picked_up.is_some() {
        Segment::ClientAfterRead
    } else {
        Segment::ClientAfterArrival
    };
    rows.exchange = None;
    rows.push(after, outside.map(|o| o.after));
    rows.unsplit += outside.map_or(0, |o| o.unsplit_ns);
    Some(rows.close(total_ns, total_from))
}

fn total(
    client: Option<&ReportedSpan>,
    first: &WirePath,
    last: &WirePath,
) -> Option<(i64, TotalFrom)> {
    if let Some(span) = client {
        return Some((span.duration_ns(), TotalFrom::ClientSpan));
    }
    let from = first.request_first?;
    if let Some(read) = last.picked_up {
        return Some(((read - from).hi(), TotalFrom::PickUp));
    }
    Some(((last.response_out? - from).hi(), TotalFrom::Wire))
}

/// Two spans and nothing between them: where the rest went cannot be told.
fn spans_alone(client: &ReportedSpan, server: &ReportedSpan) -> Option<Ledger> {
    let total_ns = client.duration_ns();
    let mut rows = Rows::default();
    rows.push(
        Segment::ServerSpan,
        Some(Interval::exactly(server.duration_ns())),
    );
    rows.unsplit = total_ns.saturating_sub(server.duration_ns()).max(0);
    Some(rows.close(total_ns, TotalFrom::ClientSpan))
}

/// The client's own time before the request and after the response.
#[derive(Clone, Copy)]
struct ClientSide {
    before: Interval,
    after: Interval,
    /// Time certainly spent in one of the two without being proven in either, in nanoseconds.
    unsplit_ns: i64,
}

/// Both parts together are exact: they are a length of the client's clock minus one of the
/// proxy's. Only how they divide depends on the offset between the two.
fn client_side(
    span: &ReportedSpan,
    first: &WirePath,
    last: &WirePath,
    offset: Option<ClockOffset<ClientClock, ProxyClock>>,
) -> Option<ClientSide> {
    let (from, to) = (first.request_first?, last.end()?);
    let together = Interval::exactly(span.duration_ns()) - (to - from);
    let (before, after) = match offset {
        Some(offset) => (
            from - span_start::<ClientClock>(span).on(offset),
            span_end::<ClientClock>(span).on(offset) - to,
        ),
        None => (unknown_part(together), unknown_part(together)),
    };
    Some(ClientSide {
        before: part_of(together, before, after),
        after: part_of(together, after, before),
        unsplit_ns: unsplit(together, before, after),
    })
}

fn exchange_rows(
    rows: &mut Rows,
    path: &WirePath,
    server: Option<&ReportedSpan>,
    offset: Option<ClockOffset<ServerClock, ProxyClock>>,
) {
    rows.push(
        Segment::RequestTransfer,
        between(path.request_first, path.request_in),
    );
    if path.asked.is_some() {
        rows.push(Segment::ProxyRequest, between(path.request_in, path.asked));
        server_rows(rows, path, server, offset);
        rows.push(
            Segment::ProxyResponse,
            between(path.answered, path.response_out),
        );
    } else {
        // The proxy answered by itself.
        rows.push(
            Segment::ProxyResponse,
            between(path.request_in, path.response_out),
        );
    }
    rows.push(
        Segment::ClientUnread,
        between(path.response_out, path.picked_up),
    );
}

/// The wait for the server, split by its span where there is one.
fn server_rows(
    rows: &mut Rows,
    path: &WirePath,
    server: Option<&ReportedSpan>,
    offset: Option<ClockOffset<ServerClock, ProxyClock>>,
) {
    let (Some(asked), Some(answered)) = (path.asked, path.answered) else {
        return;
    };
    let wait = answered - asked;
    let Some(span) = server else {
        rows.push(Segment::ServerAndNetwork, Some(wait));
        return;
    };
    // A span may begin with the request's head and end after its response was sent: what lies
    // outside the wait belongs to other rows.
    let length = span.duration_ns();
    let head_start = path
        .asked_first
        .map_or(0, |first| (asked - first).hi().max(0));
    let inside = Interval::between(
        length.saturating_sub(head_start).min(wait.lo()),
        length.min(wait.hi()),
    );
    let outside = wait - inside;
    let (before, after) = match offset {
        Some(offset) => {
            let start = later(span_start::<ServerClock>(span).on(offset), asked);
            let end = earlier(span_end::<ServerClock>(span).on(offset), answered);
            (start - asked, answered - end)
        }
        None => (unknown_part(outside), unknown_part(outside)),
    };
    rows.push(
        Segment::ServerBeforeSpan,
        Some(part_of(outside, before, after)),
    );
    rows.push(Segment::ServerSpan, Some(inside));
    rows.push(
        Segment::ServerAfterSpan,
        Some(part_of(outside, after, before)),
    );
    rows.unsplit += unsplit(outside, before, after);
}

/// All that is known of one of two parts of `together`: it is not negative, unless both are.
fn unknown_part(together: Interval) -> Interval {
    Interval::between(together.lo().min(0), together.hi().max(0))
}

/// One of two parts: what is said of it, and what the other part leaves of both together.
fn part_of(together: Interval, part: Interval, other: Interval) -> Interval {
    part.intersect(together - other).unwrap_or(part)
}

fn unsplit(together: Interval, one: Interval, other: Interval) -> i64 {
    let proven = part_of(together, one, other)
        .lo()
        .saturating_add(part_of(together, other, one).lo());
    together.lo().saturating_sub(proven).max(0)
}

fn between(from: Option<Stamp<ProxyClock>>, to: Option<Stamp<ProxyClock>>) -> Option<Interval> {
    Some(to? - from?)
}

fn later(a: Stamp<ProxyClock>, b: Stamp<ProxyClock>) -> Stamp<ProxyClock> {
    Stamp::between(a.lo().max(b.lo()), a.hi().max(b.hi()), a.source())
}

fn earlier(a: Stamp<ProxyClock>, b: Stamp<ProxyClock>) -> Stamp<ProxyClock> {
    Stamp::between(a.lo().min(b.lo()), a.hi().min(b.hi()), a.source())
}

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    /// The exchange that the next rows belong to.
    exchange: Option<usize>,
    /// Time certainly outside the other rows, in nanoseconds.
    unsplit: i64,
}

impl Rows {
    fn push(&mut self, segment: Segment, within: Option<Interval>) {
        if let Some(within) = within {
            let explanation = Explanation::Ordinary;
            let exchange = self.exchange;
            let counted_ns = within.lo();
            self.rows.push(Row {
                segment,
                exchange,
                within,
                counted_ns,
                explanation,
            });
        }
    }

    fn close(mut self, total_ns: i64, total_from: TotalFrom) -> Ledger {
        let counted = self
            .rows
            .iter()
            .fold(0_i64, |sum, row| sum.saturating_add(row.counted_ns));
        let rest = total_ns.saturating_sub(counted);
        self.rows.push(Row {
            segment: Segment::Unexplained,
            exchange: None,
            within: Interval::between(self.unsplit.min(rest), rest),
            counted_ns: rest,
            explanation: Explanation::Unexplained,
        });
        Ledger {
            total_ns,
            total_from,
            rows: self.rows,
        }
    }
}
