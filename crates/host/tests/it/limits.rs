//! Caps, costs and endings.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use skewtap_core::endpoint::QueueOutcome;
use skewtap_core::exchange::SourceState;
use skewtap_host::{Watcher, WatcherSettings};

use crate::endpoint_process::{Watched, client, send_message};

#[test]
fn what_is_switched_off_is_off() {
    let watcher = Watcher::start(WatcherSettings {
        queues: false,
        processes: false,
        ..WatcherSettings::default()
    });
    assert_eq!(watcher.availability().queues, SourceState::Off);
    assert_eq!(watcher.availability().processes, SourceState::Off);
    let (_client, mut stream) = client("sleep");
    let result = Watched::by(&watcher, send_message(&mut stream)).result();
    assert_eq!(result.queue.outcome, QueueOutcome::NotWatched);
}

#[test]
fn processes_can_be_left_alone() {
    let watcher = Watcher::start(WatcherSettings {
        processes: false,
        ..WatcherSettings::default()
    });
    assert_eq!(watcher.availability().queues, SourceState::Used);
    let (_client, mut stream) = client("sleep");
    let result = Watched::by(&watcher, send_message(&mut stream)).result();
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    assert_eq!((result.process, result.process_missing), (None, None));
}

#[test]
fn one_watch_too_many_is_refused_and_counted() {
    let watcher = Watcher::start(WatcherSettings {
        most_watches: 1,
        ..WatcherSettings::default()
    });
    let (_client, mut stream) = client("sleep");
    let request = send_message(&mut stream);
    let first = Watched::by(&watcher, request);
    let refused = Watched::by(&watcher, request).result();
    assert_eq!(refused.queue.outcome, QueueOutcome::NotWatched);
    assert_eq!(first.result().queue.outcome, QueueOutcome::Read);
    let counters = watcher.counters();
    assert_eq!((counters.watched, counters.refused), (1, 1));
    // The place is free again.
    let again = Watched::by(&watcher, request).result();
    assert_eq!(again.queue.outcome, QueueOutcome::Read);
}

#[test]
fn a_watcher_that_is_dropped_ends_its_watches() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (_client, mut stream) = client("sleep");
    let watched = Watched::by(&watcher, send_message(&mut stream));
    while watcher.counters().polls == 0 {
        std::thread::yield_now();
    }
    drop(watcher);
    let result = watched.result();
    assert_eq!(result.queue.outcome, QueueOutcome::StillUnread);
}

/// Many watches at once on few sockets, more than fit into one request to the kernel.
#[test]
fn many_watches_at_once_all_end() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (mut client, mut stream) = client("sleep");
    let request = send_message(&mut stream);
    let watches: Vec<_> = (0..200).map(|_| Watched::by(&watcher, request)).collect();
    let read = client.act("read");
    for watch in watches {
        let result = watch.result();
        assert_eq!(result.queue.outcome, QueueOutcome::Read);
        let picked_up = result.picked_up.unwrap();
        assert!(read.overlaps(&picked_up), "{read:?} {picked_up:?}");
    }
    assert_eq!(watcher.counters().refused, 0);
}

/// Sockets of this very process: more than are sampled at once.
#[test]
fn more_unread_sockets_than_can_be_sampled() {
    let sockets: u64 = 80;
    let watcher = Watcher::start(WatcherSettings::default());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut connections = Vec::new();
    for _ in 0..sockets {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut ours, _) = listener.accept().unwrap();
        let watched = Watched::by(&watcher, send_message(&mut ours));
        connections.push((client, ours, watched));
    }
    let counted = || {
        let counters = watcher.counters();
        (counters.sampled_watches, counters.sampling_refused)
    };
    while counted().0 + counted().1 < sockets {
        std::thread::yield_now();
    }
    let (sampled, refused) = counted();
    assert_eq!(sampled + refused, sockets);
    assert!((1..=64).contains(&sampled), "{sampled}");
    drop(watcher);
    for (_client, _ours, watched) in connections {
        let result = watched.result();
        let own_pid = std::process::id().cast_signed();
        assert!(result.process.is_none_or(|process| process.pid == own_pid));
    }
}

/// The share is 1 % of a core, 20 ms saved up; a thread that overdraws pauses afterwards, so one
/// round of look-ups may come on top.
#[test]
fn looking_stays_within_its_share_of_a_core() {
    let watcher = Watcher::start(WatcherSettings {
        cpu_budget_percent: 1,
        processes: false,
        ..WatcherSettings::default()
    });
    let (_client, mut stream) = client("leave-open");
    let request = send_message(&mut stream);
    let watches: Vec<_> = (0..1_000).map(|_| Watched::by(&watcher, request)).collect();
    let seconds = 2;
    std::thread::sleep(Duration::from_secs(seconds));
    let used = watcher.counters().watcher_cpu_ns;
    drop(watches);
    let share = i64::try_from(seconds).unwrap() * 10_000_000 + 20_000_000;
    assert!(used < 2 * share, "{used} ns");
}
