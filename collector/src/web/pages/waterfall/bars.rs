//! The bars of a drawing and what is written on them.

use skewtap_core::verdict_json::{BarJson, VerdictJson};

use super::{LEFT, Label, MAIN, RIGHT, Stretch, UNREAD, instant, lane_top, stretch, text_width};
use crate::web::pages::axis::Axis;
use crate::web::pages::format::{length, nanoseconds, within};
use crate::web::pages::gap_regions::{Edge, GapRegion};

/// A label stands beside a bar from this width on: shorter ones would crowd the picture.
const LEAST_LABELLED: f64 = 4.0;

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BarView {
    /// The lane and the kind, for its colour.
    pub(crate) class: String,
    /// Its upper edge.
    pub(crate) y: f64,
    /// Its height.
    pub(crate) height: f64,
    /// From its earliest start to its latest end.
    pub(crate) possible: Stretch,
    /// From its latest start to its earliest end; `None` when these overlap.
    pub(crate) certain: Option<Stretch>,
    /// What is written on or beside it.
    pub(crate) label: Option<Label>,
    /// What it is, with its bounds.
    pub(crate) title: String,
}

/// Draws `bars`, each with its label where there is room for it. What `gaps` mark has its label there.
pub(super) fn draw(
    axis: &Axis,
    bars: &[&BarJson],
    verdict: &VerdictJson,
    gaps: &[GapRegion],
) -> Vec<BarView> {
    let views = bars
        .iter()
        .filter_map(|bar| bar_view(axis, bar, verdict, gaps));
    let mut views: Vec<BarView> = views.collect();
    place_labels(&mut views);
    views
}

fn bar_view(
    axis: &Axis,
    bar: &BarJson,
    verdict: &VerdictJson,
    gaps: &[GapRegion],
) -> Option<BarView> {
    let top = lane_top(&bar.lane)?;
    let unread = bar.name == "unread";
    let (offset, height) = if unread { UNREAD } else { MAIN };
    let (start, end) = (Edge::start(bar), Edge::end(bar));
    let kind = if unread { "unread" } else { bar.lane.as_ref() };
    let dim = bar.name == "waiting";
    let is_gap = gaps.iter().any(|gap| gap.start == start && gap.end == end);
    Some(BarView {
        class: format!("{kind}{}", if dim { " waiting" } else { "" }),
        y: top + offset,
        height,
        possible: stretch(axis, start.lo, end.hi)?,
        certain: stretch(axis, start.hi, end.lo),
        // A gap has its label above.
        label: (!is_gap).then(|| Label {
            x: 0.0,
            y: top + offset + height / 2.0 + 4.0,
            anchor: "start",
            on_bar: false,
            text: format!("{} {}", bar.name, bar_length(bar, verdict)),
        }),
        title: format!(
            "{} {}: from {} to {}, {} long",
            bar.lane,
            bar.name,
            instant(start),
            instant(end),
            bar_length(bar, verdict)
        ),
    })
}

/// A span's own length is exact, however uncertain its place.
fn bar_length(bar: &BarJson, verdict: &VerdictJson) -> String {
    let spans = verdict.bars.iter();
    let alone = spans
        .filter(|other| other.lane == bar.lane && other.name == "span")
        .count()
        == 1;
    let exact = match (bar.lane.as_ref(), bar.name.as_str()) {
        ("client", "span") => verdict.client_seconds,
        ("server", "span") if alone && verdict.exchanges == 1 => verdict.server_seconds,
        _ => None,
    };
    exact.map_or_else(
        || {
            within(
                nanoseconds(bar.end_lo_seconds - bar.start_hi_seconds),
                nanoseconds(bar.end_hi_seconds - bar.start_lo_seconds),
            )
        },
        |seconds| length(nanoseconds(seconds)),
    )
}

/// Puts each label on its bar, else beside it, else leaves it out.
fn place_labels(bars: &mut [BarView]) {
    let taken: Vec<(f64, Stretch)> = bars.iter().map(|bar| (bar.y, bar.possible)).collect();
    for (at, bar) in bars.iter_mut().enumerate() {
        let Some(mut label) = bar.label.take() else {
            continue;
        };
        let width = text_width(&label.text) + 8.0;
        let (left, right) = (bar.possible.x, bar.possible.x + bar.possible.width);
        let is_free = |from: f64, to: f64| {
            bar.possible.width >= LEAST_LABELLED
                && from >= LEFT
                && to <= RIGHT
                && !taken.iter().enumerate().any(|(other, (y, stretch))| {
                    other != at && *y == bar.y && stretch.x < to && stretch.x + stretch.width > from
                })
        };
        let certain = bar.certain.filter(|certain| certain.width >= width);
        if let Some(certain) = certain {
            (label.x, label.on_bar) = (certain.x + 6.0, true);
        } else if bar.certain.is_none() && bar.possible.width >= width {
            label.x = left + 6.0;
        } else if is_free(right, right + width) {
            label.x = right + 5.0;
        } else if is_free(left - width, left) {
            (label.x, label.anchor) = (left - 5.0, "end");
        } else {
            continue;
        }
        bar.label = Some(label);
    }
}
