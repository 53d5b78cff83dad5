//! How many exchanges of an edge had a gap of which size.

use crate::store::query::aggregates::GapHistogram;
use crate::web::pages::chart::{Chart, ChartRow, EXCHANGES, Key};

/// Upper ends of the classes, in nanoseconds, and what each class is called.
const CLASSES: [(i64, &str); 15] = [
    (0, "negative"),
    (1_000_000, "< 1 ms"),
    (2_000_000, "1 ms"),
    (5_000_000, "2 ms"),
    (10_000_000, "5 ms"),
    (20_000_000, "10 ms"),
    (50_000_000, "20 ms"),
    (100_000_000, "50 ms"),
    (200_000_000, "0.1 s"),
    (500_000_000, "0.2 s"),
    (1_000_000_000, "0.5 s"),
    (2_000_000_000, "1 s"),
    (5_000_000_000, "2 s"),
    (10_000_000_000, "5 s"),
    (i64::MAX, "10 s"),
];

/// The chart, from the smallest class that occurs to the largest.
pub(super) fn chart(histogram: &GapHistogram) -> Chart {
    let mut counts = CLASSES.map(|_| [0_u64; 2]);
    for bin in &histogram.bins {
        let size_ns = bin.within.middle();
        let class = CLASSES.iter().position(|(end_ns, _)| size_ns < *end_ns);
        if let Some([ordinary, flagged]) = class.and_then(|at| counts.get_mut(at)) {
            *ordinary = ordinary.saturating_add(bin.exchanges.saturating_sub(bin.flagged));
            *flagged = flagged.saturating_add(bin.flagged);
        }
    }
    let occurs = |[ordinary, flagged]: &[u64; 2]| ordinary.saturating_add(*flagged) > 0;
    let first = counts.iter().position(occurs);
    let last = counts.iter().rposition(occurs);
    let rows = CLASSES.iter().zip(counts).enumerate();
    let rows = rows.filter(|(at, _)| first.is_some_and(|first| first <= *at) && Some(*at) <= last);
    Chart {
        id: "sizes",
        kind: "bars",
        title: "Exchanges by size of the gap; each bar begins at the size below it".to_owned(),
        x_label: "gap, from",
        y_label: EXCHANGES,
        x_is_time: false,
        keys: Key::of_points(),
        beat: None,
        columns: ["Gap, from", "ordinary", "flagged"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows
            .map(|(_, ((_, label), counts))| row(label, counts))
            .collect(),
    }
}

fn row(label: &str, [ordinary, flagged]: [u64; 2]) -> ChartRow {
    ChartRow {
        href: None,
        data: vec![
            ("label", label.to_owned()),
            ("values", format!("{ordinary} {flagged}")),
            (
                "note",
                format!("from {label}: {ordinary} ordinary, {flagged} flagged"),
            ),
        ],
        cells: vec![label.to_owned(), ordinary.to_string(), flagged.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use skewtap_core::clock::Interval;

    use super::*;
    use crate::store::query::aggregates::{GapBin, Window};

    #[test]
    fn classes_run_from_the_smallest_gap_to_the_largest() {
        let ms = 1_000_000;
        let bins = [(-3 * ms, 1, 0), (3 * ms, 4, 0), (510 * ms, 7, 7)];
        let histogram = GapHistogram {
            covered: Window {
                since_ns: 0,
                until_ns: 1,
            },
            bins: bins
                .map(|(ns, exchanges, flagged)| GapBin {
                    within: Interval::exactly(ns),
                    exchanges,
                    flagged,
                })
                .to_vec(),
            unknown: 3,
        };
        let rows = chart(&histogram).rows;
        let first: Vec<_> = rows.iter().map(|row| row.cells[0].as_str()).collect();
        assert_eq!(first.first(), Some(&"negative"));
        assert_eq!(first.last(), Some(&"0.5 s"));
        let cells = |label: &str| {
            let row = rows.iter().find(|row| row.cells[0] == label);
            row.unwrap().cells[1..].to_vec()
        };
        assert_eq!(cells("negative"), ["1", "0"]);
        assert_eq!(cells("2 ms"), ["4", "0"]);
        assert_eq!(cells("0.5 s"), ["0", "7"]);
        assert_eq!(cells("1 ms"), ["0", "0"]);
    }

    #[test]
    fn without_a_gap_there_is_no_bar() {
        let histogram = GapHistogram {
            covered: Window {
                since_ns: 0,
                until_ns: 1,
            },
            bins: vec![],
            unknown: 3,
        };
        assert!(chart(&histogram).rows.is_empty());
    }
}
