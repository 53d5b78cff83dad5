//! Connections that give their buffers back while nothing goes on, and then go on.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::ServerConnection;
use skewtap_core::exchange::{ExchangeRecord, Outcome};
use skewtap_proxy::Config;

use crate::harness::{Running, config, origin};
use crate::metrics::{metrics, value};
use crate::pki::{Pki, Tls, both_legs, tls_client};
use crate::wire::{expect, expect_end, head};

const GET: &[u8] = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn with_metrics(config: Config) -> Config {
    Config {
        admin: Some("127.0.0.1:0".parse().unwrap()),
        ..config
    }
}

/// Waits until that many connections rest.
fn until_resting(proxy: &Running, count: f64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let admin = proxy.addresses.admin.unwrap();
    while value(&metrics(admin), "skewtap_proxy_resting_connections ") != count {
        assert!(Instant::now() < deadline, "it is not so: {count} rest");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Asks thrice, with a rest before each next time.
fn ask_between_rests(proxy: &Running, client: &mut (impl Read + Write)) {
    for _ in 0..3 {
        client.write_all(GET).unwrap();
        expect(client, OK);
        until_resting(proxy, 1.0);
    }
}

fn answer_thrice(stream: &mut (impl Read + Write)) {
    for _ in 0..3 {
        head(stream);
        stream.write_all(OK.as_bytes()).unwrap();
        stream.flush().unwrap();
    }
}

/// Asserts that three whole exchanges went over one connection on each leg.
fn assert_three_on_one(records: &[ExchangeRecord]) {
    for (record, earlier) in records.iter().zip(0..) {
        assert_eq!(record.outcome, Outcome::Complete);
        assert_eq!(record.down.earlier_exchanges, earlier);
        assert_eq!(record.up.as_ref().unwrap().earlier_exchanges, earlier);
        assert_eq!(record.request_bytes, Some(GET.len() as i64));
        assert_eq!(record.response_bytes, Some(OK.len() as i64));
    }
    assert_eq!(records.len(), 3);
}

#[test]
fn after_a_rest_the_same_connections_go_on() {
    let (address, server) = origin(1, |mut stream| {
        answer_thrice(&mut stream);
        expect_end(&mut stream);
    });
    let proxy = Running::start(with_metrics(config(address)));
    let mut client = proxy.connect();
    ask_between_rests(&proxy, &mut client);
    drop(client);
    server.join().unwrap();
    until_resting(&proxy, 0.0);
    assert_three_on_one(&proxy.records(3));
}

#[test]
fn after_a_rest_tls_goes_on_on_both_legs() {
    let pki = Pki::new();
    let settings = std::sync::Arc::new(pki.server_config("localhost"));
    let (address, server) = origin(1, move |stream| {
        let session = ServerConnection::new(settings.clone()).unwrap();
        let mut stream = Tls::new(session, stream);
        answer_thrice(&mut stream);
        expect_end(&mut stream);
    });
    let proxy = Running::start(with_metrics(both_legs(address, &pki)));
    let mut client = tls_client(proxy.connect(), &pki, "localhost");
    ask_between_rests(&proxy, &mut client);
    drop(client);
    until_resting(&proxy, 0.0);
    server.join().unwrap();
    assert_three_on_one(&proxy.records(3));
}

#[test]
fn a_server_that_closes_during_a_rest_is_seen_to_close() {
    let (close, closes) = mpsc::channel();
    let (address, server) = origin(1, move |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        closes.recv().unwrap();
    });
    let proxy = Running::start(with_metrics(config(address)));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    until_resting(&proxy, 1.0);
    close.send(()).unwrap();
    server.join().unwrap();
    expect_end(&mut client);
}

#[test]
fn half_of_a_request_keeps_a_connection_awake() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        let second = head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        second
    });
    let proxy = Running::start(with_metrics(config(address)));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    until_resting(&proxy, 1.0);
    client.write_all(b"GET /halved HTTP/1.1\r\nHo").unwrap();
    until_resting(&proxy, 0.0);
    // Longer than it takes for a rest to come.
    thread::sleep(Duration::from_secs(2));
    client.write_all(b"st: localhost\r\n\r\n").unwrap();
    expect(&mut client, OK);
    assert!(server.join().unwrap()[0].starts_with("GET /halved HTTP/1.1\r\n"));
}

#[test]
fn stopping_ends_a_connection_at_rest() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(with_metrics(config(address)));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    until_resting(&proxy, 1.0);
    assert_eq!(proxy.stop().len(), 1);
    expect_end(&mut client);
    server.join().unwrap();
}
