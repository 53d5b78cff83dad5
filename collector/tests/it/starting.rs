//! A collector that cannot start says why, and what to do.

use std::fs;

use prost::Message as _;
use skewtap_collector::{Collector, OpenError, StartError};
use tempfile::tempdir;
use tokio::net::TcpListener;

use super::running::{Running, config, export_call, get, post, verdict, wait_for};
use super::samples;

#[tokio::test]
async fn a_taken_port_is_named_with_the_flag_that_changes_it() {
    let directory = tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    for (flag, which) in [("--otlp-grpc", 0), ("--otlp-http", 1), ("--http", 2)] {
        let mut config = config(directory.path());
        match which {
            0 => config.otlp_grpc = address,
            1 => config.otlp_http = address,
            _ => config.http = address,
        }
        let error = Collector::bind(config).await.unwrap_err();
        assert!(matches!(error, StartError::PortTaken { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&address.port().to_string()), "{text}");
        assert!(text.contains(flag), "{text}");
    }
}

#[tokio::test]
async fn a_store_has_one_collector_at_a_time() {
    let directory = tempdir().unwrap();
    let first = Running::start(config(directory.path())).await;
    let error = Collector::bind(config(directory.path())).await.unwrap_err();
    assert!(
        matches!(error, StartError::Store(OpenError::InUse { .. })),
        "{error}"
    );
    first.stop().await;
    Running::start(config(directory.path())).await.stop().await;
}

#[tokio::test]
async fn a_store_that_is_a_file_is_refused() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = Collector::bind(config(&file)).await.unwrap_err();
    assert!(
        matches!(error, StartError::Store(OpenError::Directory { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("--store"), "{error}");
}

#[tokio::test]
async fn a_damaged_store_is_refused_and_left_as_it_is() {
    let directory = tempdir().unwrap();
    let database = directory.path().join("skewtap.db");
    let garbage = "this is no database, and never was one. ".repeat(200);
    fs::write(&database, &garbage).unwrap();
    let error = Collector::bind(config(directory.path())).await.unwrap_err();
    assert!(
        matches!(error, StartError::Store(OpenError::Damaged { .. })),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&database).unwrap(), garbage);
}

#[tokio::test]
async fn a_store_whose_tables_are_damaged_is_refused() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    export_call(collector.addresses.otlp_http, &samples::healthy(1)).await;
    verdict(collector.addresses.http, 1, |_| true).await;
    collector.stop().await;
    let database = directory.path().join("skewtap.db");
    // Everything into the one file.
    let last = rusqlite::Connection::open(&database).unwrap();
    last.pragma_update(None, "wal_checkpoint", "TRUNCATE")
        .unwrap();
    last.close().unwrap();
    let mut bytes = fs::read(&database).unwrap();
    // The first page has the schema; what comes after it is the data.
    bytes[4096..].fill(0xa5);
    fs::write(&database, &bytes).unwrap();
    let error = Collector::bind(config(directory.path())).await.unwrap_err();
    assert!(
        matches!(error, StartError::Store(OpenError::Damaged { .. })),
        "{error}"
    );
    assert_eq!(fs::read(&database).unwrap(), bytes);
}

#[tokio::test]
async fn a_store_that_someone_else_locks_refuses_for_now() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let other = rusqlite::Connection::open(directory.path().join("skewtap.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let body = samples::request(&samples::healthy(1)).encode_to_vec();
    let headers = [("content-type", "application/x-protobuf")];
    let otlp = collector.addresses.otlp_http;
    let refused = post(otlp, "/v1/traces", &headers, body).await;
    assert_eq!(refused.status, http::StatusCode::SERVICE_UNAVAILABLE);
    other.execute_batch("ROLLBACK").unwrap();
    export_call(otlp, &samples::healthy(1)).await;
    verdict(collector.addresses.http, 1, |_| true).await;
    collector.stop().await;
}

#[tokio::test]
async fn a_store_of_the_first_version_goes_on_where_it_was() {
    let directory = tempdir().unwrap();
    let database = rusqlite::Connection::open(directory.path().join("skewtap.db")).unwrap();
    let first = include_str!("../../src/store/tests/store_of_schema_1.sql");
    database.execute_batch(first).unwrap();
    drop(database);
    let collector = Running::start(config(directory.path())).await;
    // The third call was in the log only.
    let third = "/api/v1/exchanges/46a4d207131635986c91635dcbf219df/58a8a2bc49d1d1f9";
    let http = collector.addresses.http;
    let complete = |answer: &super::running::Answer| {
        answer.status == http::StatusCode::OK && answer.json()["gap_seconds"].is_number()
    };
    wait_for(http, third, complete).await;
    let list = get(http, "/api/v1/exchanges").await.json();
    assert_eq!(list["exchanges"].as_array().unwrap().len(), 3);
    // What it was judged from was not kept then.
    let second = "/api/v1/exchanges/b5ca158921580f4239e1f0ca23dd51ab/48e41ca59cc979f8/case";
    assert!(get(http, second).await.json()["observations"].is_null());
    let case = get(http, &format!("{third}/case")).await.json();
    assert!(case["observations"]["resourceSpans"].is_array(), "{case}");
    collector.stop().await;
}

#[tokio::test]
async fn a_store_of_a_later_version_is_refused() {
    let directory = tempdir().unwrap();
    Running::start(config(directory.path())).await.stop().await;
    let database = rusqlite::Connection::open(directory.path().join("skewtap.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let error = Collector::bind(config(directory.path())).await.unwrap_err();
    assert!(
        matches!(error, StartError::Store(OpenError::Newer { found: 99, .. })),
        "{error}"
    );
}
