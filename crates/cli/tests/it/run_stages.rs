//! The breakdown against delays that are planted in client and server, each of which has measured
//! its own.

use serde_json::Value;

use super::delaying_server::DelayingServer;
use super::free_port::free_port;
use super::measured_run::MeasuredRun;

/// A client of `tests/clients`.
pub(super) fn client(name: &str) -> String {
    format!("{}/tests/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What the client measured of itself.
pub(super) fn told(run: &MeasuredRun) -> Value {
    serde_json::from_str(&run.stdout())
        .unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout(), run.stderr()))
}

/// Whoever delays sees at most what the wire sees, so no stage may be shorter than that. How much
/// longer it can be depends on how busy the machine is; half of it must be certain at least.
pub(super) fn assert_holds(run: &MeasuredRun, stage: &str, delayed: f64) {
    let (lo, hi) = run.stage(stage);
    assert!(
        hi >= delayed,
        "{stage}: [{lo}, {hi}] is too short for {delayed}"
    );
    assert!(
        lo >= delayed / 2.0,
        "{stage}: [{lo}, {hi}] says little of {delayed}"
    );
}

#[test]
fn every_planted_delay_is_found_in_its_own_stage() {
    let server = DelayingServer::start();
    let url = server.url("/work?delay_ms=300&pause_ms=100");
    let client = client("planted_stages.py");
    let run = MeasuredRun::new(&[], &["python3", &client, &url]);
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let (told, served) = (told(&run), server.only());
    assert_eq!(served.target, "/work?delay_ms=300&pause_ms=100");
    for stage in ["before_send", "request", "unread"] {
        assert_holds(&run, stage, told[stage].as_f64().unwrap());
    }
    assert_holds(&run, "server_wait", served.waited);
    assert_holds(&run, "response", served.paused);

    let stages = [
        "before_send",
        "connect",
        "request",
        "server_wait",
        "response",
        "unread",
    ];
    let sum = |bound: fn((f64, f64)) -> f64| -> f64 {
        stages.iter().map(|stage| bound(run.stage(stage))).sum()
    };
    let (lo, hi) = run.stage("total");
    assert!(
        sum(|stage| stage.0) <= hi && lo <= sum(|stage| stage.1),
        "{:#}",
        run.only()
    );
    let took = run.document["command"]["seconds"].as_f64().unwrap();
    assert!(lo <= took, "a request of {lo} s in a command of {took} s");
}

#[test]
fn a_sleep_before_the_read_is_named_and_printed() {
    let server = DelayingServer::start();
    let url = server.url("/work?pause_ms=20");
    let client = client("planted_stages.py");
    let run = MeasuredRun::new(&[], &["python3", &client, &url]);
    assert_eq!(run.only()["flagged"], true, "{:#}", run.only());
    assert_eq!(
        run.only()["findings"][0]["cause"],
        "client_blind_sleep",
        "{:#}",
        run.only()
    );
    let words = run.stderr();
    assert!(words.contains("client_blind_sleep (observed)"), "{words}");
    assert!(words.contains("requests: 1, flagged: 1"), "{words}");
}

#[test]
fn a_clients_span_is_taken_and_its_export_is_not_measured() {
    let server = DelayingServer::start();
    let url = server.url("/work?delay_ms=50");
    let client = client("traced_get.py");
    let run = MeasuredRun::new(&[], &["python3", &client, &url]);
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let told = told(&run);
    assert_holds(&run, "before_send", told["before_send"].as_f64().unwrap());
    let (lo, hi) = run.stage("total");
    let total = told["total"].as_f64().unwrap();
    assert!(
        (lo - total).abs() < 1e-6 && (hi - total).abs() < 1e-6,
        "[{lo}, {hi}]: {total}"
    );
    assert_eq!(run.document["summary"]["with_client_span"], 1);
    assert_eq!(run.document["verdicts"][0]["client_service"], "traced-get");
}

#[test]
fn a_client_that_ignores_the_proxy_is_told_of_and_measured_through_a_map() {
    let server = DelayingServer::start();
    let client = client("planted_stages.py");
    let path = "/work?delay_ms=300&pause_ms=20";
    let run = MeasuredRun::new(&[], &["python3", &client, &server.url(path), "--direct"]);
    assert_eq!(run.code(), 0, "{}", run.stderr());
    assert!(run.requests().is_empty());
    for part in [
        "no request came through the proxy at http://127.0.0.1:",
        "--map 8081=",
    ] {
        assert!(run.stderr().contains(part), "{}", run.stderr());
    }

    let port = free_port();
    let map = format!("{port}={}", server.address);
    let url = format!("http://127.0.0.1:{port}{path}");
    let run = MeasuredRun::new(&["--map", &map], &["python3", &client, &url, "--direct"]);
    assert_eq!(run.code(), 0, "{}", run.stderr());
    assert_holds(&run, "server_wait", server.served()[1].waited);
    assert_holds(&run, "unread", told(&run)["unread"].as_f64().unwrap());
}
