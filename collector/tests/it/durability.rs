//! What was acknowledged survives the end of the process at any moment.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::StatusCode;
use prost::Message;
use skewtap_collector::{Addresses, Collector};
use tempfile::tempdir;

use super::reopening::{forgetful, revision, settled};
use super::running::{Running, config, export_call, get, post, verdict};
use super::samples;

/// Where the child is told its store.
const STORE: &str = "SKEWTAP_TEST_STORE";

/// Set where the child is to let go of client spans soon.
const FORGETFUL: &str = "SKEWTAP_TEST_FORGETFUL";

/// The file in the store's directory in which the child says where it listens.
const ADDRESSES: &str = "addresses";

/// Not a test by itself: what the tests below run as a process of its own, to kill it.
#[tokio::test]
#[ignore = "runs until it is killed; started by the tests below"]
async fn child() {
    let store = std::env::var(STORE).unwrap();
    let config = match std::env::var_os(FORGETFUL) {
        Some(_) => forgetful(Path::new(&store)),
        None => config(Path::new(&store)),
    };
    let collector = Collector::bind(config).await.unwrap();
    let Addresses {
        otlp_http, http, ..
    } = collector.addresses();
    let path = Path::new(&store).join(ADDRESSES);
    // Renamed into place, so that it is never seen half written.
    std::fs::write(path.with_extension("new"), format!("{otlp_http} {http}")).unwrap();
    std::fs::rename(path.with_extension("new"), path).unwrap();
    collector.serve(std::future::pending()).await.unwrap();
}

struct Killable {
    process: Child,
    otlp_http: SocketAddr,
    http: SocketAddr,
}

impl Killable {
    fn start(store: &Path) -> Self {
        Self::run(store, &mut Self::command())
    }

    /// One that soon lets go of client spans.
    fn start_forgetful(store: &Path) -> Self {
        Self::run(store, Self::command().env(FORGETFUL, "1"))
    }

    fn command() -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "it::durability::child", "--ignored"]);
        command
    }

    fn run(store: &Path, command: &mut Command) -> Self {
        let process = command
            .env(STORE, store)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let path = store.join(ADDRESSES);
        let began = Instant::now();
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(&path) {
                break text;
            }
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "the child did not start"
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        std::fs::remove_file(path).unwrap();
        let (otlp_http, http) = text.split_once(' ').unwrap();
        Self {
            process,
            otlp_http: otlp_http.parse().unwrap(),
            http: http.parse().unwrap(),
        }
    }

    /// Ends it as `kill -9` does.
    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[tokio::test]
async fn every_acknowledged_call_gets_one_verdict_through_kills() {
    let directory = tempdir().unwrap();
    let mut sent = 0;
    for _ in 0..4 {
        let collector = Killable::start(directory.path());
        for _ in 0..25 {
            sent += 1;
            // In three requests, so that a kill falls between the parts of a call.
            let call = samples::asleep(sent);
            for part in parts(&call) {
                export_call(collector.otlp_http, &part).await;
            }
        }
        collector.kill();
    }
    let collector = Running::start(config(directory.path())).await;
    for n in 1..=sent {
        verdict(collector.addresses.http, n, |v| {
            v.client_seconds.is_some() && v.server_seconds.is_some()
        })
        .await;
    }
    let list = get(collector.addresses.http, "/api/v1/exchanges?limit=1000")
        .await
        .json();
    let exchanges = list["exchanges"].as_array().unwrap();
    let traces: BTreeSet<_> = exchanges
        .iter()
        .map(|e| e["trace_id"].to_string())
        .collect();
    assert_eq!((exchanges.len(), traces.len()), (100, 100));
    collector.stop().await;
}

/// The kill comes while requests are under way, so that it falls anywhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_requests_loses_nothing_acknowledged() {
    let directory = tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let collector = Killable::start(directory.path());
        let otlp_http = collector.otlp_http;
        let sending = tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for n in round * 100_000_u64 + 1.. {
                if !exported(otlp_http, n).await {
                    break;
                }
                acknowledged.push(n);
            }
            acknowledged
        });
        tokio::time::sleep(Duration::from_millis(150 + 70 * round)).await;
        collector.kill();
        acknowledged.extend(sending.await.unwrap());
    }
    assert!(!acknowledged.is_empty());
    let collector = Running::start(config(directory.path())).await;
    for n in acknowledged {
        verdict(collector.addresses.http, n, |v| v.findings.len() == 1).await;
    }
    collector.stop().await;
}

#[tokio::test]
async fn an_open_exchange_goes_on_after_a_kill() {
    let directory = tempdir().unwrap();
    let call = samples::asleep(1);
    let [exchange, client, server] = parts(&call);
    let first = Killable::start(directory.path());
    export_call(first.otlp_http, &exchange).await;
    export_call(first.otlp_http, &server).await;
    verdict(first.http, 1, |v| v.server_seconds.is_some()).await;
    first.kill();
    let second = Running::start(config(directory.path())).await;
    export_call(second.addresses.otlp_http, &client).await;
    let whole = verdict(second.addresses.http, 1, |v| v.client_seconds.is_some()).await;
    assert!(whole.server_seconds.is_some() && whole.flagged, "{whole:?}");
    second.stop().await;
}

/// The late side is acknowledged, and the process ends before it can be joined.
#[tokio::test]
async fn what_comes_late_is_joined_after_a_kill() {
    for late in 0..3 {
        let directory = tempdir().unwrap();
        let mut early = parts(&samples::asleep(1)).to_vec();
        let late = early.remove(late);
        let first = Killable::start_forgetful(directory.path());
        for part in &early {
            export_call(first.otlp_http, part).await;
        }
        verdict(first.http, 1, |_| true).await;
        settled(first.http).await;
        let before = revision(first.http, 1).await;
        export_call(first.otlp_http, &late).await;
        first.kill();
        for _ in 0..2 {
            let next = Running::start(forgetful(directory.path())).await;
            let http = next.addresses.http;
            let whole = verdict(http, 1, |v| {
                v.client_seconds.is_some() && v.server_seconds.is_some() && v.wire_seconds.is_some()
            });
            assert_eq!(whole.await.findings.len(), 1);
            settled(http).await;
            assert_eq!(revision(http, 1).await, before + 1);
            let list = get(http, "/api/v1/exchanges").await.json();
            assert_eq!(list["exchanges"].as_array().unwrap().len(), 1);
            next.stop().await;
        }
    }
}

/// A call as three that have one side each: exchange, client, server.
fn parts(call: &skewtap_core::audit::Observed) -> [skewtap_core::audit::Observed; 3] {
    let [mut exchange, mut client, mut server] = [call.clone(), call.clone(), call.clone()];
    (exchange.client, exchange.servers) = (None, vec![]);
    (client.exchanges, client.servers) = (vec![], vec![]);
    (server.exchanges, server.client) = (vec![], None);
    [exchange, client, server]
}

/// Sends call number `n` and says whether it was acknowledged.
async fn exported(otlp_http: SocketAddr, n: u64) -> bool {
    let body = samples::request(&samples::asleep(n)).encode_to_vec();
    let headers = [("content-type", "application/x-protobuf")];
    let sent = tokio::spawn(async move { post(otlp_http, "/v1/traces", &headers, body).await });
    // A connection that broke shows as a panic of the task that used it.
    sent.await
        .is_ok_and(|answer| answer.status == StatusCode::OK)
}
