//! When a server accepts a connection and reads its request.

use std::net::TcpStream;

use skewtap_core::endpoint::{Activity, QueueOutcome};
use skewtap_host::{WatchRequest, WatchResult, Watcher, WatcherSettings};

use crate::endpoint_process::{Endpoint, Watched, send_message};

/// Sends a server a message and watches it to the end.
fn watch_server(role: &str) -> (WatchResult, Endpoint) {
    let watcher = Watcher::start(WatcherSettings::default());
    let mut server = Endpoint::start(role, "");
    let port: u16 = server.said("port").concat().parse().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = WatchRequest {
        watch_accept: true,
        ..send_message(&mut stream)
    };
    let result = Watched::by(&watcher, request).result();
    (result, server)
}

#[test]
fn a_server_that_accepts_late() {
    let (result, mut server) = watch_server("server-late-accept");
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    let (accepted, read) = (server.act("accepted"), server.act("read"));
    let stamp = result.accepted.unwrap();
    assert!(accepted.overlaps(&stamp), "{accepted:?} {stamp:?}");
    let picked_up = result.picked_up.unwrap();
    assert!(read.overlaps(&picked_up), "{read:?} {picked_up:?}");

    // Nobody holds the connection's socket yet: whoever holds the listener is to blame.
    let process = result.process.unwrap();
    assert_eq!(process.pid, server.pid());
    let reader = process.threads.iter().find(|t| t.name == "reader").unwrap();
    let activity = &reader.activities[0].activity;
    assert!(matches!(activity, Activity::Sleep { .. }), "{activity:?}");
}

#[test]
fn a_server_that_accepts_and_reads_late() {
    let (result, mut server) = watch_server("server-late-read");
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    let picked_up = result.picked_up.unwrap();
    let (accepted, read) = (server.act("accepted"), server.act("read"));
    assert!(read.overlaps(&picked_up), "{read:?} {picked_up:?}");
    // It was accepted before the first look or after it; only then there is a stamp.
    if let Some(stamp) = result.accepted {
        assert!(accepted.overlaps(&stamp), "{accepted:?} {stamp:?}");
    }
    assert_eq!(result.process.unwrap().pid, server.pid());
}
