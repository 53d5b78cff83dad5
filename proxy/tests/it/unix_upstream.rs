//! A server behind a Unix socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use skewtap_core::clock::Source;
use skewtap_core::endpoint::QueueOutcome;
use skewtap_core::exchange::Outcome;
use skewtap_core::milestone::Milestone;

use crate::harness::{
    PATIENCE, Running, assert_within, config, nobody, now_ns, origin, stamp, timed_write,
};
use crate::wire::{exactly, expect, expect_end, head, rest};

const GET: &[u8] = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn at(path: &Path) -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        upstream: Some(format!("unix:{}", path.display()).parse().unwrap()),
        ..config(nobody())
    }
}

/// Serves one connection at `path`.
fn serve<T: Send + 'static>(
    path: &Path,
    serve: impl FnOnce(UnixStream) -> T + Send + 'static,
) -> JoinHandle<T> {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        serve(stream)
    })
}

#[test]
fn a_server_behind_a_unix_socket_is_asked_and_timed_by_the_proxys_clock_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("the server.sock");
    let server = serve(&path, |mut stream| {
        let mut served = Vec::new();
        for _ in 0..2 {
            let asked = head(&mut stream);
            thread::sleep(Duration::from_millis(60));
            let before = now_ns();
            stream.write_all(OK.as_bytes()).unwrap();
            served.push((asked, (before, now_ns())));
        }
        expect_end(&mut stream);
        served
    });
    let proxy = Running::start(at(&path));
    let mut client = proxy.connect();
    let mut sent = Vec::new();
    for _ in 0..2 {
        sent.push(timed_write(&mut client, GET));
        expect(&mut client, OK);
        sent.push((0, now_ns()));
    }
    let records = proxy.records(2);
    drop(client);
    let served = server.join().unwrap();
    for (number, record) in records.iter().enumerate() {
        assert!(
            served[number]
                .0
                .starts_with("GET /x HTTP/1.1\r\nHost: a\r\n")
        );
        let up = record.up.clone().unwrap();
        assert_eq!(up.peer, format!("unix:{}", path.display()));
        assert_eq!((up.local.as_str(), up.tcp), ("unix:", None));
        assert_eq!(up.earlier_exchanges, number as i64);
        assert_eq!(record.server_queue.outcome, QueueOutcome::NotWatched);
        let (asked, answered, got) = (sent[2 * number].0, served[number].1, sent[2 * number + 1].1);
        let left = stamp(record, Milestone::UpRequestLast, Source::WriteBracket);
        assert_within(left, (asked, answered.0), "the request leaves");
        for milestone in [Milestone::UpResponseFirst, Milestone::UpResponseLast] {
            let kernel = record.milestones.from_source(milestone, Source::Kernel);
            assert_eq!(kernel, None, "{milestone}");
            let came = stamp(record, milestone, Source::User);
            assert!(came.lo() <= answered.1 && answered.0 <= came.hi());
            assert!(came.hi() <= got, "{milestone}");
        }
    }
    let connected = stamp(&records[0], Milestone::UpConnected, Source::User);
    assert_within(connected, (sent[0].0, served[0].1.0), "connected");
}

#[test]
fn long_bodies_pass_unchanged_both_ways() {
    const LENGTH: usize = 3_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = serve(&path, |mut stream| {
        head(&mut stream);
        let body = exactly(&mut stream, LENGTH);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
        stream.write_all(answer.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
    });
    let proxy = Running::start(at(&path));
    let mut client = proxy.connect();
    let body: Vec<u8> = (0..LENGTH).map(|n| (n * n / 7) as u8).collect();
    let request = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
    let mut sending = client.try_clone().unwrap();
    let sent = body.clone();
    let sender = thread::spawn(move || {
        sending.write_all(request.as_bytes()).unwrap();
        sending.write_all(&sent).unwrap();
    });
    assert!(head(&mut client).starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(exactly(&mut client, LENGTH) == body, "the body was changed");
    sender.join().unwrap();
    server.join().unwrap();
    assert_eq!(proxy.record().outcome, Outcome::Complete);
}

#[test]
fn when_an_idle_server_closes_so_does_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = serve(&path, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(at(&path));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    server.join().unwrap();
    expect_end(&mut client);
}

#[test]
fn a_clients_half_close_reaches_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = serve(&path, |mut stream| {
        head(&mut stream);
        expect_end(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(at(&path));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    expect(&mut client, OK);
    server.join().unwrap();
}

#[test]
fn an_upgrade_is_carried_to_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    let server = serve(&path, move |mut stream| {
        head(&mut stream);
        stream.write_all(switch.as_bytes()).unwrap();
        let mut bytes = [0; 5];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(at(&path));
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        .unwrap();
    assert!(head(&mut client).starts_with("HTTP/1.1 101 "));
    client.write_all(b"hello").unwrap();
    expect(&mut client, "hello");
    drop(client);
    server.join().unwrap();
    assert_eq!(proxy.record().outcome, Outcome::Upgraded);
}

#[test]
fn a_socket_that_nobody_serves_gets_502() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    drop(UnixListener::bind(&gone).unwrap());
    let never = folder.path().join("never");
    for (path, reason) in [(gone, "upstream-refused"), (never, "upstream-unreachable")] {
        let proxy = Running::start(at(&path));
        let mut client = proxy.connect();
        client.write_all(GET).unwrap();
        let answer = head(&mut client);
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(
            answer.contains(&format!("x-skewtap-reason: {reason}\r\n")),
            "{answer}"
        );
        drop(client);
        let record = proxy.record();
        assert_eq!(
            (record.outcome, record.up),
            (Outcome::UpstreamUnreachable, None)
        );
    }
}

#[test]
fn a_server_that_breaks_off_is_seen_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = serve(&path, |mut stream| {
        head(&mut stream);
        let part = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok";
        stream.write_all(part.as_bytes()).unwrap();
    });
    let proxy = Running::start(at(&path));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    assert!(rest(&mut client).ends_with(b"\r\n\r\nok"));
    server.join().unwrap();
    drop(client);
    assert_eq!(proxy.record().outcome, Outcome::UpstreamBroken);
}

#[test]
fn whole_urls_still_go_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(at(&folder.path().join("s")));
    let mut client = proxy.connect();
    let request = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    expect(&mut client, OK);
    server.join().unwrap();
}
