//! The sweep, under each condition that must not change the verdict.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::system::{Call, LATE_SECONDS, System, Variant, calls_of};

/// How far the client's own figure and ours may differ: it includes connecting and starting.
const TOLERANCE_SECONDS: f64 = 0.010;

/// Calls of 33 that the machine's other work may have put out of step with the recorded sweep.
const MOST_OUT_OF_STEP: usize = 3;

/// Sixty-six clients at once are enough for two cores.
static ONE_SWEEP: Mutex<()> = Mutex::new(());

#[test]
fn the_blind_sleep_is_found_and_nothing_else() {
    judge_both(Variant::default());
}

#[test]
fn it_is_found_without_packets() {
    judge_both(Variant {
        proxy: &["--no-capture"],
        ..Variant::default()
    });
}

#[test]
fn it_is_found_without_client_spans() {
    judge_both(Variant {
        client: &["--no-span"],
        ..Variant::default()
    });
}

#[test]
fn it_is_found_by_clocks_that_are_seconds_off() {
    judge_both(Variant {
        client: &["--clock-offset-ms", "5000"],
        server: &["--clock-offset-ms", "-3000"],
        ..Variant::default()
    });
}

/// Sends both sweeps through one system and holds every verdict against the recorded truth.
fn judge_both(variant: Variant) {
    let _alone = alone();
    let system = System::start(&variant);
    let faulty = system.start_sweep("libcurl-7.62.0", &variant);
    let repaired = system.start_sweep("libcurl-7.64.1", &variant);
    let (faulty, repaired) = (calls_of(faulty), calls_of(repaired));
    let with_spans = !variant.client.contains(&"--no-span");
    let verdict_on = |call: &Call| {
        system.verdict(call, |verdict| {
            verdict["server_seconds"].is_number()
                && verdict["client_seconds"].is_number() == with_spans
        })
    };
    let mut out_of_step = 0;
    for (call, lags) in faulty.iter().zip(recorded_lags()) {
        let verdict = verdict_on(call);
        if call.lags() != lags {
            out_of_step += 1;
            assert_as_measured(call, &verdict);
        } else if lags {
            assert_blind_sleep(call, &verdict);
        } else {
            assert_healthy(call, &verdict);
        }
        assert_spans(&verdict, with_spans);
    }
    // A client that a busy machine starts late keeps another rhythm than the recorded one.
    assert!(
        out_of_step <= MOST_OUT_OF_STEP,
        "{out_of_step} calls lag otherwise than recorded"
    );
    for call in &repaired {
        let verdict = verdict_on(call);
        if call.lags() {
            assert_as_measured(call, &verdict);
        } else {
            assert_healthy(call, &verdict);
        }
    }
}

/// Whether each delay of the sweep lags by more than 50 ms, as recorded from libcurl itself.
fn recorded_lags() -> Vec<bool> {
    let recorded = include_str!("../../../../lab/libcurl/sweep-buggy.tsv");
    let rows = recorded
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let lags: Vec<bool> = rows
        .map(|row| row.split('\t').nth(2).unwrap().parse::<f64>().unwrap() > LATE_SECONDS)
        .collect();
    assert_eq!(
        (lags.len(), lags.iter().filter(|lags| **lags).count()),
        (33, 16)
    );
    lags
}

fn assert_blind_sleep(call: &Call, verdict: &Value) {
    assert_eq!(verdict["flagged"], true, "{verdict:#}");
    let finding = &verdict["findings"][0];
    assert_eq!(finding["cause"], "client_blind_sleep", "{verdict:#}");
    assert_eq!(finding["segment"], "client_unread", "{verdict:#}");
    let lo = finding["lo_seconds"].as_f64().unwrap() - TOLERANCE_SECONDS;
    let hi = finding["hi_seconds"].as_f64().unwrap() + TOLERANCE_SECONDS;
    let truth = call.lag_seconds;
    assert!(
        lo <= truth && truth <= hi,
        "{truth} s is not in [{lo}, {hi}]: {verdict:#}"
    );
}

/// Of a call that went otherwise than recorded, what its client measured is the truth.
fn assert_as_measured(call: &Call, verdict: &Value) {
    let flagged = verdict["flagged"] == true;
    let (lag, doubt) = (call.lag_seconds, TOLERANCE_SECONDS);
    if lag > LATE_SECONDS + doubt {
        assert!(flagged, "a lag of {lag} s: {verdict:#}");
    } else if lag < LATE_SECONDS - doubt {
        assert!(!flagged, "a lag of {lag} s: {verdict:#}");
    }
}

fn assert_healthy(call: &Call, verdict: &Value) {
    let delay = call.delay_seconds;
    assert_eq!(verdict["flagged"], false, "after {delay} s: {verdict:#}");
    assert_eq!(
        verdict["findings"].as_array().unwrap().len(),
        0,
        "{verdict:#}"
    );
}

/// What is not there is said to be missing, and the wire agrees with the server.
fn assert_spans(verdict: &Value, with_client_span: bool) {
    let missing = verdict["quality"]["missing"].as_array().unwrap();
    assert_eq!(
        missing.contains(&Value::from("client_span")),
        !with_client_span,
        "{verdict:#}"
    );
    assert_eq!(
        verdict["gap_seconds"].is_null(),
        !with_client_span,
        "{verdict:#}"
    );
    let server = verdict["server_seconds"].as_f64().unwrap();
    let wire = verdict["wire_seconds"].as_f64().unwrap();
    assert!((server - wire).abs() < 0.050, "{verdict:#}");
}

fn alone() -> MutexGuard<'static, ()> {
    // A test that failed has not spoilt anything for the next.
    ONE_SWEEP.lock().unwrap_or_else(PoisonError::into_inner)
}
