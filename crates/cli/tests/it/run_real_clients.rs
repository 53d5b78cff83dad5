//! HTTP clients as people use them, through `skewtap run`: each is found by the variables that it
//! reads, or by `--map` where it reads none, and none of them notices.
//!
//! Python's packages come from lab/python.sh. Java is taken if it is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::delaying_server::DelayingServer;
use super::free_port::free_port;
use super::measured_run::MeasuredRun;
use super::not_run::not_run;

const PATH: &str = "/work?delay_ms=250";

/// Runs `client` with a URL behind it, and holds the one request it makes against what the server
/// measured.
fn judge(client: &[&str]) -> MeasuredRun {
    let server = DelayingServer::start();
    let url = server.url(PATH);
    let run = MeasuredRun::new(&[], &[client, &[&url]].concat());
    assert_measured(&run, &server);
    run
}

/// The same for a client that takes no notice of variables.
fn judge_mapped(client: &[&str]) {
    let server = DelayingServer::start();
    let port = free_port();
    let map = format!("{port}={}", server.address);
    let url = format!("http://127.0.0.1:{port}{PATH}");
    let run = MeasuredRun::new(&["--map", &map], &[client, &[&url]].concat());
    assert_measured(&run, &server);
}

fn assert_measured(run: &MeasuredRun, server: &DelayingServer) {
    assert_eq!(
        (run.code(), run.stdout().as_str()),
        (0, "ok\n"),
        "{}",
        run.stderr()
    );
    assert_eq!(run.only()["status"], 200, "{}", run.stderr());
    let waited = server.only().waited;
    let (lo, hi) = run.stage("server_wait");
    assert!(
        lo <= hi && hi >= waited,
        "[{lo}, {hi}] does not hold {waited}"
    );
    let took = run.document["command"]["seconds"].as_f64().unwrap();
    assert!(run.stage("total").0 <= took, "{:#}", run.only());
}

/// A client of `tests/clients`.
pub(crate) fn client(name: &str) -> String {
    format!("{}/tests/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The folder with everything that is built.
fn target() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_skewtap"));
    program.ancestors().nth(2).unwrap().to_owned()
}

/// The Python with the packages.
pub(crate) fn python() -> String {
    let python = target().join("lab/python/bin/python");
    assert!(
        python.exists(),
        "{} is not there: run lab/python.sh",
        python.display()
    );
    python.to_str().unwrap().to_owned()
}

#[test]
fn curl() {
    judge(&["curl", "--silent"]);
}

#[test]
fn python_urllib() {
    judge(&[&python(), &client("get.py"), "urllib"]);
}

#[test]
fn python_requests() {
    judge(&[&python(), &client("get.py"), "requests"]);
}

#[test]
fn python_httpx() {
    judge(&[&python(), &client("get.py"), "httpx"]);
}

#[test]
fn python_aiohttp() {
    judge(&[&python(), &client("get.py"), "aiohttp"]);
}

#[test]
fn python_requests_with_spans_of_the_opentelemetry_sdk() {
    let run = judge(&[&python(), &client("traced_requests.py")]);
    assert_eq!(
        run.document["summary"]["with_client_span"], 1,
        "{:#}",
        run.document
    );
    // The span holds all of the request, and a little that nothing else has seen.
    let total = run.stage("total").0;
    assert!(total >= run.stage("server_wait").0, "{:#}", run.only());
}

#[test]
fn node_http() {
    if node_reads_variables() {
        judge(&["node", &client("get.mjs"), "http"]);
    }
    judge_mapped(&["node", &client("get.mjs"), "http"]);
}

#[test]
fn node_fetch() {
    if node_reads_variables() {
        judge(&["node", &client("get.mjs"), "fetch"]);
    }
    judge_mapped(&["node", &client("get.mjs"), "fetch"]);
}

#[test]
fn rust_reqwest() {
    let profile = Path::new(env!("CARGO_BIN_EXE_skewtap")).parent().unwrap();
    let program = profile.join("examples/get");
    let missing = "is not there: run cargo build --package skewtap-cli --example get";
    assert!(program.exists(), "{} {missing}", program.display());
    judge(&[program.to_str().unwrap()]);
}

#[test]
fn java() {
    if !has_java() {
        not_run("needs a JDK (Debian package default-jdk-headless)");
        return;
    }
    for class in ["HttpClient", "HttpURLConnection"] {
        judge(&["java", &client("Get.java"), class]);
    }
}

/// Whether this Node sends its requests where `HTTP_PROXY` says.
pub(crate) fn node_reads_variables() -> bool {
    let script = "const [a, b] = process.versions.node.split('.').map(Number); \
                  process.exit(a > 24 || (a === 24 && b >= 5) || (a === 22 && b >= 21) ? 0 : 1)";
    let status = Command::new("node").args(["--eval", script]).status();
    status.unwrap().success()
}

/// Whether there is a Java that runs source files.
pub(crate) fn has_java() -> bool {
    let modules = Command::new("java").arg("--list-modules").output();
    modules.is_ok_and(|output| {
        let modules = String::from_utf8_lossy(&output.stdout).into_owned();
        modules.contains("jdk.compiler") && modules.contains("java.net.http")
    })
}
