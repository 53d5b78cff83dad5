//! The gaps of an edge over time: each by itself, and what most of them stay below.

use super::lag_chart::{began, href, kind};
use crate::store::query::aggregates::{GapPeriod, GapSeries};
use crate::store::query::scatter::Point;
use crate::web::pages::chart::{Chart, ChartRow, Key, plain_seconds};
use crate::web::pages::format::{about, instant, millis};

/// What the lines of the second chart stand for.
const QUANTILES: [&str; 3] = ["half are below", "90 % are below", "99 % are below"];

/// Each exchange with a gap as a point.
pub(super) fn points(points: &[Point]) -> Chart {
    Chart {
        id: "gaps",
        kind: "points",
        title: "Each exchange: client minus server".to_owned(),
        x_label: "time (UTC)",
        y_label: "gap (s)",
        x_is_time: true,
        keys: Key::of_points(),
        beat: None,
        columns: ["Began (UTC)", "Gap (s)", "Flag"]
            .map(str::to_owned)
            .to_vec(),
        rows: points.iter().filter_map(point_row).collect(),
    }
}

/// Quantiles of the gap in each period.
pub(super) fn quantiles(series: &GapSeries) -> Chart {
    let keys = QUANTILES.iter().enumerate();
    Chart {
        id: "quantiles",
        kind: "lines",
        title: "All exchanges of a period: what their gaps stay below".to_owned(),
        x_label: "time (UTC)",
        y_label: "gap (s)",
        x_is_time: true,
        keys: keys.map(|(at, words)| Key::nth(at, words)).collect(),
        beat: None,
        columns: std::iter::once("Began (UTC)")
            .chain(QUANTILES)
            .chain(["Exchanges"])
            .map(str::to_owned)
            .collect(),
        rows: series.periods.iter().filter_map(period_row).collect(),
    }
}

fn point_row(point: &Point) -> Option<ChartRow> {
    let gap_ns = point.gap_ns?;
    let (began, kind) = (began(point), kind(point));
    Some(ChartRow {
        href: Some(href(point)),
        data: vec![
            ("x", plain_seconds(point.started_ns)),
            ("y", plain_seconds(gap_ns)),
            ("kind", kind.to_owned()),
            ("note", format!("{began}: gap {} s, {kind}", millis(gap_ns))),
            ("href", href(point)),
        ],
        cells: vec![began, millis(gap_ns), kind.to_owned()],
    })
}

fn period_row(period: &GapPeriod) -> Option<ChartRow> {
    let gap = period.gap?;
    let at = instant(period.start_ns)?;
    let began = format!("{} {}", at.day, at.time.get(..5).unwrap_or_default());
    let all = [gap.p50, gap.p90, gap.p99];
    let values = all.map(|within| plain_seconds(within.middle()));
    let words = all.map(about);
    let said: Vec<String> = QUANTILES
        .iter()
        .zip(&words)
        .map(|(what, seconds)| format!("{what} {seconds} s"))
        .collect();
    Some(ChartRow {
        href: None,
        data: vec![
            ("x", plain_seconds(period.start_ns)),
            ("values", values.join(" ")),
            ("note", format!("{began}: {}", said.join(", "))),
        ],
        cells: std::iter::once(began)
            .chain(words)
            .chain([gap.known.to_string()])
            .collect(),
    })
}
