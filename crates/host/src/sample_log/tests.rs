use super::*;

fn call(name: &str) -> Activity {
    Activity::Call {
        call: name.to_owned(),
    }
}

fn round(ended_ns: i64, threads: &[(i32, Activity)]) -> Round {
    let seen = |(tid, activity): &(i32, Activity)| SeenThread {
        tid: *tid,
        name: format!("t{tid}"),
        activity: activity.clone(),
        cpu_ns: Some(ended_ns / 2),
        run_queue_ns: None,
        timeslices: Some(i64::from(*tid)),
    };
    Round {
        ended_ns,
        threads: threads.iter().map(seen).collect(),
    }
}

#[test]
fn only_samples_taken_before_bytes_were_last_seen_unread_count() {
    let mut log = SampleLog::default();
    log.note_owner(9, "client");
    log.add(round(10, &[(9, call("a"))]));
    log.add(round(20, &[(9, call("a"))]));
    log.add(round(30, &[(9, call("b"))]));
    log.confirm(20);
    let watch = log.finish(|_, _| None).unwrap();
    assert_eq!(watch.samples, 2);
    assert_eq!(watch.threads[0].activities.len(), 1);
    assert_eq!(watch.threads[0].last, Some(call("a")));
    assert_eq!(watch.threads[0].cpu_ns, Some(5));
    assert_eq!(watch.threads[0].run_queue_ns, None);
}

#[test]
fn the_main_thread_and_the_commonest_activity_come_first() {
    let mut log = SampleLog::default();
    log.note_owner(9, "client");
    for (ended_ns, name) in [(1, "a"), (2, "b"), (3, "b")] {
        log.add(round(ended_ns, &[(3, call("c")), (9, call(name))]));
    }
    log.confirm(3);
    let watch = log.finish(|_, _| None).unwrap();
    let tids: Vec<_> = watch.threads.iter().map(|t| t.tid).collect();
    assert_eq!(tids, [9, 3]);
    assert_eq!(watch.threads[0].activities[0].activity, call("b"));
    assert_eq!(watch.threads[0].activities[0].samples, 2);
}

#[test]
fn waiting_for_the_socket_is_never_crowded_out() {
    let mut log = SampleLog::default();
    log.note_owner(9, "client");
    let here = Activity::WaitHere {
        call: "poll".to_owned(),
    };
    for number in 0..100 {
        log.add(round(number, &[(9, call(&number.to_string()))]));
        log.confirm(number);
    }
    log.add(round(100, &[(9, here.clone())]));
    log.confirm(100);
    let watch = log.finish(|_, _| None).unwrap();
    let activities = &watch.threads[0].activities;
    assert_eq!(activities.len(), MOST_ACTIVITIES);
    assert!(activities.iter().any(|a| a.activity == here));
    assert_eq!(watch.limits.len(), 1);
    assert_eq!(watch.samples, 101);
}

#[test]
fn everything_that_can_grow_is_capped() {
    let mut log = SampleLog::default();
    log.note_owner(9, "client");
    let many: Vec<_> = (0..500).map(|tid| (tid, call("a"))).collect();
    for ended_ns in 0..100 {
        log.add(round(ended_ns, &many));
        log.note_limit(format!("limit {ended_ns}"));
    }
    assert_eq!(log.pending.len(), MOST_PENDING);
    log.confirm(1_000);
    let watch = log.finish(|_, _| None).unwrap();
    assert_eq!(watch.threads.len(), MOST_THREADS);
    assert_eq!(watch.limits.len(), MOST_LIMITS);
}

#[test]
fn without_a_process_it_says_why() {
    let mut log = SampleLog::default();
    log.note_missing("no process".to_owned());
    assert_eq!(log.finish(|_, _| None), Err(Some("no process".to_owned())));
    assert_eq!(SampleLog::default().finish(|_, _| None), Err(None));
}

#[test]
fn a_thread_that_was_given_a_cpu_since_the_last_sample_woke() {
    let mut log = SampleLog::default();
    log.note_owner(9, "client");
    log.add(round(
        1,
        &[(9, call("a")), (10, call("b")), (11, call("c"))],
    ));
    log.confirm(1);
    // `round` has it that a thread was given a CPU as often as its number says.
    let now = |_, tid| match tid {
        9 | 10 => Some(10),
        _ => None,
    };
    let watch = log.finish(now).unwrap();
    let woke: Vec<_> = watch
        .threads
        .iter()
        .map(|thread| thread.woke_at_pick_up)
        .collect();
    assert_eq!(woke, [Some(true), Some(false), None]);
}
