//! Whether the lags of many exchanges follow the rhythm of a timer.
//!
//! A client that looks for its response only now and then gives each exchange a lag that depends
//! on when the response came: a sawtooth over the time waited. Known rhythms are laid over the
//! samples; which lag goes with which wait is then shuffled, to see how often chance alone looks
//! as regular. That test keeps both distributions as they are, so a server that is regular itself
//! does not pass for a client's timer.

mod phase;
mod shuffle;

use std::f64::consts::TAU;

use self::phase::densest;
use self::shuffle::Shuffle;
use crate::clock::Interval;

/// A lag of at least this many nanoseconds is one that a timer may have made.
pub const LEAST_LAG_NS: i64 = 20_000_000;
/// Fewer samples with a lag say nothing.
pub const FEWEST_LAGGING: usize = 8;
/// Samples looked at: the first so many. The test's cost grows with them.
pub const MOST_SAMPLES: usize = 1_000;
/// Shuffles that are compared with what was observed.
const SHUFFLES: u32 = 999;
/// At most this share of the shuffles may look as regular as the samples do.
const MOST_CHANCE: f64 = 0.005;
/// At least this share of the lags must end on the beat.
const LEAST_ON_BEAT: f64 = 0.5;
/// At least this share of all samples must lag as the rhythm says, those without a lag included.
const LEAST_FIT: f64 = 0.6;
/// A lag may end this share of a period beside the beat.
const BEAT_WIDTH: f64 = 0.015;
/// This near to an edge, in periods, either outcome is right: the two race there.
const EDGE_WIDTH: f64 = 0.06;

/// Period in nanoseconds, and the share of it in which the client looks at its socket.
const KNOWN: [(i64, f64); 4] = [
    (2_000_000_000, 0.5),
    (1_000_000_000, 0.0),
    (500_000_000, 0.0),
    (100_000_000, 0.0),
];

/// One exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LagSample {
    /// From the client's last activity on the socket to the arrival of the response, in
    /// nanoseconds. What is added to all samples alike changes nothing.
    pub waited_ns: i64,
    /// From the arrival of the response to when the client had read it.
    pub lag: Interval,
}

/// The rhythm that the lags follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LagRhythm {
    /// From one look at the socket to the next, in nanoseconds.
    pub period_ns: i64,
    /// How much of a period passes without a look, in nanoseconds.
    pub blind_ns: i64,
    /// When a look follows a blind time, in nanoseconds after the wait began, modulo the period.
    pub phase_ns: i64,
    /// Samples looked at.
    pub samples: usize,
    /// Those of them with a lag that a timer may have made.
    pub lagging: usize,
    /// The share of the lags that end on the beat.
    pub on_beat: f64,
    /// The share of all samples that lag as the rhythm says.
    pub fit: f64,
    /// The share of shuffles that look as regular; at least one in a thousand.
    pub chance: f64,
}

/// The rhythm that fits best, if one is beyond chance.
///
/// The samples should be those of one kind of client: mixed ones hide a rhythm, and never make
/// one.
#[must_use]
pub fn find(samples: &[LagSample]) -> Option<LagRhythm> {
    let samples = samples.get(..MOST_SAMPLES).unwrap_or(samples);
    let threshold_ns = LEAST_LAG_NS.max(median_width(samples).saturating_mul(3));
    let lagging: Vec<Point> = samples
        .iter()
        .filter(|sample| sample.lag.middle() > threshold_ns)
        .map(Point::of)
        .collect();
    if lagging.len() < FEWEST_LAGGING {
        return None;
    }
    let all: Vec<Point> = samples.iter().map(Point::of).collect();
    KNOWN
        .iter()
        .filter_map(|(period_ns, looking)| {
            try_one(*period_ns, *looking, threshold_ns, &all, &lagging)
        })
        .max_by(|a, b| a.fit.total_cmp(&b.fit))
}

/// A sample in seconds.
#[derive(Clone, Copy)]
struct Point {
    waited: f64,
    lag: f64,
}

