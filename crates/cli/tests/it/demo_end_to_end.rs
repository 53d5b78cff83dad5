//! The whole demo, with the real proxy and the real collector.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::finished::{code, stderr, stdout};
use super::program::skewtap;

/// Held by each test: they run one after another, because a demo measures.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Longest wait for processes to come and go.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn every_planted_gap_is_found_and_nothing_else_is_flagged() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = TempDir::new().unwrap();
    let output = skewtap()
        .args(["demo", "--json"])
        .env("TMPDIR", scratch.path())
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    let summary = &document["summary"];
    assert_eq!(code(&output), 0, "{summary}\n{}", shortcomings(&document));
    assert_eq!(summary["passed"], true);
    assert!(summary["seconds"].as_f64().unwrap() < 15.0, "{summary}");
    assert_eq!(
        (&summary["planted"], &summary["healthy"]),
        (&6.into(), &14.into())
    );

    for exchange in document["exchanges"].as_array().unwrap() {
        let planted = exchange["planted"]["truth"] == "planted";
        let client = &exchange["planted"]["client"];
        let blind = client["behaviour"] == "blind-sleep";
        let delay = client["delay_seconds"].as_f64().unwrap();
        let deaf = (1.0..2.0).contains(&delay) || (3.0..4.0).contains(&delay);
        assert_eq!(
            planted,
            blind && deaf,
            "the client did not do what it is for: {client}"
        );
        if planted {
            let cause = &exchange["findings"][0]["cause"];
            assert_eq!(cause, "client_blind_sleep", "{exchange}");
        }
    }
    assert_nothing_left(scratch.path());
}

#[test]
fn a_demo_that_is_interrupted_leaves_nothing() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = TempDir::new().unwrap();
    let mut demo = skewtap()
        .arg("demo")
        .env("TMPDIR", scratch.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(demo.id()).unwrap());
    // The demo, its three parts, and the first client.
    wait_for("the demo's parts", || processes(scratch.path()) > 4);
    kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert_nothing_left(scratch.path());
}

#[test]
fn the_parts_end_even_when_the_demo_is_killed() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = TempDir::new().unwrap();
    let mut demo = skewtap()
        .arg("demo")
        .env("TMPDIR", scratch.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the demo's parts", || processes(scratch.path()) > 4);
    demo.kill().unwrap();
    demo.wait().unwrap();
    wait_for("their end", || processes(scratch.path()) == 0);
}

fn shortcomings(document: &serde_json::Value) -> String {
    let exchanges = document["exchanges"].as_array().unwrap().iter();
    exchanges
        .filter(|exchange| !exchange["judgement_reason"].is_null())
        .map(|exchange| format!("{exchange}\n"))
        .collect()
}

fn assert_nothing_left(scratch: &Path) {
    assert_eq!(processes(scratch), 0);
    assert_eq!(fs::read_dir(scratch).unwrap().count(), 0);
}

/// How many processes run with `scratch` as their temporary directory, which tells them apart.
fn processes(scratch: &Path) -> usize {
    let wanted = format!("TMPDIR={}\0", scratch.display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| fs::read(entry.path().join("environ")).ok())
        .filter(|environ| {
            let mut windows = environ.windows(wanted.len());
            windows.any(|window| window == wanted.as_bytes())
        })
        .count()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} did not come about");
        thread::sleep(Duration::from_millis(20));
    }
}
