//! The sweep, under each condition that must not change the verdict.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::system::{Call, LATE_SECONDS, System, Variant, calls_of};

/// How far the client's own figure and ours may differ: it includes connecting and starting.
const TOLERANCE_SECONDS: f64 = 0.010;

/// Calls of 66 that the machine's other work may delay: a client that starts late keeps another
/// rhythm than the recorded one, and one that waits for a CPU lags by more than its sleep. What
/// is said of such a call cannot be held against the record.
const MOST_DISTURBED: usize = 4;

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
    let mut disturbed = 0;
    for (call, lags) in faulty.iter().zip(recorded_lags()) {
        let verdict = verdict_on(call);
        if call.lags() != lags {
            disturbed += 1;
        } else if !lags {
            assert_healthy(call, &verdict);
        } else if assert_blind_sleep(call, &verdict) > TOLERANCE_SECONDS {
            disturbed += 1;
        }
        assert_spans(&verdict, with_spans);
    }
    for call in &repaired {
        if call.lags() {
            disturbed += 1;
        } else {
            assert_healthy(call, &verdict_on(call));
        }
    }
    assert!(
        disturbed <= MOST_DISTURBED,
        "{disturbed} calls were disturbed"
    );
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

/// Checks that the blind sleep is named, and how far its interval is from the true lag, in seconds.
fn assert_blind_sleep(call: &Call, verdict: &Value) -> f64 {
    assert_eq!(verdict["flagged"], true, "{verdict:#}");
    let finding = &verdict["findings"][0];
    assert_eq!(finding["cause"], "client_blind_sleep", "{verdict:#}");
    assert_eq!(finding["segment"], "client_unread", "{verdict:#}");
    let lo = finding["lo_seconds"].as_f64().unwrap();
    let hi = finding["hi_seconds"].as_f64().unwrap();
    let outside = (lo - call.lag_seconds).max(call.lag_seconds - hi).max(0.0);
    // Whatever else the machine did to the call, the sleep is most of its lag.
    assert!(
        outside < LATE_SECONDS,
        "{} s: {verdict:#}",
        call.lag_seconds
    );
    outside
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

pub(super) fn alone() -> MutexGuard<'static, ()> {
    // A test that failed has not spoilt anything for the next.
    ONE_SWEEP.lock().unwrap_or_else(PoisonError::into_inner)
}
