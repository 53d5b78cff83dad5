//! `CONNECT` and switched protocols: bytes both ways, unseen but counted and timed.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use skewtap_core::clock::Source;
use skewtap_core::exchange::Outcome;
use skewtap_core::milestone::Milestone;
use socket2::SockRef;

use crate::harness::{
    Running, assert_arrived, assert_within, config, nobody, now_ns, origin, stamp, timed_write,
};
use crate::wire::{exactly, expect, expect_end, head, rest};

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
const ESTABLISHED: &str = "HTTP/1.1 200 OK\r\n\r\n";

fn forward_only() -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        upstream: None,
        ..config(nobody())
    }
}

/// Asks for a tunnel, with `early` right behind the request.
fn connect(proxy: &Running, address: SocketAddr, early: &str) -> TcpStream {
    let mut client = proxy.connect();
    let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n{early}");
    client.write_all(request.as_bytes()).unwrap();
    expect(&mut client, ESTABLISHED);
    client
}

fn reset(stream: TcpStream) {
    let now = Some(Duration::ZERO);
    SockRef::from(&stream).set_linger(now).unwrap();
}

/// Whether the stream ends in a reset.
fn ends_in_reset(stream: &mut TcpStream) -> bool {
    let end = stream.read_to_end(&mut Vec::new());
    end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

#[test]
fn a_tunnel_carries_both_ways_and_each_half_closes_by_itself() {
    let (address, server) = origin(1, |mut stream| {
        expect(&mut stream, "hello");
        let first = timed_write(&mut stream, b"wor");
        expect(&mut stream, "more");
        expect_end(&mut stream);
        (first, timed_write(&mut stream, b"ld!"))
    });
    let proxy = Running::start(forward_only());
    let mut client = connect(&proxy, address, "");
    let first = timed_write(&mut client, b"hello");
    expect(&mut client, "wor");
    let last = timed_write(&mut client, b"more");
    client.shutdown(Shutdown::Write).unwrap();
    expect(&mut client, "ld!");
    expect_end(&mut client);
    let (answer_first, answer_last) = server.join().unwrap()[0];
    let record = proxy.record();
    assert_eq!(record.method, "CONNECT");
    assert_eq!(record.authority, address.to_string());
    assert_eq!(record.outcome, Outcome::Upgraded);
    assert_eq!(record.status, Some(200));
    let asked = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").len();
    assert_eq!(record.request_bytes, Some(asked as i64 + 9));
    assert_eq!(record.response_bytes, Some(ESTABLISHED.len() as i64 + 6));
    assert_eq!(record.up.as_ref().unwrap().peer, address.to_string());
    assert_arrived(&record, Milestone::DownTunnelFirst, first);
    assert_arrived(&record, Milestone::DownTunnelLast, last);
    assert_arrived(&record, Milestone::UpTunnelFirst, answer_first);
    assert_arrived(&record, Milestone::UpTunnelLast, answer_last);
    assert!(record.milestones.best(Milestone::UpConnected).is_some());
    assert!(record.milestones.best(Milestone::UpFin).is_some());
    assert_eq!(proxy.stop(), []);
}

#[test]
fn what_the_client_sends_ahead_of_the_tunnel_goes_through_it() {
    let (address, server) = origin(1, |mut stream| rest(&mut stream));
    let proxy = Running::start(forward_only());
    let before = now_ns();
    let client = connect(&proxy, address, "GET / HTTP/1.1\r\n\r\n\x16\x03");
    let after = now_ns();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.join().unwrap(), [b"GET / HTTP/1.1\r\n\r\n\x16\x03"]);
    let record = proxy.record();
    let early = stamp(&record, Milestone::DownTunnelFirst, Source::User);
    assert_within(early, (before, after), "early bytes");
    assert_eq!(record.outcome, Outcome::Upgraded);
    assert_eq!(proxy.stop(), []);
}

#[test]
fn a_tunnel_that_leads_nowhere_is_refused_and_the_connection_closed() {
    let proxy = Running::start(forward_only());
    let mut client = proxy.connect();
    let address = nobody();
    let request =
        format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let answer = String::from_utf8(rest(&mut client)).unwrap();
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert_eq!(proxy.record().outcome, Outcome::UpstreamUnreachable);
    assert_eq!(proxy.stop(), []);
}

