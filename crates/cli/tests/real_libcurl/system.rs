//! Collector, proxy and server as processes, and the lab's clients through them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::program::Running;

/// What counts as a lag: more than a healthy call loses on a busy machine.
pub(super) const LATE_SECONDS: f64 = 0.050;

const ANY: &str = "127.0.0.1:0";

/// What differs from one test to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Variant {
    /// Flags of the proxy.
    pub(super) proxy: &'static [&'static str],
    /// Options of the clients.
    pub(super) client: &'static [&'static str],
    /// Options of the server.
    pub(super) server: &'static [&'static str],
}

/// Everything between a client and its verdict.
pub(super) struct System {
    collector: Running,
    proxy: Running,
    _server: Server,
    _store: tempfile::TempDir,
}

impl System {
    pub(super) fn start(variant: &Variant) -> Self {
        let store = tempfile::tempdir().unwrap();
        let collector = Running::start(&[
            "collector",
            "--otlp-grpc",
            ANY,
            "--otlp-http",
            ANY,
            "--http",
            ANY,
            "--store",
            store.path().to_str().unwrap(),
            "--settle",
            "3s",
        ]);
        let otlp_http = format!("http://{}", collector.address("otlp_http"));
        let server = Server::start(&otlp_http, variant.server);
        let upstream = format!("http://{}", server.address);
        let otlp_grpc = format!("http://{}", collector.address("otlp_grpc"));
        let mut flags = vec![
            "proxy",
            "--listen",
            ANY,
            "--admin",
            ANY,
            "--upstream",
            &upstream,
            "--otlp",
        ];
        flags.push(&otlp_grpc);
        flags.extend(variant.proxy);
        let proxy = Running::start(&flags);
        Self {
            collector,
            proxy,
            _server: server,
            _store: store,
        }
    }

    /// Starts a sweep of the 33 recorded delays, side by side; its lines come at its end.
    pub(super) fn start_sweep(&self, libcurl: &str, variant: &Variant) -> Child {
        Command::new(lab(libcurl))
            .args(["--server", &self.proxy.address("traffic").to_string()])
            .args([
                "--otlp",
                &format!("http://{}", self.collector.address("otlp_http")),
            ])
            .args(["--method", "expect", "--timeout-ms", "30000"])
            .args(["--sweep-ms", "250:8250:250"])
            .args(variant.client)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The verdict on the call that sent these ids, as soon as `is_whole` accepts it.
    pub(super) fn verdict(&self, call: &Call, is_whole: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/api/v1/exchanges/{}/{}", call.trace_id, call.span_id);
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let found = get(self.collector.address("http"), &path);
            match found {
                Some(verdict) if is_whole(&verdict) => return verdict,
                other if Instant::now() > deadline => panic!("no verdict on {path}: {other:?}"),
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

/// One call as its own client measured it.
pub(super) struct Call {
    pub(super) delay_seconds: f64,
    pub(super) lag_seconds: f64,
    pub(super) trace_id: String,
    pub(super) span_id: String,
}

impl Call {
    /// Whether the client itself measured a lag.
    pub(super) fn lags(&self) -> bool {
        self.lag_seconds > LATE_SECONDS
    }
}

/// Waits for a sweep to end, and reads its calls.
pub(super) fn calls_of(sweep: Child) -> Vec<Call> {
    let output = sweep.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "the clients ended with {}",
        output.status
    );
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let lines = String::from_utf8(output.stdout).unwrap();
    let calls: Vec<Call> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .inspect(|line| assert_eq!(line["http_status"], 200, "{line}"))
        .map(|line| Call {
            delay_seconds: line["delay_seconds"].as_f64().unwrap(),
            lag_seconds: line["lag_seconds"].as_f64().unwrap(),
            trace_id: text(&line["trace_id"]),
            span_id: text(&line["span_id"]),
        })
        .collect();
    assert_eq!(calls.len(), 33);
    calls
}

/// A program of the lab.
pub(super) fn lab(name: &str) -> PathBuf {
    // target/debug/skewtap and target/lab/bin/NAME
    let target = Path::new(env!("CARGO_BIN_EXE_skewtap"))
        .ancestors()
        .nth(2)
        .unwrap();
    let program = target.join("lab/bin").join(name);
    assert!(
        program.exists(),
        "{} is not built: run lab/build.sh",
        program.display()
    );
    program
}

/// The lab's server.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Server {
    pub(super) fn start(otlp: &str, options: &[&str]) -> Self {
        let mut child = Command::new(lab("delay-server"))
            .args(["--otlp", otlp])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("listening ")
            .unwrap()
            .parse()
            .unwrap();
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It serves until it is ended.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// The JSON at `path`; `None` while there is none.
fn get(address: SocketAddr, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    if head.starts_with("HTTP/1.1 404") {
        return None;
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    Some(serde_json::from_str(body).unwrap())
}
