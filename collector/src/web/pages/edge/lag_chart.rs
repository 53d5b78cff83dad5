//! The client's lag against the server's time, and the rhythm of a timer in it.

use skewtap_core::clock::Interval;
use skewtap_core::lag_rhythm::{
    self, FEWEST_LAGGING, LEAST_LAG_NS, LagRhythm, LagSample, MOST_SAMPLES,
};

use crate::store::query::scatter::Point;
use crate::web::pages::chart::{Beat, Chart, ChartRow, Key, plain_seconds};
use crate::web::pages::format::{instant, millis};

/// What the lags say of a timer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rhythm {
    /// The rhythm, if one is beyond chance.
    pub(super) found: Option<LagRhythm>,
    /// That in words.
    pub(super) words: String,
}

/// The rhythm of the latest points.
pub(super) fn rhythm(points: &[Point]) -> Rhythm {
    let mut samples: Vec<LagSample> = points
        .iter()
        .rev()
        .filter_map(|point| {
            Some(LagSample {
                waited_ns: waited_ns(point)?,
                lag: Interval::exactly(point.lag_ns?),
            })
        })
        .take(MOST_SAMPLES)
        .collect();
    samples.reverse();
    let lagging = samples
        .iter()
        .filter(|sample| sample.lag.middle() > LEAST_LAG_NS)
        .count();
    let found = lag_rhythm::find(&samples);
    let words = match &found {
        Some(rhythm) => in_words(rhythm),
        None if lagging == 0 => format!("No lag above {} s.", millis(LEAST_LAG_NS)),
        None if lagging < FEWEST_LAGGING => format!(
            "Lags above {} s: {lagging}. It takes {FEWEST_LAGGING} to look for the rhythm of a timer.",
            millis(LEAST_LAG_NS)
        ),
        None => format!(
            "No known timer has the rhythm of these lags ({lagging} above {} s, in {} exchanges).",
            millis(LEAST_LAG_NS),
            samples.len()
        ),
    };
    Rhythm { found, words }
}

/// The chart, with the rhythm drawn behind its points.
pub(super) fn chart(points: &[Point], rhythm: &Rhythm) -> Chart {
    Chart {
        id: "lag",
        kind: "points",
        title: "Each exchange: how long the client surely lagged after the response was there"
            .to_owned(),
        x_label: "time of the server, as the wire saw it (s)",
        y_label: "lag of the client, at least (s)",
        x_is_time: false,
        keys: Key::of_points(),
        beat: rhythm.found.as_ref().map(beat),
        columns: ["Began (UTC)", "Server (s)", "Lag, at least (s)", "Flag"]
            .map(str::to_owned)
            .to_vec(),
        rows: points.iter().filter_map(row).collect(),
    }
}

fn row(point: &Point) -> Option<ChartRow> {
    let (waited_ns, lag_ns) = (waited_ns(point)?, point.lag_ns?);
    let kind = kind(point);
    Some(ChartRow {
        href: Some(href(point)),
        data: vec![
            ("x", plain_seconds(waited_ns)),
            ("y", plain_seconds(lag_ns)),
            ("kind", kind.to_owned()),
            (
                "note",
                format!(
                    "server {} s, lag at least {} s, {kind}",
                    millis(waited_ns),
                    millis(lag_ns)
                ),
            ),
            ("href", href(point)),
        ],
        cells: vec![
            began(point),
            millis(waited_ns),
            millis(lag_ns),
            kind.to_owned(),
        ],
    })
}

/// From the request's last byte on, as near as a point has it: what is added to all alike
/// changes no rhythm.
fn waited_ns(point: &Point) -> Option<i64> {
    point.wire_ns.or(point.server_ns)
}

/// Where the page of an exchange is.
pub(super) fn href(point: &Point) -> String {
    format!("/exchanges/{}/{}", point.trace_id, point.client_span_id)
}

/// `flagged` or `ordinary`.
pub(super) const fn kind(point: &Point) -> &'static str {
    if point.flagged { "flagged" } else { "ordinary" }
}

/// When it began.
pub(super) fn began(point: &Point) -> String {
    let at = instant(point.started_ns);
    at.map_or_else(String::new, |at| format!("{} {}", at.day, at.time))
}

fn beat(rhythm: &LagRhythm) -> Beat {
    Beat {
        period: plain_seconds(rhythm.period_ns),
        looking: plain_seconds(rhythm.period_ns.saturating_sub(rhythm.blind_ns)),
        phase: plain_seconds(rhythm.phase_ns),
    }
}

fn in_words(rhythm: &LagRhythm) -> String {
    let looking_ns = rhythm.period_ns.saturating_sub(rhythm.blind_ns);
    let how = if looking_ns == 0 {
        format!(
            "the client looks for its response once every {} s",
            millis(rhythm.period_ns)
        )
    } else {
        format!(
            "the client looks for its response for {} s, then does not for {} s, and so on: a period of {} s",
            millis(looking_ns),
            millis(rhythm.blind_ns),
            millis(rhythm.period_ns)
        )
    };
    format!(
        "The lags are consistent with a timer: {how}. Of {} lags {} % end on that beat, first \
         {} s after the wait began; {} % of all {} exchanges lag as it says. Chance alone looks as \
         regular in at most {} of 1000 shuffles.",
        rhythm.lagging,
        percent(rhythm.on_beat),
        millis(rhythm.phase_ns),
        percent(rhythm.fit),
        rhythm.samples,
        (rhythm.chance * 1000.0).round()
    )
}

fn percent(share: f64) -> f64 {
    (share * 100.0).round()
}

#[cfg(test)]
mod tests;
