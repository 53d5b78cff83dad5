//! A watcher with nothing to watch. Alone in its program, because it looks at all its threads.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use skewtap_core::endpoint::QueueOutcome;
use skewtap_host::{WatchRequest, Watcher, WatcherSettings};
use skewtap_sockstamp::realtime_ns;

#[test]
fn no_thread_wakes_before_or_after_a_watch() {
    let watcher = Watcher::start(WatcherSettings::default());
    assert_nothing_wakes();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut ours, _) = listener.accept().unwrap();
    let sent_before_ns = realtime_ns();
    ours.write_all(b"hello").unwrap();
    let request = WatchRequest {
        peer: ours.peer_addr().unwrap(),
        local: ours.local_addr().unwrap(),
        bytes_sent: 5,
        sent_before_ns,
        watch_accept: false,
        peer_had_ended: false,
    };
    let (tell, result) = mpsc::channel();
    let _handle = watcher.watch(request, move |result| tell.send(result).unwrap());
    // Long enough that its process, this one, is sampled too.
    std::thread::sleep(Duration::from_millis(100));
    client.read_exact(&mut [0; 5]).unwrap();
    let result = result.recv().unwrap();
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    assert_eq!(
        result.process.unwrap().pid,
        std::process::id().cast_signed()
    );

    assert_nothing_wakes();
}

/// The threads come to rest, and then do not wake for a while.
fn assert_nothing_wakes() {
    let rest = Duration::from_millis(300);
    // The sampler finishes the round it is in, and another to find that its target is gone.
    std::thread::sleep(rest);
    let before = watcher_threads();
    std::thread::sleep(rest);
    assert_eq!(watcher_threads(), before);
    assert_eq!(before.len(), 2);
    assert!(before.iter().all(|(state, _)| *state == 'S'), "{before:?}");
}

/// State and number of waits of the watcher's threads.
fn watcher_threads() -> Vec<(char, u64)> {
    let mut threads = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        if field("Name:").starts_with("skewtap-") {
            let waits = field("voluntary_ctxt_switches:").parse().unwrap();
            threads.push((field("State:").chars().next().unwrap(), waits));
        }
    }
    threads
}
