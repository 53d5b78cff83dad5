//! Where on the time axis the long gaps of a verdict lie.

use skewtap_core::ledger::Segment;
use skewtap_core::verdict_json::{BarJson, SegmentJson, VerdictJson};

use super::format::{nanoseconds, within};
use super::segment_words::{named, title};

/// A row of the ledger that is too long to be ordinary, placed between the bars beside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GapRegion {
    /// The lane it belongs to: `client` or `server`.
    pub(super) lane: &'static str,
    /// Its segment and length, such as `Client, response unread: 0.510 s`.
    pub(super) label: String,
    /// When it began.
    pub(super) start: Edge,
    /// When it ended.
    pub(super) end: Edge,
}

/// An instant within bounds, in seconds after the first request byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edge {
    /// Not before this.
    pub(super) lo: f64,
    /// Not after this.
    pub(super) hi: f64,
}

impl Edge {
    /// When `bar` begins.
    pub(super) fn start(bar: &BarJson) -> Self {
        Self {
            lo: bar.start_lo_seconds,
            hi: bar.start_hi_seconds,
        }
    }

    /// When `bar` ends.
    pub(super) fn end(bar: &BarJson) -> Self {
        Self {
            lo: bar.end_lo_seconds,
            hi: bar.end_hi_seconds,
        }
    }
}

/// The regions of all rows that have a cause or lack one, as far as bars tell their place.
pub(super) fn of(verdict: &VerdictJson) -> Vec<GapRegion> {
    let mut regions = Vec::new();
    for row in &verdict.segments {
        let Some(segment) = named(&row.name).filter(|segment| segment.is_gap()) else {
            continue;
        };
        if row.explanation == "ordinary" {
            continue;
        }
        if let Some((lane, start, end)) = place(verdict, segment, row.exchange) {
            regions.push(GapRegion {
                lane,
                label: label(row, segment),
                start,
                end,
            });
        }
    }
    regions
}

fn label(row: &SegmentJson, segment: Segment) -> String {
    let length = within(nanoseconds(row.lo_seconds), nanoseconds(row.hi_seconds));
    format!("{}: {length}", title(segment))
}

/// Lane, start and end of a row of that exchange. `None` when a bar beside it is not there, or
/// when it cannot be told which bar belongs to which exchange.
fn place(
    verdict: &VerdictJson,
    segment: Segment,
    exchange: Option<usize>,
) -> Option<(&'static str, Edge, Edge)> {
    let bars = Bars { verdict };
    match segment {
        Segment::ClientBeforeSend => Some((
            "client",
            Edge::start(bars.first("client", "span")?),
            Edge::start(bars.first("wire", "request")?),
        )),
        Segment::ClientUnread => {
            let unread = bars.of_exchange(exchange, "client", "unread")?;
            Some(("client", Edge::start(unread), Edge::end(unread)))
        }
        Segment::ClientAfterRead => Some((
            "client",
            Edge::end(bars.last("client", "unread")?),
            Edge::end(bars.first("client", "span")?),
        )),
        Segment::ClientAfterArrival => Some((
            "client",
            Edge::end(bars.last("wire", "response")?),
            Edge::end(bars.first("client", "span")?),
        )),
        Segment::ServerBeforeSpan => Some((
            "server",
            Edge::start(bars.of_exchange(exchange, "wire", "waiting")?),
            Edge::start(bars.of_exchange(exchange, "server", "span")?),
        )),
        // Its end is drawn where the response had been passed on, which is when the row
        // `proxy_response` ends: no bar tells the two apart.
        Segment::ServerAfterSpan => Some((
            "server",
            Edge::end(bars.of_exchange(exchange, "server", "span")?),
            Edge::end(bars.of_exchange(exchange, "wire", "response")?),
        )),
        Segment::RequestTransfer
        | Segment::ProxyRequest
        | Segment::ServerSpan
        | Segment::ServerAndNetwork
        | Segment::ProxyResponse
        | Segment::BetweenExchanges
        | Segment::Unexplained => None,
    }
}

struct Bars<'a> {
    verdict: &'a VerdictJson,
}

impl<'a> Bars<'a> {
    fn all(&self, lane: &'a str, name: &'a str) -> impl Iterator<Item = &'a BarJson> {
        let bars = self.verdict.bars.iter();
        bars.filter(move |bar| bar.lane == lane && bar.name == name)
    }

    fn first(&self, lane: &'a str, name: &'a str) -> Option<&'a BarJson> {
        self.all(lane, name).next()
    }

    fn last(&self, lane: &'a str, name: &'a str) -> Option<&'a BarJson> {
        self.all(lane, name).last()
    }

    /// The bar of that exchange. Documents of earlier versions do not say whose a bar is, which
    /// leaves no doubt only where there was one exchange.
    fn of_exchange(
        &self,
        exchange: Option<usize>,
        lane: &'a str,
        name: &'a str,
    ) -> Option<&'a BarJson> {
        if exchange.is_none() && self.verdict.exchanges > 1 {
            return None;
        }
        self.all(lane, name).find(|bar| bar.exchange == exchange)
    }
}
