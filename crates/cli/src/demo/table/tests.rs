use serde_json::{Value, json};

use super::*;
use crate::args::Behaviour;
use crate::demo::client_report::ClientReport;

fn report(behaviour: Behaviour, client_seconds: f64) -> ClientReport {
    ClientReport {
        behaviour,
        delay_seconds: 1.25,
        trace_id: "aa".to_owned(),
        span_id: "bb".to_owned(),
        status: 200,
        client_seconds,
        server_seconds: 1.25,
        before_send_seconds: 0.001,
        unread_seconds: client_seconds - 1.252,
        blind_sleeps: 1,
        slept_over_response: client_seconds > 1.5,
    }
}

fn verdict(client_seconds: f64, flagged: bool, findings: &Value) -> VerdictDocument {
    VerdictDocument::read(json!({
        "revision": 3,
        "trace_id": "aa", "client_span_id": "bb", "method": "GET", "path": "/work",
        "authority": "here", "outcome": "complete", "exchanges": 1,
        "client_seconds": client_seconds, "server_seconds": 1.25, "wire_seconds": 1.2512,
        "gap_seconds": client_seconds - 1.25, "findings": findings, "faults": [],
        "segments": [
            {"name": "server_span", "seconds": 1.25, "lo_seconds": 1.25, "hi_seconds": 1.25, "explanation": "ordinary"},
            {"name": "client_unread", "seconds": 0.75, "lo_seconds": 0.7, "hi_seconds": 0.75, "explanation": "unexplained"}
        ],
        "flagged": flagged, "bars": [],
        "quality": {"missing": [], "notes": [], "sources": {
            "kernel_stamps": "used", "capture": "used", "queues": "used",
            "processes": "not permitted"
        }}
    }))
    .unwrap()
}

fn blind_sleep() -> Value {
    json!([{
        "cause": "client_blind_sleep", "segment": "client_unread",
        "lo_seconds": 0.748, "hi_seconds": 0.75, "confidence": "observed",
        "evidence": [{"kind": "unread_queue", "statement": "166 bytes lay unread for 0.748 s"}],
        "refuted_by": "a thread that waits for the socket"
    }])
}

fn written(outcome: &Outcome) -> String {
    let mut out = Vec::new();
    write(&mut out, outcome).unwrap();
    anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
}

#[test]
fn found_gaps_stand_with_segment_cause_and_evidence() {
    let reports = vec![
        report(Behaviour::BlindSleep, 2.0),
        report(Behaviour::Healthy, 1.253),
    ];
    let verdicts = vec![
        Some(verdict(2.0, true, &blind_sleep())),
        Some(verdict(1.253, false, &json!([]))),
    ];
    let text = written(&Outcome::new(reports, verdicts, 7.04));
    let wanted = "\
client program  client s  server s  wire s  gap s  segment        cause                          judgement
blind-sleep        2.000     1.250   1.251  0.750  client_unread  client_blind_sleep (observed)  planted, found
healthy            1.253     1.250   1.251  0.003  -              -                              healthy

why client_blind_sleep for the gap of 0.750 s:
  166 bytes lay unread for 0.748 s

1 of 1 planted gaps found, 0 of 1 healthy exchanges flagged (7.0 s)
without process samples: not permitted
";
    assert_eq!(text, wanted);
}

#[test]
fn what_went_wrong_is_said_and_does_not_pass() {
    let reports = vec![
        report(Behaviour::BlindSleep, 2.0),
        report(Behaviour::Healthy, 1.253),
        report(Behaviour::Healthy, 1.253),
    ];
    let verdicts = vec![
        Some(verdict(2.0, true, &json!([]))),
        Some(verdict(1.253, true, &json!([]))),
        None,
    ];
    let outcome = Outcome::new(reports, verdicts, 7.0);
    assert!(!outcome.summary().passed());
    let text = written(&outcome);
    for line in [
        "planted, MISSED",
        "client_unread  unexplained",
        "healthy, FLAGGED",
        "NO VERDICT",
        "blind-sleep client, server delay 1.250 s: flagged without the cause client_blind_sleep",
        "0 of 1 planted gaps found, 1 of 2 healthy exchanges flagged",
        "without a verdict in time: 1",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

#[test]
fn a_demo_that_planted_nothing_does_not_pass() {
    let reports = vec![report(Behaviour::Healthy, 1.253)];
    let verdicts = vec![Some(verdict(1.253, false, &json!([])))];
    assert!(!Outcome::new(reports, verdicts, 7.0).summary().passed());
}

#[test]
fn the_document_has_the_verdict_and_the_truth_side_by_side() {
    let reports = vec![report(Behaviour::BlindSleep, 2.0)];
    let verdicts = vec![Some(verdict(2.0, true, &blind_sleep()))];
    let document = Outcome::new(reports, verdicts, 7.0).json();
    assert_eq!(document["summary"]["passed"], true);
    let exchange = &document["exchanges"][0];
    assert_eq!(exchange["findings"][0]["cause"], "client_blind_sleep");
    assert_eq!(exchange["revision"], 3);
    assert_eq!(exchange["planted"]["truth"], "planted");
    assert_eq!(exchange["planted"]["client"]["client_seconds"], 2.0);
    assert_eq!(exchange["judgement"], "found");
}
