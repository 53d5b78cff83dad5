//! The real system, and clients that send through it.

use std::process::Stdio;

use super::http;
use super::program::{Running, skewtap};

const ANY: &str = "127.0.0.1:0";

/// Collector, proxy and server at work.
pub(super) struct Traffic {
    pub(super) collector: Running,
    pub(super) proxy: Running,
    _origin: Running,
    _store: tempfile::TempDir,
}

impl Traffic {
    pub(super) fn start() -> Self {
        let store = tempfile::tempdir().unwrap();
        let folder = store.path().to_str().unwrap();
        let mut flags = vec![
            "collector",
            "--otlp-grpc",
            ANY,
            "--otlp-http",
            ANY,
            "--http",
            ANY,
        ];
        flags.extend(["--store", folder, "--settle", "3s"]);
        let collector = Running::start(&flags);
        let otlp = format!("http://{}", collector.address("otlp_grpc"));
        let origin = Running::start(&["demo-origin", "--otlp", &otlp]);
        let upstream = format!("http://{}", origin.address("traffic"));
        let flags = [
            "proxy",
            "--listen",
            ANY,
            "--admin",
            ANY,
            "--upstream",
            &upstream,
        ];
        let proxy = Running::start(&[&flags[..], &["--otlp", &otlp]].concat());
        Self {
            collector,
            proxy,
            _origin: origin,
            _store: store,
        }
    }

    /// Sends one request for each delay, side by side, and waits for the responses.
    pub(super) fn send(&self, behaviour: &str, delays_ms: &[u32]) {
        let server = self.proxy.address("traffic").to_string();
        let otlp = format!("http://{}", self.collector.address("otlp_grpc"));
        let clients = delays_ms.iter().map(|delay| {
            skewtap()
                .args(["demo-client", "--behaviour", behaviour, "--server", &server])
                .args(["--delay-ms", &delay.to_string(), "--otlp", &otlp])
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        });
        for mut client in clients.collect::<Vec<_>>() {
            assert!(client.wait().unwrap().success());
        }
    }

    /// Sends the collector what it refuses, ignores and rejects, and spans of a server that
    /// outlast their client's.
    pub(super) fn send_what_is_wrong(&self) {
        let collector = self.collector.address("otlp_http");
        let json = "application/json";
        let refused = http::post(collector, "/v1/traces", json, "no JSON");
        assert_eq!(refused.status, 400, "{}", refused.body);
        let ignored = http::post(collector, "/v1/metrics", json, "{}");
        assert_eq!(ignored.status, 200, "{}", ignored.body);
        for (client_ends, server_ends) in [(2, 3), (2, 0)] {
            let spans = contradicting_spans(client_ends, server_ends);
            let taken = http::post(collector, "/v1/traces", json, &spans);
            assert_eq!(taken.status, 200, "{}", taken.body);
        }
    }
}

/// A client's span from second 1 to `client_ends` and its server's, from 1 to `server_ends`. A
/// server that ends before it starts is rejected.
fn contradicting_spans(client_ends: u64, server_ends: u64) -> String {
    let trace = fresh_id(32);
    let (client, server) = (fresh_id(16), fresh_id(16));
    let span = |service: &str, id: &str, parent: &str, kind: u8, end: u64| {
        serde_json::json!({
            "resource": {"attributes": [
                {"key": "service.name", "value": {"stringValue": service}},
            ]},
            "scopeSpans": [{"spans": [{
                "traceId": trace, "spanId": id, "parentSpanId": parent, "name": "GET", "kind": kind,
                "startTimeUnixNano": second(1), "endTimeUnixNano": second(end),
            }]}],
        })
    };
    let spans = serde_json::json!({"resourceSpans": [
        span("early", &client, "", 3, client_ends),
        span("late", &server, &client, 2, server_ends),
    ]});
    spans.to_string()
}

fn second(second: u64) -> String {
    ((1_700_000_000 + second) * 1_000_000_000).to_string()
}

/// Hex digits that nobody had before.
fn fresh_id(digits: usize) -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let random = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", random(), random())[..digits].to_owned()
}