#[test]
fn an_upgrade_is_relayed_byte_for_byte_and_then_a_tunnel() {
    let (address, server) = origin(1, |mut stream| {
        let request = head(&mut stream);
        // The first frame in one write with the response.
        let switched = format!("{SWITCHED}ping");
        stream.write_all(switched.as_bytes()).unwrap();
        expect(&mut stream, "pong");
        stream.write_all(b"done").unwrap();
        request
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(UPGRADE.as_bytes()).unwrap();
    expect(&mut client, SWITCHED);
    expect(&mut client, "ping");
    client.write_all(b"pong").unwrap();
    expect(&mut client, "done");
    expect_end(&mut client);
    assert_eq!(server.join().unwrap(), [UPGRADE]);
    drop(client);
    let record = proxy.record();
    assert_eq!(record.outcome, Outcome::Upgraded);
    assert_eq!(record.status, Some(101));
    assert_eq!(record.request_bytes, Some(UPGRADE.len() as i64 + 4));
    assert_eq!(record.response_bytes, Some(SWITCHED.len() as i64 + 8));
    for milestone in [
        Milestone::DownTunnelFirst,
        Milestone::UpTunnelLast,
        Milestone::UpResponseLast,
        Milestone::DownResponseLast,
    ] {
        assert!(record.milestones.best(milestone).is_some(), "{milestone}");
    }
    assert_eq!(proxy.stop(), []);
}

#[test]
fn an_upgrade_that_the_server_declines_stays_http() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let (address, server) = origin(1, |mut stream| {
        for _ in 0..2 {
            head(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
        }
        expect_end(&mut stream);
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.write_all(UPGRADE.as_bytes()).unwrap();
        expect(&mut client, OK);
    }
    drop(client);
    server.join().unwrap();
    for record in proxy.records(2) {
        assert_eq!(record.outcome, Outcome::Complete);
    }
}

#[test]
fn a_server_that_switches_unasked_is_not_followed() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(SWITCHED.as_bytes()).unwrap();
        let (Ok(_) | Err(_)) = stream.read(&mut [0]);
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let answer = head(&mut client);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        answer.contains("x-skewtap-reason: upstream-switched\r\n"),
        "{answer}"
    );
    drop(client);
    server.join().unwrap();
    assert_eq!(proxy.record().outcome, Outcome::UpstreamMalformed);
    assert_eq!(proxy.stop(), []);
}

#[test]
fn a_reset_on_one_side_of_a_tunnel_is_a_reset_on_the_other() {
    let (ready, is_ready) = mpsc::channel();
    let (address, server) = origin(1, move |mut stream| {
        exactly(&mut stream, 1);
        ready.send(()).unwrap();
        ends_in_reset(&mut stream)
    });
    let proxy = Running::start(forward_only());
    let mut client = connect(&proxy, address, "");
    client.write_all(b"x").unwrap();
    is_ready.recv().unwrap();
    reset(client);
    assert_eq!(server.join().unwrap(), [true]);
    assert_eq!(proxy.record().outcome, Outcome::ClientGone);

    let (address, server) = origin(1, |mut stream| {
        exactly(&mut stream, 1);
        reset(stream);
    });
    let mut client = connect(&proxy, address, "");
    client.write_all(b"x").unwrap();
    server.join().unwrap();
    assert!(ends_in_reset(&mut client));
    assert_eq!(proxy.record().outcome, Outcome::UpstreamBroken);
    assert_eq!(proxy.stop(), []);
}

#[test]
fn a_tunnel_that_outlasts_the_drain_is_cut_off_with_a_record() {
    let (address, server) = origin(1, |mut stream| {
        let (Ok(_) | Err(_)) = stream.read_to_end(&mut Vec::new());
    });
    let proxy = Running::start(skewtap_proxy::Config {
        drain_timeout: Duration::from_millis(200),
        ..forward_only()
    });
    let client = connect(&proxy, address, "");
    let records = proxy.stop();
    server.join().unwrap();
    drop(client);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].outcome, Outcome::ProxyStopped);
}
