//! What a client was doing while its response lay unread.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use skewtap_core::endpoint::{Activity, ProcessWatch, ThreadWatch};
use skewtap_host::{Watcher, WatcherSettings};

use crate::endpoint::AWAY;
use crate::endpoint_process::{Watched, client, send_message, watch_client};

/// Watches a client in a role; gives its samples, checked to be of the right process.
fn samples(role: &str) -> ProcessWatch {
    let (result, client, _stream) = watch_client(role);
    let process = result.process.unwrap();
    assert_eq!(process.pid, client.pid());
    assert_eq!(process.limits, Vec::<String>::new());
    assert!(process.samples >= 3, "{process:?}");
    process
}

fn thread<'a>(process: &'a ProcessWatch, name: &str) -> &'a ThreadWatch {
    process.threads.iter().find(|t| t.name == name).unwrap()
}

/// What the reading thread of a client in a role was mostly seen doing.
fn main_activity(role: &str) -> Activity {
    mostly(thread(&samples(role), "reader"))
}

fn mostly(thread: &ThreadWatch) -> Activity {
    thread.activities.first().unwrap().activity.clone()
}

fn away_ns() -> Option<i64> {
    Some(AWAY.as_nanos().try_into().unwrap())
}

#[test]
fn a_sleep() {
    let expected = Activity::Sleep {
        call: "clock_nanosleep".to_owned(),
        timeout_ns: away_ns(),
    };
    assert_eq!(main_activity("sleep"), expected);
}

#[test]
fn the_sleeper_that_wakes_to_read_is_told_from_one_that_sleeps_on() {
    let process = samples("sleep-beside-a-napper");
    assert_eq!(thread(&process, "reader").woke_at_pick_up, Some(true));
    assert_eq!(thread(&process, "napper").woke_at_pick_up, Some(false));
}

#[test]
fn a_poll_on_nothing() {
    let Activity::Sleep { call, timeout_ns } = main_activity("poll-on-nothing") else {
        panic!("not a sleep");
    };
    assert_eq!(timeout_ns, away_ns());
    assert!(["poll", "ppoll"].contains(&call.as_str()), "{call}");
}

#[test]
fn a_select_on_nothing() {
    let Activity::Sleep { call, timeout_ns } = main_activity("select-on-nothing") else {
        panic!("not a sleep");
    };
    assert_eq!(timeout_ns, away_ns());
    assert!(["select", "pselect6"].contains(&call.as_str()), "{call}");
}

#[test]
fn a_poll_on_another_descriptor() {
    let Activity::WaitElsewhere { call, timeout_ns } = main_activity("poll-elsewhere") else {
        panic!("not a wait elsewhere");
    };
    assert_eq!(timeout_ns, away_ns());
    assert!(["poll", "ppoll"].contains(&call.as_str()), "{call}");
}

#[test]
fn an_epoll_set_without_the_socket() {
    let Activity::WaitElsewhere { call, timeout_ns } = main_activity("epoll-elsewhere") else {
        panic!("not a wait elsewhere");
    };
    assert_eq!(timeout_ns, away_ns());
    assert!(call.starts_with("epoll_"), "{call}");
}

#[test]
fn an_epoll_set_with_the_socket() {
    let Activity::WaitHere { call } = main_activity("epoll-lost-edge") else {
        panic!("not a wait here");
    };
    assert!(call.starts_with("epoll_"), "{call}");
}

#[test]
fn a_mutex_and_its_holder() {
    let process = samples("mutex");
    let reader = mostly(thread(&process, "reader"));
    assert_eq!(reader, Activity::Lock { timeout_ns: None });
    let holder = mostly(thread(&process, "holder"));
    assert!(matches!(holder, Activity::Sleep { .. }), "{holder:?}");
}

#[test]
fn a_computation() {
    let process = samples("compute");
    let reader = thread(&process, "reader");
    assert_eq!(mostly(reader), Activity::Running);
    // It wants the processor all the time: it has it, or waits for it.
    let wanted = reader.cpu_ns.unwrap() + reader.run_queue_ns.unwrap();
    assert!(wanted > 0, "{reader:?}");
}

#[test]
fn a_process_that_is_stopped() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (client, mut stream) = client("read-at-once");
    let pid = Pid::from_raw(client.pid());
    kill(pid, Signal::SIGSTOP).unwrap();
    while !all_threads_are_stopped(client.pid()) {
        std::thread::yield_now();
    }
    let watched = Watched::by(&watcher, send_message(&mut stream));
    std::thread::sleep(AWAY);
    kill(pid, Signal::SIGCONT).unwrap();
    let process = watched.result().process.unwrap();
    assert_eq!(mostly(thread(&process, "reader")), Activity::Stopped);
}

#[test]
fn a_socket_that_two_processes_hold() {
    let (result, _client, _stream) = watch_client("share");
    let process = result.process.unwrap();
    let said = process
        .limits
        .iter()
        .any(|l| l.contains("holds the socket too"));
    assert!(said, "{process:?}");
    let reader = mostly(thread(&process, "reader"));
    assert!(matches!(reader, Activity::Sleep { .. }), "{reader:?}");
    let other = mostly(thread(&process, "sleep"));
    assert!(matches!(other, Activity::Sleep { .. }), "{other:?}");
}

#[test]
fn a_client_is_not_sampled_before_its_time() {
    let watcher = Watcher::start(WatcherSettings {
        unread_before_sampling: std::time::Duration::from_secs(10),
        ..WatcherSettings::default()
    });
    let (_client, mut stream) = client("sleep");
    let result = Watched::by(&watcher, send_message(&mut stream)).result();
    assert_eq!(result.process, None);
    assert_eq!(watcher.counters().sampled_watches, 0);
}

/// The threads of a process stop one after another.
fn all_threads_are_stopped(pid: i32) -> bool {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .all(|task| {
            let stat = task.unwrap().path().join("stat");
            std::fs::read_to_string(stat).unwrap().contains(") T ")
        })
}
