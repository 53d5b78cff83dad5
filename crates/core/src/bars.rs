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
        bars.span::<ClientClock>(Lane::Client, span, offset);
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
            bars.span::<ServerClock>(Lane::Server, span, offset);
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

    fn span<C: Clock>(
        &mut self,
        lane: Lane,
        span: &ReportedSpan,
        offset: ClockOffset<C, ProxyClock>,
    ) {
        let start = Some(span_start::<C>(span).on(offset));
        let end = Some(span_end::<C>(span).on(offset));
        self.draw(lane, "span", start, end);
    }

    fn since_origin(&self, stamp: Stamp<ProxyClock>) -> Interval {
        stamp - self.origin
    }
}