impl Point {
    fn of(sample: &LagSample) -> Self {
        Self {
            waited: seconds(sample.waited_ns),
            lag: seconds(sample.lag.middle()),
        }
    }
}

fn try_one(
    period_ns: i64,
    looking: f64,
    threshold_ns: i64,
    all: &[Point],
    lagging: &[Point],
) -> Option<LagRhythm> {
    let period = seconds(period_ns);
    let tolerance = seconds(threshold_ns).max(BEAT_WIDTH * period);
    // A tolerance as wide as the period would call anything regular.
    if tolerance * 4.0 > period {
        return None;
    }
    let ends: Vec<f64> = lagging
        .iter()
        .map(|point| (point.waited + point.lag).rem_euclid(period))
        .collect();
    let phase = densest(&ends, period, tolerance)?;
    let on_beat = share(&ends, |end| distance(*end, phase, period) <= tolerance);
    let fit = share(all, |point| fits(*point, period, looking, phase, tolerance));
    if on_beat < LEAST_ON_BEAT || fit < LEAST_FIT {
        return None;
    }
    let chance = chance(lagging, period);
    (chance <= MOST_CHANCE).then(|| LagRhythm {
        period_ns,
        blind_ns: nanoseconds(period * (1.0 - looking)),
        phase_ns: nanoseconds(phase),
        samples: all.len(),
        lagging: lagging.len(),
        on_beat,
        fit,
        chance,
    })
}

/// Whether a sample lags as a client would that looks for the first `looking` of each period.
fn fits(point: Point, period: f64, looking: f64, phase: f64, tolerance: f64) -> bool {
    let at = (point.waited - phase).rem_euclid(period);
    let is = |lag: f64| (point.lag - lag).abs() <= tolerance;
    let near = |edge: f64| distance(at, edge * period, period) <= EDGE_WIDTH * period;
    if near(0.0) || near(looking) {
        is(0.0) || is(period - at)
    } else if at < looking * period {
        is(0.0)
    } else {
        is(period - at)
    }
}

/// The share of shuffles, what was observed among them, whose lags end as regularly.
fn chance(lagging: &[Point], period: f64) -> f64 {
    let turns = |time: f64| (TAU * time / period).sin_cos();
    let waits: Vec<_> = lagging.iter().map(|point| turns(point.waited)).collect();
    let mut lags: Vec<_> = lagging.iter().map(|point| turns(point.lag)).collect();
    let observed = concentration(&waits, &lags);
    let mut shuffle = Shuffle::new();
    let mut as_regular = 1_u32;
    for _ in 0..SHUFFLES {
        shuffle.shuffle(&mut lags);
        // Sums in another order differ by a hair.
        as_regular += u32::from(concentration(&waits, &lags) >= observed - 1e-9);
    }
    f64::from(as_regular) / f64::from(SHUFFLES + 1)
}

/// How much the ends of all pairs agree, as the length of their mean direction times their count.
fn concentration(waits: &[(f64, f64)], lags: &[(f64, f64)]) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for ((wait_sin, wait_cos), (lag_sin, lag_cos)) in waits.iter().zip(lags) {
        x += wait_cos * lag_cos - wait_sin * lag_sin;
        y += wait_sin * lag_cos + wait_cos * lag_sin;
    }
    x.hypot(y)
}

/// The way round a circle of one period, whichever is shorter.
fn distance(a: f64, b: f64, period: f64) -> f64 {
    let apart = (a - b).rem_euclid(period);
    apart.min(period - apart)
}

fn share<T>(of: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    let count = |n: usize| u32::try_from(n).map_or(f64::INFINITY, f64::from);
    count(of.iter().filter(|one| holds(one)).count()) / count(of.len().max(1))
}

fn median_width(samples: &[LagSample]) -> i64 {
    let mut widths: Vec<i64> = samples.iter().map(|sample| sample.lag.width()).collect();
    widths.sort_unstable();
    widths.get(widths.len() / 2).copied().unwrap_or_default()
}

fn seconds(ns: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^53 ns")]
    let ns = ns as f64;
    ns / 1e9
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a cast from a float saturates, and a period is far below that"
)]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

#[cfg(test)]
mod tests;
