//! The gaps of a drawing and what is written above them.

use super::{
    GAP_LABELS, LEFT, LETTER, Label, RIGHT, Stretch, UNREAD, lane_top, stretch, text_width,
};
use crate::web::pages::axis::Axis;
use crate::web::pages::gap_regions::GapRegion;

/// A gap that stands out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GapView {
    /// From its earliest start to its latest end.
    pub(crate) possible: Stretch,
    /// From its latest start to its earliest end; `None` when these overlap.
    pub(crate) certain: Option<Stretch>,
    /// Upper edge of the mark in its lane.
    pub(crate) y: f64,
    /// Height of that mark.
    pub(crate) height: f64,
    /// Its segment and length; `None` where labels of other gaps leave no room.
    pub(crate) label: Option<Label>,
    /// Its segment and length.
    pub(crate) title: String,
}

/// Draws gaps, each with its label as long as there is room.
pub(super) fn draw<'a>(axis: &Axis, gaps: impl Iterator<Item = &'a GapRegion>) -> Vec<GapView> {
    // How far each line of labels is taken; gaps come in the order of time.
    let mut taken = GAP_LABELS.map(|y| (y, LEFT));
    let views = gaps.filter_map(|gap| {
        let possible = stretch(axis, gap.start.lo, gap.end.hi)?;
        let (mut label, from, to) = gap_label(&gap.label, possible);
        let line = taken.iter_mut().find(|(_, until)| from >= *until);
        Some(GapView {
            possible,
            certain: stretch(axis, gap.start.hi, gap.end.lo),
            y: lane_top(gap.lane)? + UNREAD.0,
            height: UNREAD.1,
            label: line.map(|(y, until)| {
                (label.y, *until) = (*y, to + LETTER);
                label
            }),
            title: gap.label.clone(),
        })
    });
    views.collect()
}

/// The label of a gap, above its middle if there is room, and where it begins and ends.
fn gap_label(text: &str, gap: Stretch) -> (Label, f64, f64) {
    let width = text_width(text);
    let (middle, end) = (gap.x + gap.width / 2.0, gap.x + gap.width);
    let (x, anchor, from) = if middle - width / 2.0 < LEFT {
        (gap.x, "start", gap.x)
    } else if middle + width / 2.0 > RIGHT {
        (end, "end", end - width)
    } else {
        (middle, "middle", middle - width / 2.0)
    };
    let label = Label {
        x,
        y: 0.0,
        anchor,
        on_bar: false,
        text: text.to_owned(),
    };
    (label, from, from + width)
}
