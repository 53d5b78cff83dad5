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
    for (at, row) in verdict.segments.iter().enumerate() {
        let Some(segment) = named(&row.name).filter(|segment| segment.is_gap()) else {
            continue;
        };
        if row.explanation == "ordinary" {
            continue;
        }
        let earlier = verdict.segments.iter().take(at);
        let nth = earlier.filter(|other| other.name == row.name).count();
        if let Some((lane, start, end)) = place(verdict, segment, nth) {
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

/// Lane, start and end of the `nth` row of a segment. `None` when a bar beside it is not there,
/// or when it cannot be told which bar belongs to which exchange.
fn place(
    verdict: &VerdictJson,
    segment: Segment,
    nth: usize,
) -> Option<(&'static str, Edge, Edge)> {
    let bars = Bars { verdict };
    match segment {
        Segment::ClientBeforeSend => Some((
            "client",
            Edge::start(bars.first("client", "span")?),
            Edge::start(bars.first("wire", "request")?),
        )),
        Segment::ClientUnread => {
            let unread = bars.of_exchange(nth, segment, "client", "unread")?;
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
            Edge::start(bars.of_exchange(nth, segment, "wire", "waiting")?),
            Edge::start(bars.of_exchange(nth, segment, "server", "span")?),
        )),
        // Its end is drawn where the response had been passed on, which is when the row
        // `proxy_response` ends: no bar tells the two apart.
        Segment::ServerAfterSpan => Some((
            "server",
            Edge::end(bars.of_exchange(nth, segment, "server", "span")?),
            Edge::end(bars.of_exchange(nth, segment, "wire", "response")?),
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

    /// The bar of the exchange that the `nth` row of `segment` belongs to.
    fn of_exchange(
        &self,
        nth: usize,
        segment: Segment,
        lane: &'a str,
        name: &'a str,
    ) -> Option<&'a BarJson> {
        let rows = self.verdict.segments.iter();
        let rows = rows.filter(|row| row.name == segment.name()).count();
        let bars = self.all(lane, name).count();
        (rows == bars).then(|| self.all(lane, name).nth(nth))?
    }
}
