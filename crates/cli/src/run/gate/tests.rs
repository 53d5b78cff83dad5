use skewtap_core::cause::client_blind_sleep;
use skewtap_core::verdict_json::VerdictJson;

use super::*;
use crate::run::outcome::cases::verdict;
use crate::run::verdicts::Collected;

fn outcome(verdicts: Vec<VerdictJson>) -> Outcome {
    Outcome::new(Collected {
        verdicts,
        left_out: 0,
        not_judged: 0,
    })
}

fn gate(max_unexplained_ms: Option<u64>, fail_on: &[FailOn]) -> Gate {
    Gate {
        max_unexplained: max_unexplained_ms.map(Duration::from_millis),
        fail_on: fail_on.to_vec(),
    }
}

#[test]
fn a_healthy_request_passes_everything() {
    let outcome = outcome(vec![verdict(0.0, false)]);
    let all = [FailOn::AnyCause, FailOn::Flagged];
    assert_eq!(gate(Some(0), &all).judge(&outcome).reasons, [""; 0]);
}

#[test]
fn a_cause_fails_the_gates_that_ask_for_it() {
    let outcome = outcome(vec![verdict(0.0, false), verdict(0.4, true)]);
    let passes = |fail_on| gate(None, &[fail_on]).judge(&outcome).passed;
    assert!(!passes(FailOn::Cause(client_blind_sleep::NAME)));
    assert!(!passes(FailOn::AnyCause));
    assert!(!passes(FailOn::Flagged));
    assert!(passes(FailOn::Cause("another_cause")));
    // It is explained.
    assert!(gate(Some(50), &[]).judge(&outcome).passed);
}

#[test]
fn only_what_is_unexplained_beyond_doubt_counts() {
    let outcome = outcome(vec![verdict(0.4, false)]);
    assert!(gate(Some(400), &[]).judge(&outcome).passed);
    let failed = gate(Some(399), &[]).judge(&outcome);
    assert!(!failed.passed);
    assert!(
        failed.reasons[0].contains("400.0 ms unexplained"),
        "{failed:?}"
    );
    assert!(!gate(None, &[FailOn::Flagged]).judge(&outcome).passed);
    assert!(gate(None, &[FailOn::AnyCause]).judge(&outcome).passed);
}

#[test]
fn what_was_not_measured_does_not_pass() {
    let nothing = outcome(Vec::new());
    assert!(!gate(Some(50), &[]).judge(&nothing).passed);
    let not_judged = Outcome::new(Collected {
        verdicts: vec![verdict(0.0, false)],
        left_out: 0,
        not_judged: 1,
    });
    assert!(!gate(Some(50), &[]).judge(&not_judged).passed);
}

#[test]
fn of_many_reasons_the_rest_is_counted() {
    let many = std::iter::repeat_with(|| verdict(0.4, true))
        .take(25)
        .collect();
    let reasons = gate(None, &[FailOn::AnyCause])
        .judge(&outcome(many))
        .reasons;
    assert_eq!(reasons.len(), 21);
    assert_eq!(reasons.last().unwrap(), "and 5 more");
}
