//! The page of the peers' clocks.

use askama::Template;
use skewtap_core::clock::Interval;

use super::format::{Digits, Instant, instant, length, lower_bound, upper_bound};
use crate::peer_clocks::PeerReport;

/// Peers that the page lists, those heard of last.
const MOST_PEERS: usize = 200;

/// A clock that is certainly off by more than this stands out, in nanoseconds.
const OFF_NS: i64 = 1_000_000;

/// Width of the drawing beside each row, in drawing units.
const WIDTH: f64 = 100.0;

/// A bar is at least this wide, so that it can be seen.
const LEAST_WIDTH: f64 = 1.0;

/// The page.
#[derive(Clone, Debug, Template)]
#[template(path = "clocks.html")]
pub(super) struct ClocksPage {
    peers: Vec<PeerView>,
    left_out: usize,
    any_off: bool,
    /// Where in the drawing no offset is.
    zero: f64,
}

#[derive(Clone, Debug)]
struct PeerView {
    service: String,
    instance: String,
    side: &'static str,
    bounds: Option<BoundsView>,
    is_off: bool,
    heard: Option<Instant>,
}

#[derive(Clone, Debug)]
struct BoundsView {
    lo: Digits,
    hi: Digits,
    width: String,
    x: f64,
    drawn: f64,
}

impl ClocksPage {
    /// The page on peers, which come with those heard of last first; those that are bounded are
    /// shown before the others.
    pub(super) fn of(mut reports: Vec<PeerReport>) -> Self {
        reports.sort_by_key(|report| report.ahead_ns.is_none());
        let left_out = reports.len().saturating_sub(MOST_PEERS);
        let shown = reports.into_iter().take(MOST_PEERS);
        let shown: Vec<PeerReport> = shown.collect();
        let scale = Scale::of(&shown);
        let peers = shown.into_iter().map(|report| peer(report, scale));
        let peers: Vec<PeerView> = peers.collect();
        Self {
            any_off: peers.iter().any(|peer| peer.is_off),
            zero: scale.x(0),
            left_out,
            peers,
        }
    }
}

fn peer(report: PeerReport, scale: Scale) -> PeerView {
    let off = |within: Interval| within.lo() > OFF_NS || within.hi() < -OFF_NS;
    PeerView {
        service: report.service,
        instance: report.instance,
        side: if report.is_client { "client" } else { "server" },
        bounds: report.ahead_ns.map(|within| bounds(within, scale)),
        is_off: report.ahead_ns.is_some_and(off),
        heard: instant(report.heard_ns),
    }
}

fn bounds(within: Interval, scale: Scale) -> BoundsView {
    let (from, to) = (scale.x(within.lo()), scale.x(within.hi()));
    BoundsView {
        lo: lower_bound(within.lo()),
        hi: upper_bound(within.hi()),
        width: length(within.width()),
        x: from.min(WIDTH - LEAST_WIDTH),
        drawn: (to - from).max(LEAST_WIDTH),
    }
}

/// From offsets to drawing units, the same for all rows.
#[derive(Clone, Copy)]
struct Scale {
    from: i64,
    to: i64,
}

impl Scale {
    /// A scale that shows all bounds and nought.
    fn of(reports: &[PeerReport]) -> Self {
        let bounds = reports.iter().filter_map(|report| report.ahead_ns);
        bounds.fold(Self { from: -1, to: 1 }, |scale, within| Self {
            from: scale.from.min(within.lo()),
            to: scale.to.max(within.hi()),
        })
    }

    /// To a hundredth of a unit, in integers up to here.
    fn x(self, ns: i64) -> f64 {
        let (from, to) = (i128::from(self.from), i128::from(self.to));
        let share = (i128::from(ns) - from) * 10_000 / (to - from).max(1);
        let share = i32::try_from(share.clamp(0, 10_000)).unwrap_or_default();
        f64::from(share) * WIDTH / 10_000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::pages::tests::markup::{assert_well_formed, text_of};

    fn report(service: &str, ahead_ns: Option<Interval>) -> PeerReport {
        PeerReport {
            is_client: true,
            service: service.to_owned(),
            instance: "one".to_owned(),
            heard_ns: 1_700_000_000_000_000_000,
            ahead_ns,
        }
    }

    #[test]
    fn a_clock_that_is_certainly_off_stands_out() {
        let ms = 1_000_000;
        let page = ClocksPage::of(vec![
            report("fine", Some(Interval::between(-ms / 10, ms / 5))),
            report("ahead", Some(Interval::between(4_999 * ms, 5_001 * ms))),
            report("doubtful", Some(Interval::between(-9 * ms, 9 * ms))),
            report("unknown <b>", None),
        ]);
        let off: Vec<_> = page.peers.iter().map(|peer| peer.is_off).collect();
        assert_eq!(off, [false, true, false, false]);
        let bars: Vec<_> = page
            .peers
            .iter()
            .filter_map(|p| p.bounds.as_ref())
            .collect();
        assert!(bars[0].x <= page.zero && page.zero <= bars[0].x + bars[0].drawn + 0.01);
        assert!(bars[1].x > 90.0 && bars[1].x + bars[1].drawn <= WIDTH);
        let html = page.render().unwrap();
        assert_well_formed(&html);
        let text = text_of(&html);
        for words in [
            "4.999000",
            "5.001000",
            "not bounded",
            "unknown <b>",
            "22:13:20.000",
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
    }

    #[test]
    fn any_bounds_are_drawn_within_the_picture() {
        let all = [i64::MIN, -1, 0, 1, i64::MAX];
        let pairs = all
            .iter()
            .flat_map(|a| all.map(|b| Interval::between(*a, b)));
        let reports = pairs.map(|within| report("any", Some(within))).collect();
        let page = ClocksPage::of(reports);
        for bounds in page.peers.iter().filter_map(|peer| peer.bounds.as_ref()) {
            assert!(bounds.x >= 0.0 && bounds.x + bounds.drawn <= WIDTH + LEAST_WIDTH);
        }
    }
}
