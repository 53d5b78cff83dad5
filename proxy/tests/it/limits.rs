//! How much and how long clients and servers may take.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use skewtap_core::exchange::Outcome;
use skewtap_proxy::tls::TlsSettings;
use socket2::{Domain, Socket, Type};

use crate::harness::{Running, config, connect, nobody, origin};
use crate::pki::Pki;
use crate::wire::{expect, expect_end, head, rest};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_server_that_does_not_take_the_connection_in_time_gets_504() {
    // A listener whose queue is full lets further clients wait.
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    for _ in 0..8 {
        let waiting = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        waiting.set_nonblocking(true).unwrap();
        // In progress, or done at once.
        let (Ok(()) | Err(_)) = waiting.connect(&address.into());
        queued.push(waiting);
    }
    let allowed = Duration::from_millis(300);
    let proxy = Running::start(skewtap_proxy::Config {
        connect_timeout: allowed,
        ..config(address)
    });
    let mut client = proxy.connect();
    let began = Instant::now();
    client.write_all(GET).unwrap();
    let answer = head(&mut client);
    assert!(began.elapsed() >= allowed);
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    let reason = "x-skewtap-reason: upstream-connect-timeout\r\n";
    assert!(answer.contains(reason), "{answer}");
    drop(client);
    let record = proxy.record();
    assert_eq!(
        (record.outcome, record.up),
        (Outcome::UpstreamUnreachable, None)
    );
    drop(queued);
}

#[test]
fn one_connection_too_many_waits_until_another_has_gone() {
    let (address, server) = origin(2, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(skewtap_proxy::Config {
        max_connections: 1,
        ..config(address)
    });
    let mut first = proxy.connect();
    first.write_all(GET).unwrap();
    expect(&mut first, OK);
    let mut second = proxy.connect();
    second.write_all(GET).unwrap();
    second
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let too_soon = second.read(&mut [0]).unwrap_err();
    assert_eq!(too_soon.kind(), ErrorKind::WouldBlock);
    second
        .set_read_timeout(Some(crate::harness::PATIENCE))
        .unwrap();
    drop(first);
    expect(&mut second, OK);
    drop(second);
    server.join().unwrap();
}

#[test]
fn a_client_that_does_not_shake_hands_in_time_is_closed() {
    let pki = Pki::new();
    let proxy = Running::start(skewtap_proxy::Config {
        head_timeout: Duration::from_millis(200),
        tls: TlsSettings {
            server: Some(pki.identity("localhost")),
            ..TlsSettings::default()
        },
        ..config(nobody())
    });
    let mut silent = proxy.connect();
    let began = Instant::now();
    expect_end(&mut silent);
    assert!(began.elapsed() >= Duration::from_millis(190));
}

#[test]
fn a_client_that_ends_in_the_middle_of_its_first_word_is_let_go_at_once() {
    let proxy = Running::start(skewtap_proxy::Config {
        head_timeout: Duration::from_secs(600),
        ..config(nobody())
    });
    let mut client = proxy.connect();
    client.write_all(b"PRI * HT").unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    rest(&mut client);
    assert_eq!(proxy.stop(), []);
}

#[test]
fn a_busy_client_is_not_taken_for_an_idle_one() {
    let (address, server) = origin(1, |mut stream| {
        for _ in 0..2 {
            head(&mut stream);
            // Longer than twice what a client may lie idle.
            thread::sleep(Duration::from_millis(2_500));
            stream.write_all(OK.as_bytes()).unwrap();
        }
        expect_end(&mut stream);
    });
    let proxy = Running::start(skewtap_proxy::Config {
        idle_timeout: Duration::from_secs(1),
        ..config(address)
    });
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.write_all(GET).unwrap();
        expect(&mut client, OK);
    }
    drop(client);
    server.join().unwrap();
}

#[test]
fn the_admin_port_forwards_nothing_and_the_traffic_port_tells_nothing() {
    let (address, server) = origin(1, |mut stream| {
        let request = head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        request
    });
    let proxy = Running::start(skewtap_proxy::Config {
        admin: Some("127.0.0.1:0".parse().unwrap()),
        ..config(address)
    });
    let admin = proxy.addresses.admin.unwrap();
    for (line, status) in [
        ("GET / HTTP/1.1", "404"),
        ("GET http://a.example/ HTTP/1.1", "404"),
        ("POST /metrics HTTP/1.1", "405"),
    ] {
        let mut client = connect(admin);
        let request = format!("{line}\r\nHost: a\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let answer = head(&mut client);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{line}: {answer}"
        );
    }
    let mut client = proxy.connect();
    client
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    expect(&mut client, OK);
    let asked = server.join().unwrap().remove(0);
    assert!(asked.starts_with("GET /metrics HTTP/1.1\r\n"), "{asked}");
}
