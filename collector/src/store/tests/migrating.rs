//! Stores of earlier versions are brought to this one's schema with everything in them.

use super::*;
use crate::store::OpenError;
use crate::store::query::aggregates::Window;
use rusqlite::Connection;
use skewtap_core::verdict_json::VerdictJson;

/// The stretch in which the calls of both stores began.
const CALLS: Window = Window {
    since_ns: 1_796_090_000 * S,
    until_ns: 1_796_091_000 * S,
};

fn first_schema() -> TempDir {
    directory_with(include_str!("store_of_schema_1.sql"))
}

/// A directory with the store in it.
fn directory_with(store: &str) -> TempDir {
    let directory = tempdir().unwrap();
    let connection = Connection::open(directory.path().join("skewtap.db")).unwrap();
    connection.execute_batch(store).unwrap();
    connection.close().unwrap();
    directory
}

#[test]
fn everything_of_the_first_schema_is_still_there() {
    on_runtime(|runtime| {
        let directory = first_schema();
        let store = Store::open(directory.path()).unwrap();
        let queries = Queries::new(store.path.clone());
        let listed = runtime
            .block_on(queries.exchanges(Filter::default()))
            .unwrap();
        let [healthy, asleep] = &listed.verdicts[..] else {
            panic!("two verdicts, newest first")
        };
        assert_eq!(asleep.client_service.as_deref(), Some("demo-blind-sleep"));
        assert_eq!(asleep.causes, ["client_blind_sleep"]);
        assert_eq!((asleep.flagged, healthy.flagged), (true, false));
        assert_eq!(healthy.revision, 1);
        let document: VerdictJson = serde_json::from_str(&asleep.document).unwrap();
        assert_eq!(document.gap_seconds, Some(0.700526216));
        // The log goes on where it was.
        let batches = observation_log::read_after(&store.connection, 0, usize::MAX).unwrap();
        let numbers: Vec<_> = batches.iter().map(|batch| batch.number).collect();
        assert_eq!(numbers, [8, 9, 10]);
    });
}

#[test]
fn the_plots_know_the_verdicts_of_the_first_schema() {
    on_runtime(|runtime| {
        let directory = first_schema();
        let store = Store::open(directory.path()).unwrap();
        let queries = Queries::new(store.path.clone());
        let edges = runtime
            .block_on(queries.edges(CALLS, EdgeFilter::default()))
            .unwrap();
        let [asleep, healthy] = &edges.edges[..] else {
            panic!("{edges:?}")
        };
        assert_eq!((asleep.exchanges, asleep.flagged), (1, 1));
        assert_eq!((healthy.exchanges, healthy.flagged), (1, 0));
        assert_eq!(asleep.route.as_deref(), Some("/work"));
        assert!(asleep.gap.unwrap().p50.contains(700_526_216));
        let scatter = runtime
            .block_on(queries.scatter(CALLS, EdgeFilter::default()))
            .unwrap();
        // The client itself had measured that it slept over its response for 697.7 ms.
        let lag = scatter.points[0].lag_ns.unwrap();
        assert!((690_000_000..705_000_000).contains(&lag), "{lag}");
        assert_eq!(scatter.points[0].server_ns, Some(1_302_168_920));
    });
}

#[test]
fn the_plots_know_the_verdicts_of_the_second_schema() {
    on_runtime(|runtime| {
        let directory = directory_with(include_str!("store_of_schema_2.sql"));
        let store = Store::open(directory.path()).unwrap();
        let queries = Queries::new(store.path.clone());
        for until_ns in [CALLS.until_ns, CALLS.since_ns + 24 * 3600 * S] {
            // By minute and by hour.
            let window = Window { until_ns, ..CALLS };
            let edges = runtime
                .block_on(queries.edges(window, EdgeFilter::default()))
                .unwrap();
            let [asleep, healthy] = &edges.edges[..] else {
                panic!("{edges:?}")
            };
            assert_eq!((asleep.exchanges, asleep.flagged), (1, 1));
            assert_eq!(asleep.causes["client_blind_sleep"], 1);
            assert!(asleep.gap.unwrap().p50.contains(700_526_216));
            assert_eq!((healthy.exchanges, healthy.flagged), (2, 0));
        }
    });
}

#[test]
fn a_migration_that_is_cut_off_leaves_the_store_as_it_was() {
    let directory = first_schema();
    let path = directory.path().join("skewtap.db");
    let connection = Connection::open(&path).unwrap();
    // In the way of the second schema.
    connection
        .execute_batch("CREATE TABLE gap_count (x)")
        .unwrap();
    connection.close().unwrap();
    assert!(matches!(
        Store::open(directory.path()),
        Err(OpenError::Database { .. })
    ));
    let connection = Connection::open(&path).unwrap();
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    let documents: i64 = connection
        .query_row("SELECT count(document) FROM verdict", [], |row| row.get(0))
        .unwrap();
    assert_eq!((version, documents), (1, 2));
    connection.execute_batch("DROP TABLE gap_count").unwrap();
    connection.close().unwrap();
    Store::open(directory.path()).unwrap();
}

#[test]
fn a_store_of_a_later_version_is_refused_and_left_alone() {
    let directory = tempdir().unwrap();
    drop(Store::open(directory.path()).unwrap());
    let path = directory.path().join("skewtap.db");
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    connection.close().unwrap();
    let refused = Store::open(directory.path());
    assert!(matches!(
        refused,
        Err(OpenError::Newer {
            found: 99,
            known: 3,
            ..
        })
    ));
}
