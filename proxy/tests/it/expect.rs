//! `Expect: 100-continue`: whether and when the client is told to go on is between it and the
//! server.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use skewtap_core::clock::Source;
use skewtap_core::exchange::Outcome;
use skewtap_core::milestone::Milestone;

use crate::harness::{
    PATIENCE, Running, assert_arrived, assert_within, config, now_ns, origin, stamp, timed_write,
};
use crate::wire::{expect, expect_end, head, rest};

const HEAD: &str = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\
                    traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const SHORT: Duration = Duration::from_millis(150);

/// Asserts that nothing comes for a while.
#[track_caller]
fn silence(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(SHORT)).unwrap();
    let mut byte = [0];
    let got = stream.read(&mut byte);
    let silent =
        matches!(&got, Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    assert!(silent, "{got:?} {byte:?}");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
}

#[test]
fn the_servers_100_is_passed_on_as_it_is_and_stamped() {
    let interim = "HTTP/1.1 100 Go On\r\nX-Why: because\r\n\r\n";
    let (address, server) = origin(1, move |mut stream| {
        expect(&mut stream, HEAD);
        let told = timed_write(&mut stream, interim.as_bytes());
        expect(&mut stream, "body");
        stream.write_all(OK.as_bytes()).unwrap();
        told
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(HEAD.as_bytes()).unwrap();
    expect(&mut client, interim);
    let heard = now_ns();
    client.write_all(b"body").unwrap();
    expect(&mut client, OK);
    let told = server.join().unwrap()[0];
    let record = proxy.record();
    assert_eq!(record.outcome, Outcome::Complete);
    assert_arrived(&record, Milestone::UpContinue, told);
    let left = stamp(&record, Milestone::DownContinue, Source::WriteBracket);
    assert_within(left, (told.0, heard), "the 100 left the proxy");
    let answered = record.milestones.best(Milestone::UpResponseFirst).unwrap();
    assert!(answered.lo() > told.1, "the 100 is not the response");
}

#[test]
fn a_late_100_comes_late_and_not_before() {
    let (address, server) = origin(1, |mut stream| {
        expect(&mut stream, HEAD);
        thread::sleep(SHORT * 2);
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        expect(&mut stream, "body");
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(HEAD.as_bytes()).unwrap();
    silence(&mut client);
    expect(&mut client, "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").unwrap();
    expect(&mut client, OK);
    server.join().unwrap();
}

#[test]
fn without_a_100_the_body_passes_when_the_client_stops_waiting() {
    let (address, server) = origin(1, |mut stream| {
        expect(&mut stream, HEAD);
        silence(&mut stream);
        expect(&mut stream, "body");
        let got_body = now_ns();
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
        got_body
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(HEAD.as_bytes()).unwrap();
    silence(&mut client);
    silence(&mut client);
    let sent = timed_write(&mut client, b"body");
    expect(&mut client, OK);
    drop(client);
    let got_body = server.join().unwrap()[0];
    let record = proxy.record();
    assert_arrived(&record, Milestone::DownRequestLast, sent);
    let left = stamp(&record, Milestone::UpRequestLast, Source::WriteBracket);
    assert_within(left, (sent.0, got_body), "the body left the proxy");
    assert_eq!(record.milestones.best(Milestone::DownContinue), None);
}

#[test]
fn a_client_that_does_not_wait_gets_no_100_from_the_proxy() {
    let (address, server) = origin(1, |mut stream| {
        expect(&mut stream, HEAD);
        expect(&mut stream, "body");
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(format!("{HEAD}body").as_bytes()).unwrap();
    expect(&mut client, OK);
    drop(client);
    server.join().unwrap();
}

#[test]
fn a_refusal_instead_of_a_100_is_passed_on_and_closes() {
    for refusal in [
        "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ] {
        let (address, server) = origin(1, move |mut stream| {
            expect(&mut stream, HEAD);
            stream.write_all(refusal.as_bytes()).unwrap();
        });
        let proxy = Running::start(config(address));
        let mut client = proxy.connect();
        client.write_all(HEAD.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(rest(&mut client)).unwrap(), refusal);
        server.join().unwrap();
        let record = proxy.record();
        assert_eq!(record.outcome, Outcome::Complete);
        assert_eq!(
            record.request_bytes, None,
            "the request never came to its end"
        );
    }
}

#[test]
fn after_a_refusal_the_server_may_still_take_the_body() {
    let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno";
    let (address, server) = origin(1, move |mut stream| {
        expect(&mut stream, HEAD);
        stream.write_all(refusal.as_bytes()).unwrap();
        expect(&mut stream, "body");
        let next = head(&mut stream);
        assert!(next.starts_with("GET /next "), "{next}");
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(HEAD.as_bytes()).unwrap();
    expect(&mut client, refusal);
    client
        .write_all(b"bodyGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    expect(&mut client, OK);
    server.join().unwrap();
    let records = proxy.records(2);
    assert_eq!(records[0].status, Some(417));
    assert_eq!(records[1].status, Some(200));
}

#[test]
fn other_interim_responses_pass_too() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    let (address, server) = origin(1, move |mut stream| {
        head(&mut stream);
        // Together with the final response: the order must hold.
        stream
            .write_all(format!("{hints}{hints}{OK}").as_bytes())
            .unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    expect(&mut client, &format!("{hints}{hints}{OK}"));
    server.join().unwrap();
}
