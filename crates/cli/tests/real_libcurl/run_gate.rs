//! `skewtap run` as a gate in CI: it stops the client that sleeps blind, and lets its repaired
//! version pass.

use std::process::Output;

use super::program::skewtap;
use super::sweep::alone;
use super::system::{Server, lab};

/// Nothing is sent there.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Runs one call with `libcurl` behind the gate. The delay falls into the second in which the
/// faulty one does not watch its socket.
fn gated(libcurl: &str) -> Output {
    let _alone = alone();
    let server = Server::start(NOWHERE, &["--no-span"]);
    let script = "exec \"$0\" --proxy \"$http_proxy\" --server \"$1\" --no-span \
                  --timeout-ms 30000 --delay-ms 1600";
    skewtap()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .args(["run", "--fail-on", "client_blind_sleep", "--"])
        .args(["sh", "-c", script])
        .arg(lab(libcurl))
        .arg(server.address.to_string())
        .output()
        .unwrap()
}

#[test]
fn the_gate_stops_the_libcurl_that_sleeps_blind() {
    let output = gated("libcurl-7.62.0");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("gate failed"), "{words}");
    assert!(words.contains("client_blind_sleep for"), "{words}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told["lag_seconds"].as_f64().unwrap() > 0.3, "{told}");
}

#[test]
fn the_gate_lets_the_repaired_libcurl_pass() {
    let output = gated("libcurl-7.64.1");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words}");
    assert!(words.contains("gate passed"), "{words}");
}
