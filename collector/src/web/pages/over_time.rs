//! What is flagged over time, by cause, as stacked bars.

use std::collections::BTreeMap;

use super::chart::{Chart, ChartRow, EXCHANGES, Key};
use super::format::instant;
use crate::store::query::aggregates::{CauseSeries, GapSeries};

/// Causes with a colour of their own; the rest are drawn together.
const MOST_CAUSES: usize = 5;
/// What stands for flagged exchanges without a finding.
pub(super) const UNEXPLAINED: &str = "unexplained";
const OTHER: &str = "other causes";

/// The chart of what was found, and of what was flagged without a finding. Both series cover the
/// same window in the same steps.
pub(super) fn chart(found: &CauseSeries, seen: &GapSeries) -> Chart {
    let counts = counts(found, seen);
    let columns = columns(&counts);
    let step_ns = seen.step_s.saturating_mul(1_000_000_000).max(1);
    let first = seen.covered.since_ns - seen.covered.since_ns.rem_euclid(step_ns);
    let starts = std::iter::successors(Some(first), |start| start.checked_add(step_ns));
    let starts = starts.take_while(|start| *start < seen.covered.until_ns);
    let rows = starts.map(|start| {
        let mut values = vec![0_u64; columns.len()];
        let in_period = counts.range((start, "")..(start.saturating_add(1), ""));
        for ((_, cause), exchanges) in in_period {
            let column = columns.iter().position(|column| column == cause);
            let column = column.unwrap_or(columns.len().saturating_sub(1));
            if let Some(value) = values.get_mut(column) {
                *value = value.saturating_add(*exchanges);
            }
        }
        row(start, &values, &columns)
    });
    Chart {
        id: "over-time",
        kind: "bars",
        title: "Flagged exchanges by when they began and by cause".to_owned(),
        x_label: "time (UTC)",
        y_label: EXCHANGES,
        x_is_time: true,
        keys: columns
            .iter()
            .enumerate()
            .map(|(at, cause)| Key::nth(at, cause))
            .collect(),
        beat: None,
        rows: rows.collect(),
        columns: std::iter::once("Began (UTC)".to_owned())
            .chain(columns.iter().cloned())
            .collect(),
    }
}

/// Exchanges by start of the period and cause. One with several causes counts for each of them.
fn counts<'a>(found: &'a CauseSeries, seen: &GapSeries) -> BTreeMap<(i64, &'a str), u64> {
    let mut counts: BTreeMap<(i64, &str), u64> = BTreeMap::new();
    let mut explained: BTreeMap<i64, u64> = BTreeMap::new();
    for period in &found.periods {
        let key = (period.start_ns, period.cause.as_str());
        *counts.entry(key).or_default() += period.exchanges;
        *explained.entry(period.start_ns).or_default() += period.exchanges;
    }
    for period in &seen.periods {
        let explained = explained.get(&period.start_ns).copied().unwrap_or_default();
        let rest = period.flagged.saturating_sub(explained);
        if rest > 0 {
            counts.insert((period.start_ns, UNEXPLAINED), rest);
        }
    }
    counts
}

/// What gets a colour: the most frequent causes, and one for the rest if there are more.
fn columns(counts: &BTreeMap<(i64, &str), u64>) -> Vec<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for ((_, cause), exchanges) in counts {
        *sums.entry(cause).or_default() += exchanges;
    }
    let mut causes: Vec<_> = sums.into_iter().collect();
    causes.sort_by_key(|(_, exchanges)| std::cmp::Reverse(*exchanges));
    let more = causes.len() > MOST_CAUSES;
    let mut names: Vec<String> = causes
        .into_iter()
        .take(MOST_CAUSES)
        .map(|(cause, _)| cause.to_owned())
        .collect();
    if more {
        names.push(OTHER.to_owned());
    }
    names
}

fn row(start_ns: i64, values: &[u64], columns: &[String]) -> ChartRow {
    let began = instant(start_ns).map_or_else(String::new, |at| {
        let minute = at.time.get(..5).unwrap_or_default();
        format!("{} {minute}", at.day)
    });
    let counted = values.iter().zip(columns).filter(|(value, _)| **value > 0);
    let counted: Vec<String> = counted
        .map(|(value, cause)| format!("{value} {cause}"))
        .collect();
    let note = if counted.is_empty() {
        format!("{began}: nothing flagged")
    } else {
        format!("{began}: {}", counted.join(", "))
    };
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    ChartRow {
        href: None,
        data: vec![
            ("x", start_ns.div_euclid(1_000_000_000).to_string()),
            ("values", values.join(" ")),
            ("note", note),
        ],
        cells: std::iter::once(began).chain(values).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::query::aggregates::{CausePeriod, GapPeriod, Window};

    const S: i64 = 1_000_000_000;
    const HOUR: Window = Window {
        since_ns: 3_600 * S,
        until_ns: 7_200 * S,
    };

    fn chart_of(found: &[(i64, &str, u64)], flagged: &[(i64, u64)]) -> Chart {
        let found = found.iter().map(|(start_s, cause, exchanges)| CausePeriod {
            start_ns: start_s * S,
            cause: (*cause).to_owned(),
            exchanges: *exchanges,
        });
        let seen = flagged.iter().map(|(start_s, flagged)| GapPeriod {
            start_ns: start_s * S,
            exchanges: flagged + 10,
            flagged: *flagged,
            gap: None,
        });
        let found = CauseSeries {
            covered: HOUR,
            step_s: 60,
            periods: found.collect(),
        };
        let seen = GapSeries {
            covered: HOUR,
            step_s: 60,
            periods: seen.collect(),
        };
        chart(&found, &seen)
    }

    fn datum<'a>(row: &'a ChartRow, name: &str) -> &'a str {
        let found = row.data.iter().find(|(other, _)| *other == name);
        &found.unwrap().1
    }

    #[test]
    fn every_flagged_exchange_is_in_one_bar() {
        let chart = chart_of(
            &[
                (3_600, "client_blind_sleep", 3),
                (3_660, "client_blind_sleep", 2),
            ],
            &[(3_600, 3), (3_660, 6), (7_140, 1), (3_720, 0)],
        );
        // As often one as the other: then by name.
        assert_eq!(chart.columns[1..], ["client_blind_sleep", UNEXPLAINED]);
        assert_eq!(chart.rows.len(), 60);
        assert_eq!(datum(&chart.rows[0], "values"), "3 0");
        assert_eq!(datum(&chart.rows[1], "values"), "2 4");
        assert_eq!(datum(&chart.rows[2], "values"), "0 0");
        assert_eq!(datum(&chart.rows[59], "values"), "0 1");
        assert_eq!(datum(&chart.rows[1], "x"), "3660");
        assert_eq!(chart.rows[1].cells, ["1970-01-01 01:01", "2", "4"]);
    }

    #[test]
    fn rare_causes_share_a_colour() {
        let names: Vec<String> = (0..9).map(|n| format!("cause_{n}")).collect();
        let found: Vec<_> = names
            .iter()
            .zip(2..)
            .map(|(name, n)| (3_600, name.as_str(), 12 - n))
            .collect();
        let chart = chart_of(&found, &[(3_600, 54)]);
        assert_eq!(chart.keys.len(), MOST_CAUSES + 1);
        assert_eq!(datum(&chart.rows[0], "values"), "10 9 8 7 6 14");
    }
}
