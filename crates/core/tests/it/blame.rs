//! A cause is named only with its evidence, and never beside its neighbours'.

use skewtap_core::audit::{KnownClocks, Observed, audit};
use skewtap_core::endpoint::{Activity, ActivityCount, ThreadWatch};
use skewtap_core::policy::Policy;
use skewtap_core::verdict::{Confidence, Verdict};
use skewtap_simulator::scenario::{Meanwhile, Scenario};
use skewtap_simulator::world::World;

const MS: i64 = 1_000_000;

fn lagging(meanwhile: Meanwhile) -> Observed {
    let healthy = Scenario::healthy(7_510 * MS);
    Scenario {
        unread_ns: 510 * MS,
        meanwhile,
        ..healthy
    }
    .observe(&World::PLAIN)
}

fn judge(observed: &Observed) -> Verdict {
    audit(observed, &KnownClocks::default(), &Policy::default()).unwrap()
}

fn is_flagged_without_cause(observed: &Observed) -> bool {
    let verdict = judge(observed);
    verdict.flagged && verdict.findings.is_empty()
}

#[test]
fn the_incident_is_named_with_its_evidence() {
    let verdict = judge(&lagging(Meanwhile::SleepsBlind));
    let finding = &verdict.findings[0];
    assert_eq!(finding.cause, "client_blind_sleep");
    assert_eq!(finding.confidence, Confidence::Observed);
    let kinds: Vec<_> = finding.evidence.iter().map(|e| e.kind).collect();
    assert_eq!(
        kinds,
        [
            "unread_queue",
            "thread_asleep",
            "nobody_watching",
            "timer_edge"
        ]
    );
    assert!(
        finding.evidence[1].statement.contains("poll for 1.000 s"),
        "{finding:?}"
    );
}

#[test]
fn a_busy_client_is_not_called_asleep() {
    assert!(is_flagged_without_cause(&lagging(Meanwhile::Computes)));
}

#[test]
fn a_client_that_watches_its_socket_is_not_called_blind() {
    assert!(is_flagged_without_cause(&lagging(
        Meanwhile::WaitsForSocket
    )));
}

#[test]
fn without_samples_there_is_no_cause() {
    let mut observed = lagging(Meanwhile::SleepsBlind);
    observed.exchanges[0].client_process = None;
    assert!(is_flagged_without_cause(&observed));
    let mut observed = lagging(Meanwhile::SleepsBlind);
    observed.exchanges[0]
        .client_process
        .as_mut()
        .unwrap()
        .samples = 2;
    assert!(is_flagged_without_cause(&observed));
}

#[test]
fn without_an_unread_queue_there_is_no_cause() {
    let mut observed = lagging(Meanwhile::SleepsBlind);
    observed.exchanges[0].client_queue.unread_polls = 0;
    assert!(is_flagged_without_cause(&observed));
}

#[test]
fn a_second_thread_on_a_cpu_leaves_it_open() {
    let mut observed = lagging(Meanwhile::SleepsBlind);
    let process = observed.exchanges[0].client_process.as_mut().unwrap();
    process.threads.push(second_thread(Activity::Running, 7));
    assert!(is_flagged_without_cause(&observed));
}

#[test]
fn another_threads_nap_is_not_the_cause() {
    let mut observed = lagging(Meanwhile::SleepsBlind);
    let process = observed.exchanges[0].client_process.as_mut().unwrap();
    process
        .threads
        .push(second_thread(Activity::Lock { timeout_ns: None }, 30));
    process.threads[0].woke_at_pick_up = Some(false);
    assert!(is_flagged_without_cause(&observed));
    let process = observed.exchanges[0].client_process.as_mut().unwrap();
    process.threads[0].woke_at_pick_up = Some(true);
    assert_eq!(judge(&observed).findings.len(), 1);
}

#[test]
fn a_thread_that_had_woken_before_the_pick_up_is_not_the_cause() {
    let mut observed = lagging(Meanwhile::SleepsBlind);
    let process = observed.exchanges[0].client_process.as_mut().unwrap();
    process.threads[0].last = Some(Activity::Call {
        call: "fsync".to_owned(),
    });
    assert!(is_flagged_without_cause(&observed));
}

#[test]
fn a_sleeper_that_then_waits_for_a_cpu_is_still_the_cause() {
    let mut observed = lagging(Meanwhile::SleepsBlind);
    let process = observed.exchanges[0].client_process.as_mut().unwrap();
    let thread = &mut process.threads[0];
    thread.activities[0].samples = 27;
    let running = ActivityCount {
        activity: Activity::Running,
        samples: 3,
    };
    thread.activities.push(running);
    thread.last = Some(Activity::Running);
    assert_eq!(judge(&observed).findings.len(), 1);
}

#[test]
fn a_timed_wait_on_other_descriptors_is_likely_not_certain() {
    let mut observed = lagging(Meanwhile::SleepsBlind);
    let thread = &mut observed.exchanges[0]
        .client_process
        .as_mut()
        .unwrap()
        .threads[0];
    let wait = Activity::WaitElsewhere {
        call: "epoll_wait".to_owned(),
        timeout_ns: Some(500 * MS),
    };
    thread.activities[0].activity = wait.clone();
    thread.last = Some(wait);
    assert_eq!(judge(&observed).findings[0].confidence, Confidence::Likely);
}

fn second_thread(activity: Activity, samples: u32) -> ThreadWatch {
    ThreadWatch {
        tid: 4712,
        name: "worker".to_owned(),
        cpu_ns: None,
        run_queue_ns: None,
        activities: vec![ActivityCount {
            activity: activity.clone(),
            samples,
        }],
        last: Some(activity),
        woke_at_pick_up: Some(false),
    }
}
