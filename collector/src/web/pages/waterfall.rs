//! A verdict as a drawing: what the client, the wire and the server did, on one time axis.
//!
//! All coordinates are in drawing units. Every bar is drawn twice: pale
//! from its earliest start to its latest end, solid from its latest start to its earliest end.

mod bars;
mod gaps;

use skewtap_core::verdict_json::{BarJson, VerdictJson};

pub(super) use self::bars::BarView;
use self::gaps::GapView;
use super::axis::{Axis, Tick};
use super::format::{nanoseconds, within};
use super::gap_regions::{self, Edge, GapRegion};

const WIDTH: f64 = 1040.0;
/// Where the time axis begins.
pub(super) const LEFT: f64 = 76.0;
/// Where it ends.
pub(super) const RIGHT: f64 = 1024.0;

const TOP: f64 = 56.0;
/// Base lines of the labels of gaps, the upper one for a label that finds no room on the lower.
const GAP_LABELS: [f64; 2] = [TOP - 14.0, TOP - 33.0];
/// How far the labels of gaps reach above their base line.
const LABEL_HEIGHT: f64 = 16.0;
const LANE_HEIGHT: f64 = 58.0;
const AXIS_HEIGHT: f64 = 40.0;
/// Where in a lane the main bars begin, and how tall they are.
const MAIN: (f64, f64) = (7.0, 24.0);
/// The same for what lies unread in a socket, below the main bars.
const UNREAD: (f64, f64) = (35.0, 15.0);
/// A bar is at least this wide, so that it can be seen.
const LEAST_WIDTH: f64 = 1.5;
/// An upper estimate of a letter's width.
const LETTER: f64 = 6.6;
/// The most bars drawn; a page with more would be neither quick nor readable.
pub(super) const MOST_BARS: usize = 240;
/// A gap shorter than this share of the picture is drawn again on an axis of its own.
const SMALL_SHARE: f64 = 0.3;

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Waterfall {
    /// Its measures.
    pub(super) frame: Frame,
    /// The lanes, from the top.
    pub(super) lanes: Vec<LaneView>,
    /// The gridlines.
    pub(super) ticks: Vec<Tick>,
    /// The bars.
    pub(super) bars: Vec<BarView>,
    /// The gaps that stand out.
    pub(super) gaps: Vec<GapView>,
    /// Bars that are not drawn because there are too many.
    pub(super) left_out: usize,
    /// The picture in words.
    pub(super) description: String,
}

/// The measures of a drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    /// Width of the picture.
    pub(super) width: f64,
    /// Upper edge of the picture.
    pub(super) top: f64,
    /// Height of the picture.
    pub(super) height: f64,
    /// Where the time axis begins.
    pub(super) left: f64,
    /// Where the first lane begins.
    pub(super) roof: f64,
    /// Where the last lane ends.
    pub(super) floor: f64,
}

/// A lane.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LaneView {
    /// `client`, `wire` or `server`.
    pub(super) name: &'static str,
    /// Its upper edge.
    pub(super) y: f64,
    /// Its height.
    pub(super) height: f64,
    /// The line on which its name stands.
    pub(super) middle: f64,
    /// What is not drawn in it, and why.
    pub(super) note: Option<&'static str>,
}

/// A length on the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    /// Its left edge.
    pub(super) x: f64,
    /// Its width.
    pub(super) width: f64,
}

/// A text in the drawing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    /// Where it stands.
    pub(super) x: f64,
    /// Its base line.
    pub(super) y: f64,
    /// `start`, `middle` or `end`.
    pub(super) anchor: &'static str,
    /// Whether it stands on the bar's solid colour.
    pub(super) on_bar: bool,
    /// The text.
    pub(super) text: String,
}

impl Waterfall {
    /// The whole exchange. `None` when nothing was placed on the time axis.
    pub(super) fn of(verdict: &VerdictJson) -> Option<Self> {
        let (from, to) = extent(verdict)?;
        let margin = (to - from) * 0.01;
        Self::between(verdict, from - margin, to + margin)
    }

    /// The longest gap that stands out, with a little before and after it, where the whole picture
    /// shows it small.
    pub(super) fn close_up(verdict: &VerdictJson) -> Option<Self> {
        let (from, to) = extent(verdict)?;
        let gaps = gap_regions::of(verdict);
        let longest = gaps
            .iter()
            .max_by(|a, b| proven_length(a).total_cmp(&proven_length(b)))?;
        let length = longest.end.hi - longest.start.lo;
        let margin = length * 0.3;
        let small = length > 0.0 && length < (to - from) * SMALL_SHARE;
        small.then(|| {
            let from = (longest.start.lo - margin).max(from);
            let to = (longest.end.hi + margin).min(to + margin / 10.0);
            Self::between(verdict, from, to)
        })?
    }

