//! The collector of `skewtap run`: its own, one that is running already, one whose store is kept.

use std::net::TcpListener;
use std::process::Command;

use super::delaying_server::DelayingServer;
use super::finished::{code, stderr, stdout};
use super::measured_run::MeasuredRun;
use super::program::{Running, skewtap};

#[test]
fn a_collector_that_is_running_already_has_the_verdicts() {
    let store = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0";
    let mut arguments = vec![
        "collector",
        "--otlp-grpc",
        any,
        "--otlp-http",
        any,
        "--http",
        any,
    ];
    arguments.extend(["--settle", "1s", "--store", store.path().to_str().unwrap()]);
    let collector = Running::start(&arguments);
    let url = |listener| format!("http://{}", collector.address(listener));
    let (page, grpc, http) = (url("http"), url("otlp_grpc"), url("otlp_http"));
    let mut flags = vec!["--collector", &page, "--otlp", &grpc, "--otlp-http", &http];
    flags.extend(["--settle", "1s"]);

    let server = DelayingServer::start();
    let client = format!("{}/tests/clients/traced_get.py", env!("CARGO_MANIFEST_DIR"));
    let target = server.url("/theirs?delay_ms=20");
    let command = ["python3", client.as_str(), &target];
    let first = MeasuredRun::new(&flags, &command);
    assert_eq!(first.code(), 0, "{}", first.stderr());
    // The span went there too, past the proxy.
    assert_eq!(first.document["summary"]["with_client_span"], 1);
    // What others have had judged there is no part of a run.
    let second = MeasuredRun::new(&flags, &command);
    assert_ne!(first.only()["trace_id"], second.only()["trace_id"]);
}

#[test]
fn a_collector_that_is_not_there_stops_the_start() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let page = format!("http://{gone}");
    let output = skewtap()
        .args(["run", "--collector", &page, "--", "echo", "ran"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains(&page), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_store_that_is_kept_shows_the_run_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    let store = store.to_str().unwrap();
    let server = DelayingServer::start();
    let url = server.url("/kept");
    let run = MeasuredRun::new(&["--store", store], &["curl", "--silent", &url]);
    let any = "127.0.0.1:0";
    let mut arguments = vec![
        "collector",
        "--otlp-grpc",
        any,
        "--otlp-http",
        any,
        "--http",
        any,
    ];
    arguments.extend(["--store", store]);
    let collector = Running::start(&arguments);
    let request = run.only();
    let path = format!(
        "http://{}/api/v1/exchanges/{}/{}",
        collector.address("http"),
        request["trace_id"].as_str().unwrap(),
        request["client_span_id"].as_str().unwrap()
    );
    let shown = Command::new("curl")
        .args(["--silent", "--fail", &path])
        .output()
        .unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["path"], "/kept");
}
