//! Sums agree with the exchanges they stand for, whatever became of those.

use super::*;
use crate::store::query::aggregates::Window;
use skewtap_core::clock::Interval;
use skewtap_core::ledger::Segment;
use skewtap_core::verdict::{Confidence, Finding};

/// A minute that begins a whole hour.
const NOON: i64 = 1_800_000_000 / 3600 * 3600 * S;

/// A verdict that began at `started_ns` with this gap, flagged and slept through when it is long.
pub(super) fn call(n: u64, server: &str, started_ns: i64, gap_ns: i64) -> Verdict {
    let mut verdict = verdict(n);
    verdict.server_service = Some(server.to_owned());
    verdict.started_ns = Some(started_ns);
    verdict.server_ns = Some(verdict.client.unwrap().lo() - gap_ns);
    verdict.flagged = gap_ns > 50_000_000;
    if verdict.flagged {
        verdict.findings.push(Finding {
            cause: "client_blind_sleep",
            segment: Segment::ClientUnread,
            within: Interval::exactly(gap_ns),
            confidence: Confidence::Observed,
            evidence: vec![],
            refuted_by: "",
        });
    }
    verdict
}

fn hour() -> Window {
    Window {
        since_ns: NOON,
        until_ns: NOON + 3600 * S,
    }
}

#[test]
fn edges_are_summed_up_with_bounds_that_hold() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        // One in ten has a gap of n x 100 ms, the others n ms.
        let rows: Vec<_> = (1..=100_u64)
            .map(|n| {
                let k = i64::try_from(n).unwrap();
                let gap = if n % 10 == 0 {
                    k * S / 10
                } else {
                    k * S / 10_000
                };
                row_of(&call(n, "shop", NOON + k * S, gap), 1)
            })
            .chain([row_of(&call(200, "stock", NOON, -S), 1)])
            .collect();
        bench.write(rows, 1);
        let edges = runtime.block_on(bench.queries().edges(hour(), EdgeFilter::default()));
        let edges = edges.unwrap();
        assert_eq!((edges.covered, edges.left_out), (hour(), 0));
        let [shop, stock] = &edges.edges[..] else {
            panic!("{edges:?}")
        };
        assert_eq!(shop.server_service.as_deref(), Some("shop"));
        assert_eq!((shop.exchanges, shop.flagged), (100, 10));
        assert_eq!(shop.causes["client_blind_sleep"], 10);
        let gap = shop.gap.unwrap();
        assert_eq!(gap.known, 100);
        // The 90th of the sorted gaps is the last short one: 9.9 ms.
        assert!(gap.p90.contains(9_900_000), "{gap:?}");
        assert!(gap.max.contains(10 * S), "{gap:?}");
        assert!(gap.p50.contains(5_500_000), "{gap:?}");
        // A negative gap stays negative.
        assert!(stock.gap.unwrap().p50.contains(-S));
        bench.close();
    });
}

#[test]
fn a_revision_is_counted_once_and_in_its_new_place() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        bench.write(vec![row_of(&call(1, "shop", NOON, S), 1)], 1);
        bench.write(vec![row_of(&call(1, "stock", NOON + 60 * S, 1_000), 2)], 2);
        let queries = bench.queries();
        let edges = runtime.block_on(queries.edges(hour(), EdgeFilter::default()));
        let [only] = &edges.unwrap().edges[..] else {
            panic!("one edge is left")
        };
        assert_eq!(only.server_service.as_deref(), Some("stock"));
        assert_eq!((only.exchanges, only.flagged), (1, 0));
        let causes = runtime.block_on(queries.cause_series(hour(), EdgeFilter::default()));
        assert_eq!(causes.unwrap().periods, []);
        let series = runtime.block_on(queries.gap_series(hour(), EdgeFilter::default()));
        let series = series.unwrap();
        assert_eq!(series.periods.len(), 1);
        assert_eq!(series.periods[0].start_ns, NOON + 60 * S);
        bench.close();
    });
}

