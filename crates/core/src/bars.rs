//! What to draw of an exchange: bars on the proxy's time axis, by lane.

use crate::audit::Observed;
use crate::clock::{ClientClock, Clock, ClockOffset, Interval, ProxyClock, ServerClock, Stamp};
use crate::ledger::build::Offsets;
use crate::milestone::Milestone;
use crate::peer_offset::{span_end, span_start};
use crate::reported_span::ReportedSpan;
use crate::verdict::{Bar, Lane};
use crate::wire_path::WirePath;

/// All bars of a verdict whose first request byte came at `origin_ns`.
pub(crate) fn of(
    observed: &Observed,
    paths: &[WirePath],
    offsets: &Offsets,
    origin_ns: i64,
) -> Vec<Bar> {
    let mut bars = Bars {
        origin: Stamp::at(origin_ns, crate::clock::Source::Packet),
        exchange: None,
        bars: vec![],
    };
    if let (Some(span), Some(offset)) = (&observed.client, offsets.client) {
        let (start, end) = ends::<ClientClock>(span, offset);
        bars.draw(Lane::Client, "span", Some(start), Some(end));
    }
    for (at, path) in paths.iter().enumerate() {
        bars.exchange = Some(at);
        bars.draw(Lane::Wire, "request", path.request_first, path.request_in);
        bars.draw(Lane::Wire, "waiting", path.asked, path.answer_first);
        bars.draw(Lane::Wire, "response", path.answer_first, path.response_out);
        bars.draw(Lane::Client, "unread", path.response_out, path.picked_up);
        if let Some(exchange) = observed.exchanges.get(at) {
            let read = exchange.milestones.best(Milestone::ServerPickedUp);
            bars.draw(Lane::Server, "unread", path.asked, read);
        }
        let offset = offsets.servers.get(at).copied().flatten();
        if let (Some(span), Some(offset)) = (observed.servers.get(at), offset) {
            let (start, end) = ends::<ServerClock>(span, offset);
            let (start, end) = within_wait(start, end, span.duration_ns(), path);
            bars.draw(Lane::Server, "span", Some(start), Some(end));
        }
    }
    bars.bars
}

struct Bars {
    origin: Stamp<ProxyClock>,
    /// Which exchange is being drawn.
    exchange: Option<usize>,
    bars: Vec<Bar>,
}

impl Bars {
    fn draw(
        &mut self,
        lane: Lane,
        name: &str,
        start: Option<Stamp<ProxyClock>>,
        end: Option<Stamp<ProxyClock>>,
    ) {
        if let (Some(start), Some(end)) = (start, end) {
            let (start, end) = (self.since_origin(start), self.since_origin(end));
            self.bars.push(Bar {
                lane,
                name: name.to_owned(),
                exchange: self.exchange,
                start,
                end,
            });
        }
    }

    fn since_origin(&self, stamp: Stamp<ProxyClock>) -> Interval {
        stamp - self.origin
    }
}

/// The start and the end of a span on the proxy's clock.
fn ends<C: Clock>(
    span: &ReportedSpan,
    offset: ClockOffset<C, ProxyClock>,
) -> (Stamp<ProxyClock>, Stamp<ProxyClock>) {
    let (start, end) = (span_start::<C>(span), span_end::<C>(span));
    (start.on(offset), end.on(offset))
}

/// A server's span that is no longer than the wait for its response is taken to lie within it, as
/// the ledger takes it: however little is known of its clock, it can neither start before the
/// request was sent nor end after the response was there.
fn within_wait(
    start: Stamp<ProxyClock>,
    end: Stamp<ProxyClock>,
    length_ns: i64,
    path: &WirePath,
) -> (Stamp<ProxyClock>, Stamp<ProxyClock>) {
    let (Some(asked), Some(answered)) = (path.asked, path.answered) else {
        return (start, end);
    };
    if length_ns > (answered - asked).hi() {
        return (start, end);
    }
    let (from, to) = (asked.lo(), answered.hi());
    (
        narrowed(start, from, to.saturating_sub(length_ns)),
        narrowed(end, from.saturating_add(length_ns), to),
    )
}

/// The part of `stamp` that lies from `lo` to `hi`; all of it where none does.
fn narrowed(stamp: Stamp<ProxyClock>, lo: i64, hi: i64) -> Stamp<ProxyClock> {
    let (lo, hi) = (stamp.lo().max(lo), stamp.hi().min(hi));
    if lo > hi {
        return stamp;
    }
    Stamp::between(lo, hi, stamp.source())
}
