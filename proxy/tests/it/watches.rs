//! The receive queues of both endpoints, as the proxy sees them.

use std::io::{Read as _, Write as _};
use std::thread;
use std::time::Duration;

use skewtap_core::clock::Source;
use skewtap_core::endpoint::QueueOutcome;
use skewtap_core::exchange::SourceState;
use skewtap_core::milestone::Milestone;

use crate::harness::{Running, assert_within, config, now_ns, origin, stamp};
use crate::wire::{expect, expect_end, head};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LATE: Duration = Duration::from_millis(300);

#[test]
fn a_client_that_reads_late_is_seen_to() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        let answered = now_ns();
        expect_end(&mut stream);
        answered
    });
    let proxy = Running::start(config(address));
    assert_eq!(proxy.sources.queues, SourceState::Used);
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    thread::sleep(LATE);
    let reading = now_ns();
    expect(&mut client, OK);
    let read = (reading, now_ns());
    let record = proxy.record();
    drop(client);
    let answered = server.join().unwrap()[0];
    assert_eq!(record.client_queue.outcome, QueueOutcome::Read);
    assert!(record.client_queue.unread_polls > 0);
    let picked_up = stamp(&record, Milestone::ClientPickedUp, Source::Queue);
    assert_within(picked_up, read, "the pick-up");
    assert!(picked_up.lo() > answered, "it lay there since {answered}");
}

#[test]
fn a_server_that_accepts_and_reads_late_is_seen_to() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    thread::sleep(LATE);
    let accepting = now_ns();
    let (mut stream, _) = listener.accept().unwrap();
    let accepted = (accepting, now_ns());
    thread::sleep(LATE);
    let reading = now_ns();
    let mut request = [0; 4096];
    assert!(stream.read(&mut request).unwrap() > 0);
    let read = (reading, now_ns());
    // The watch must have seen it before the answer ends the watch.
    thread::sleep(LATE);
    stream.write_all(OK.as_bytes()).unwrap();
    expect(&mut client, OK);
    let record = proxy.record();
    assert_eq!(record.server_queue.outcome, QueueOutcome::Read);
    let stamp = |milestone| stamp(&record, milestone, Source::Queue);
    assert_within(stamp(Milestone::ServerAccepted), accepted, "the accept");
    assert_within(stamp(Milestone::ServerPickedUp), read, "the pick-up");
}

#[test]
fn a_client_that_leaves_its_response_unread_is_seen_to() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        // The client's kernel makes a reset of such a close.
        stream.read(&mut [0]).unwrap_err();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    thread::sleep(LATE);
    drop(client);
    server.join().unwrap();
    let record = proxy.record();
    assert_eq!(record.client_queue.outcome, QueueOutcome::LeftUnread);
    assert_eq!(record.milestones.best(Milestone::ClientPickedUp), None);
}

#[test]
fn switched_off_nothing_is_watched() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(skewtap_proxy::Config {
        queues: false,
        ..config(address)
    });
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    server.join().unwrap();
    let record = proxy.record();
    assert_eq!(record.sources.queues, SourceState::Off);
    assert_eq!(record.client_queue.outcome, QueueOutcome::NotWatched);
}