    fn between(verdict: &VerdictJson, from: f64, to: f64) -> Option<Self> {
        let axis = Axis::new(from, to, LEFT, RIGHT)?;
        let shown: Vec<&BarJson> = verdict
            .bars
            .iter()
            .filter(|bar| axis.shows(bar.start_lo_seconds, bar.end_hi_seconds))
            .collect();
        let drawn = shown.get(..MOST_BARS).unwrap_or(&shown);
        let regions = gap_regions::of(verdict);
        let visible = regions
            .iter()
            .filter(|gap| axis.shows(gap.start.lo, gap.end.hi))
            .take(MOST_BARS);
        let gaps = gaps::draw(&axis, visible);
        let labels = gaps.iter().filter_map(|gap| gap.label.as_ref());
        let highest = labels.fold(TOP, |top, label| top.min(label.y));
        let (top, floor) = (highest - LABEL_HEIGHT, TOP + 3.0 * LANE_HEIGHT);
        Some(Self {
            frame: Frame {
                width: WIDTH,
                top,
                height: floor + AXIS_HEIGHT - top,
                left: LEFT,
                roof: TOP,
                floor,
            },
            lanes: lanes(verdict),
            ticks: axis.ticks(),
            gaps,
            left_out: shown.len().saturating_sub(MOST_BARS),
            bars: bars::draw(&axis, drawn, verdict, &regions),
            description: description(verdict, drawn),
        })
    }
}

/// From the earliest start of any bar to the latest end of any.
fn extent(verdict: &VerdictJson) -> Option<(f64, f64)> {
    let starts = verdict.bars.iter().map(|bar| bar.start_lo_seconds);
    let ends = verdict.bars.iter().map(|bar| bar.end_hi_seconds);
    Some((starts.reduce(f64::min)?, ends.reduce(f64::max)?))
}

fn proven_length(gap: &GapRegion) -> f64 {
    gap.end.lo - gap.start.hi
}

fn lanes(verdict: &VerdictJson) -> Vec<LaneView> {
    ["client", "wire", "server"]
        .into_iter()
        .zip([0.0, 1.0, 2.0])
        .map(|(name, at)| LaneView {
            name,
            y: TOP + at * LANE_HEIGHT,
            height: LANE_HEIGHT - 1.0,
            middle: TOP + at * LANE_HEIGHT + MAIN.0 + 17.0,
            note: lane_note(verdict, name),
        })
        .collect()
}

fn lane_note(verdict: &VerdictJson, lane: &str) -> Option<&'static str> {
    let main = |bar: &BarJson| bar.lane == lane && bar.name != "unread";
    if verdict.bars.iter().any(main) {
        return None;
    }
    let missing = |what: &str| verdict.quality.missing.iter().any(|gone| gone == what);
    match lane {
        "client" if missing("client_span") => Some("no client span arrived"),
        "server" if missing("server_span") => Some("no server span arrived"),
        "wire" if missing("exchange") => Some("no exchange was seen by a proxy"),
        "wire" => Some("nothing was stamped"),
        _ => Some("the span is not drawn: its clock is not bounded against the proxy's"),
    }
}

fn lane_top(lane: &str) -> Option<f64> {
    match lane {
        "client" => Some(TOP),
        "wire" => Some(TOP + LANE_HEIGHT),
        "server" => Some(TOP + 2.0 * LANE_HEIGHT),
        _ => None,
    }
}

/// From `from_s` to `to_s`; `None` when that is backwards.
fn stretch(axis: &Axis, from_s: f64, to_s: f64) -> Option<Stretch> {
    if to_s < from_s {
        return None;
    }
    let (x, end) = (axis.x(from_s), axis.x(to_s));
    let width = ((end - x) * 100.0).round() / 100.0;
    Some(Stretch {
        x: x.min(RIGHT - LEAST_WIDTH),
        width: width.max(LEAST_WIDTH),
    })
}

fn instant(edge: Edge) -> String {
    within(nanoseconds(edge.lo), nanoseconds(edge.hi))
}

fn text_width(text: &str) -> f64 {
    text.chars().fold(0.0, |width, _| width + LETTER)
}

fn description(verdict: &VerdictJson, bars: &[&BarJson]) -> String {
    let mut sentences: Vec<String> = bars
        .iter()
        .take(12)
        .map(|bar| {
            format!(
                "{} {} from {} to {}.",
                bar.lane,
                bar.name,
                instant(Edge::start(bar)),
                instant(Edge::end(bar))
            )
        })
        .collect();
    let gaps = gap_regions::of(verdict);
    sentences.extend(
        gaps.into_iter()
            .take(12)
            .map(|gap| format!("Gap: {}.", gap.label)),
    );
    sentences.join(" ")
}