#[test]
fn what_retention_deletes_is_counted_no_more() {
    on_runtime(|runtime| {
        let bench = Bench::new(Limits {
            retention: Retention {
                age: Duration::from_secs(60),
                ..Retention::default()
            },
            ..limits()
        });
        bench.write(vec![row_of(&call(1, "shop", NOON, S), 1)], S);
        bench.write(vec![row_of(&call(2, "stock", NOON, 2 * S), 1)], 40 * S);
        bench.write(vec![], 62 * S);
        let edges = runtime.block_on(bench.queries().edges(hour(), EdgeFilter::default()));
        let [only] = &edges.unwrap().edges[..] else {
            panic!("one edge is left")
        };
        assert_eq!((only.exchanges, only.flagged), (1, 1));
        // The edge of old can be used again after it was forgotten.
        bench.write(vec![row_of(&call(3, "shop", NOON, S), 1)], 63 * S);
        let edges = runtime.block_on(bench.queries().edges(hour(), EdgeFilter::default()));
        assert_eq!(edges.unwrap().edges.len(), 2);
        let directory = bench.close();
        let store = Store::open(directory.path()).unwrap();
        let count = |table| {
            let sql = format!("SELECT count(*) FROM {table}");
            let count: i64 = store
                .connection
                .query_row(&sql, [], |row| row.get(0))
                .unwrap();
            count
        };
        assert_eq!(count("verdict_document"), 2);
        assert_eq!(count("edge"), 2);
    });
}

#[test]
fn series_and_histogram_add_up_to_all_exchanges_by_minute_and_by_hour() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        let rows = (0..300_u64).map(|n| {
            let k = i64::try_from(n).unwrap();
            row_of(&call(n + 1, "shop", NOON + k * 60 * S, k * S / 100), 1)
        });
        bench.write(rows.collect(), 1);
        let queries = bench.queries();
        for (hours, step_s) in [(10, 300), (48, 3600)] {
            let window = Window {
                since_ns: NOON - 30 * S,
                until_ns: NOON + hours * 3600 * S,
            };
            let series = runtime.block_on(queries.gap_series(window, EdgeFilter::default()));
            let series = series.unwrap();
            assert_eq!(series.step_s, step_s);
            assert!(series.covered.since_ns <= window.since_ns);
            assert!(series.covered.until_ns >= window.until_ns);
            let sum: u64 = series.periods.iter().map(|period| period.exchanges).sum();
            assert_eq!(sum, 300);
            let histogram = runtime.block_on(queries.gap_histogram(window, EdgeFilter::default()));
            let histogram = histogram.unwrap();
            let sum: u64 = histogram.bins.iter().map(|bin| bin.exchanges).sum();
            assert_eq!((sum, histogram.unknown), (300, 0));
            let flagged: u64 = histogram.bins.iter().map(|bin| bin.flagged).sum();
            // Gaps of 60 ms, 70 ms and so on.
            assert_eq!(flagged, 294);
            let causes = runtime.block_on(queries.cause_series(window, EdgeFilter::default()));
            let causes = causes.unwrap();
            let sum: u64 = causes.periods.iter().map(|period| period.exchanges).sum();
            assert_eq!(sum, 294);
        }
        bench.close();
    });
}

#[test]
fn a_scatter_shows_all_or_a_sample_spread_over_the_window() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        let calls = |range: std::ops::Range<u64>| {
            range.map(|n| {
                let k = i64::try_from(n).unwrap();
                row_of(&call(n + 1, "shop", NOON + k * S, k * S / 1000), 1)
            })
        };
        bench.write(calls(0..100).collect(), 1);
        let queries = bench.queries();
        let few = runtime.block_on(queries.scatter(hour(), EdgeFilter::default()));
        let few = few.unwrap();
        assert_eq!((few.points.len(), few.is_sample), (100, false));
        assert_eq!(few.points[7].gap_ns, Some(7 * S / 1000));
        bench.write(calls(100..3600).collect(), 2);
        let many = runtime.block_on(queries.scatter(hour(), EdgeFilter::default()));
        let many = many.unwrap();
        assert_eq!((many.points.len(), many.is_sample), (2_000, true));
        let last = many.points.last().unwrap();
        assert!(last.started_ns > NOON + 3580 * S, "{last:?}");
        bench.close();
    });
}
