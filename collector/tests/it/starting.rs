//! A collector that cannot start says why, and what to do.

use std::fs;

use skewtap_collector::{Collector, OpenError, StartError};
use tempfile::tempdir;
use tokio::net::TcpListener;

use super::running::{Running, config};

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
