//! The time axis of a drawing: seconds to coordinates, and where the gridlines stand.

/// Space between two gridlines, at least, in drawing units.
const LEAST_TICK_DISTANCE: f64 = 84.0;

const MOST_TICKS: u32 = 32;

/// A straight axis from `left` to `right` in drawing units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    from_s: f64,
    to_s: f64,
    left: f64,
    right: f64,
}

/// A gridline.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Where it stands.
    pub(super) x: f64,
    /// Its time in seconds, with the decimals that tell it from its neighbours.
    pub(super) label: String,
}

impl Axis {
    /// An axis that shows the seconds `from_s` to `to_s`; `None` when that is no length of time.
    pub(super) fn new(from_s: f64, to_s: f64, left: f64, right: f64) -> Option<Self> {
        let length = to_s - from_s;
        // Below a nanosecond there is nothing to show, and far above a year nothing to read.
        (length.is_finite() && length > 1e-9 && length < 1e9).then_some(Self {
            from_s,
            to_s,
            left,
            right,
        })
    }

    /// The coordinate of an instant, held within the axis, to a hundredth of a unit.
    pub(super) fn x(&self, seconds: f64) -> f64 {
        let share = (seconds - self.from_s) / (self.to_s - self.from_s);
        let x = self.left + share.clamp(0.0, 1.0) * (self.right - self.left);
        (x * 100.0).round() / 100.0
    }

    /// Whether anything between the two instants is on the axis.
    pub(super) fn shows(&self, from_s: f64, to_s: f64) -> bool {
        to_s >= self.from_s && from_s <= self.to_s
    }

    /// Gridlines at round times, as close as their labels allow.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let most = ((self.right - self.left) / LEAST_TICK_DISTANCE).max(1.0);
        let (step, decimals) = round_step((self.to_s - self.from_s) / most);
        let first = (self.from_s / step).ceil();
        // Counted, since a time far from zero may not change by a step at all.
        let times = (0..MOST_TICKS).map(|n| (first + f64::from(n)) * step);
        let shown = times.take_while(|seconds| *seconds <= self.to_s);
        shown
            .map(|seconds| Tick {
                x: self.x(seconds),
                label: tick_label(seconds, decimals),
            })
            .collect()
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `least`, and the decimals it
/// takes to write its multiples.
fn round_step(least: f64) -> (f64, usize) {
    let mut decimals = 9_usize;
    let mut unit = 1e-9;
    loop {
        for factor in [1.0, 2.0, 5.0] {
            // The product of two inexact numbers may fall a hair short of `least`.
            if unit * factor >= least * (1.0 - 1e-9) {
                return (unit * factor, decimals);
            }
        }
        unit *= 10.0;
        decimals = decimals.saturating_sub(1);
    }
}

fn tick_label(seconds: f64, decimals: usize) -> String {
    if seconds == 0.0 {
        return "0".to_owned();
    }
    let sign = if seconds < 0.0 { "\u{2212}" } else { "" };
    format!("{sign}{:.decimals$}", seconds.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from_s: f64, to_s: f64) -> Vec<String> {
        let axis = Axis::new(from_s, to_s, 0.0, 860.0).unwrap();
        axis.ticks().into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn an_instant_lies_where_its_share_of_the_time_says() {
        let axis = Axis::new(-2.0, 6.0, 100.0, 900.0).unwrap();
        assert_eq!(axis.x(-2.0), 100.0);
        assert_eq!(axis.x(2.0), 500.0);
        assert_eq!(axis.x(6.0), 900.0);
        assert_eq!(axis.x(99.0), 900.0);
    }

    #[test]
    fn gridlines_stand_at_round_times() {
        assert_eq!(
            labels(-0.1, 8.1),
            ["0", "1", "2", "3", "4", "5", "6", "7", "8"]
        );
        assert_eq!(labels(7.45, 7.95)[..2], ["7.45", "7.50"]);
        assert_eq!(
            labels(-0.25, 0.25)[..3],
            ["\u{2212}0.25", "\u{2212}0.20", "\u{2212}0.15"]
        );
        assert_eq!(labels(0.0, 0.000_004)[..2], ["0", "0.0000005"]);
    }

    #[test]
    fn gridlines_of_any_length_of_time_are_few_and_apart() {
        for exponent in -8..9 {
            for factor in [1.0, 1.7, 3.9, 9.9] {
                let to_s = factor * 10_f64.powi(exponent);
                let Some(axis) = Axis::new(0.0, to_s, 0.0, 860.0) else {
                    continue;
                };
                let ticks = axis.ticks();
                assert!((2..=12).contains(&ticks.len()), "{to_s}: {ticks:?}");
                for pair in ticks.windows(2) {
                    assert!(pair[1].x - pair[0].x >= LEAST_TICK_DISTANCE - 0.02);
                    assert_ne!(pair[0].label, pair[1].label);
                }
            }
        }
    }

    #[test]
    fn what_is_no_length_of_time_has_no_axis() {
        assert_eq!(Axis::new(1.0, 1.0, 0.0, 1.0), None);
        assert_eq!(Axis::new(0.0, f64::NAN, 0.0, 1.0), None);
        assert_eq!(Axis::new(0.0, f64::INFINITY, 0.0, 1.0), None);
    }
}
