//! When a client reads its response.

use std::io::Read as _;
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

use skewtap_core::endpoint::QueueOutcome;
use skewtap_host::{WatchRequest, Watcher, WatcherSettings};
use skewtap_sockstamp::realtime_ns;
use socket2::{Domain, Protocol, Socket, Type};

use crate::endpoint::AWAY;
use crate::endpoint_process::{Watched, client, send_message, watch_client};

#[test]
fn a_client_that_reads_at_once() {
    for _ in 0..20 {
        let (result, mut client, _stream) = watch_client("read-at-once");
        assert_eq!(result.queue.outcome, QueueOutcome::Read);
        let picked_up = result.picked_up.unwrap();
        let read = client.act("read");
        assert!(read.overlaps(&picked_up), "{read:?} {picked_up:?}");
    }
}

#[test]
fn a_client_that_reads_late() {
    let before = realtime_ns();
    let (result, mut client, _stream) = watch_client("sleep");
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    assert!(result.queue.unread_polls >= 1);
    let picked_up = result.picked_up.unwrap();
    let read = client.act("read");
    assert!(read.overlaps(&picked_up), "{read:?} {picked_up:?}");
    let away = i64::try_from(AWAY.as_nanos()).unwrap();
    assert!(picked_up.hi() - before >= away, "{picked_up:?}");
}

#[test]
fn a_client_that_reads_and_closes_while_nobody_looks() {
    let (result, mut client, _stream) = watch_client("read-and-leave");
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    let picked_up = result.picked_up.unwrap();
    assert!(client.act("read").overlaps(&picked_up), "{picked_up:?}");
}

/// We end the connection first, so the client's socket is gone the moment it closes.
#[test]
fn a_client_that_reads_and_closes_after_we_have_closed() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (mut client, mut stream) = client("read-and-leave");
    let request = send_message(&mut stream);
    drop(stream);
    let result = Watched::by(&watcher, request).result();
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    let picked_up = result.picked_up.unwrap();
    assert!(client.act("read").overlaps(&picked_up), "{picked_up:?}");
}

/// The end of the client's stream says nothing of what it read, so the watch looks once more.
#[test]
fn a_client_whose_end_is_heard_before_the_next_look() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (mut client, mut stream) = client("read-and-leave");
    let mut watched = Watched::by(&watcher, send_message(&mut stream));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    drop(watched.handle.take());
    let result = watched.result();
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    let picked_up = result.picked_up.unwrap();
    assert!(client.act("read").overlaps(&picked_up), "{picked_up:?}");
}

#[test]
fn a_client_that_closes_without_reading() {
    let (result, _client, _stream) = watch_client("leave-unread");
    assert_eq!(result.queue.outcome, QueueOutcome::LeftUnread);
    assert_eq!(result.picked_up, None);
}

/// After both have ended the connection, the kernel keeps no trace of a socket that its
/// application has not read from yet. Then nothing may be claimed.
#[test]
fn a_client_that_ended_its_side_first_is_not_said_to_have_read() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (mut client, mut stream) = client("half-close");
    let request = WatchRequest {
        peer_had_ended: true,
        ..send_message(&mut stream)
    };
    stream.shutdown(Shutdown::Write).unwrap();
    let result = Watched::by(&watcher, request).result();
    assert_eq!(result.picked_up, None);
    assert!(realtime_ns() < client.act("read").after_ns);
}

#[test]
fn a_client_that_ended_its_side_is_watched_while_the_connection_stands() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (mut client, mut stream) = client("half-close");
    let request = WatchRequest {
        peer_had_ended: true,
        ..send_message(&mut stream)
    };
    let result = Watched::by(&watcher, request).result();
    let picked_up = result.picked_up.unwrap();
    assert!(client.act("read").overlaps(&picked_up), "{picked_up:?}");
}

#[test]
fn a_watch_that_is_ended_says_still_unread() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (_client, mut stream) = client("sleep");
    let mut watched = Watched::by(&watcher, send_message(&mut stream));
    while watcher.counters().polls == 0 {
        std::thread::yield_now();
    }
    watched.handle = None;
    let result = watched.result();
    assert_eq!(result.queue.outcome, QueueOutcome::StillUnread);
    assert_eq!(result.picked_up, None);
}

#[test]
fn the_callers_word_closes_the_bracket() {
    let watcher = Watcher::start(WatcherSettings::default());
    let (_client, mut stream) = client("sleep");
    let mut watched = Watched::by(&watcher, send_message(&mut stream));
    while watcher.counters().polls == 0 {
        std::thread::yield_now();
    }
    let by_ns = realtime_ns();
    watched.handle.take().unwrap().end_as_read(by_ns);
    let result = watched.result();
    assert_eq!(result.queue.outcome, QueueOutcome::Read);
    assert_eq!(result.picked_up.unwrap().hi(), by_ns);
}

#[test]
fn a_watch_that_takes_too_long_gives_up() {
    let watcher = Watcher::start(WatcherSettings {
        longest_watch: Duration::from_millis(50),
        ..WatcherSettings::default()
    });
    let (_client, mut stream) = client("sleep");
    let result = Watched::by(&watcher, send_message(&mut stream)).result();
    assert_eq!(result.queue.outcome, QueueOutcome::StillUnread);
}

/// A new connection with the same addresses and ports is not taken for the old one.
#[test]
fn a_port_used_again_is_not_the_same_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let connect_from = |port: u16| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.set_reuse_address(true).unwrap();
        let from: std::net::SocketAddr = ([127, 0, 0, 1], port).into();
        socket.bind(&from.into()).unwrap();
        socket.connect(&server.into()).unwrap();
        std::net::TcpStream::from(socket)
    };
    let watcher = Watcher::start(WatcherSettings::default());
    let first = connect_from(0);
    let port = first.local_addr().unwrap().port();
    let (mut ours, _) = listener.accept().unwrap();
    let watched = Watched::by(&watcher, send_message(&mut ours));
    while watcher.counters().polls == 0 {
        std::thread::yield_now();
    }
    // Closing with bytes unread resets the connection, which frees the port at once.
    drop(first);
    let second = connect_from(port);
    assert_eq!(second.local_addr().unwrap().port(), port);
    let result = watched.result();
    assert_eq!(result.queue.outcome, QueueOutcome::LeftUnread);
}
