//! Whatever goes wrong, the client gets an honest answer and there is one record.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use skewtap_core::exchange::{ExchangeRecord, Outcome};
use skewtap_core::milestone::Milestone;
use socket2::SockRef;

use crate::harness::{Running, config, nobody, origin};
use crate::wire::{exactly, head, rest};

const GET: &[u8] = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

/// Closes with a reset.
fn reset(stream: &TcpStream) {
    SockRef::from(stream)
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
}

/// The only record that there is.
#[track_caller]
fn only_record(proxy: Running) -> ExchangeRecord {
    let record = proxy.record();
    assert_eq!(proxy.stop(), []);
    record
}

#[track_caller]
fn answer_has(client: &mut TcpStream, status: &str, reason: &str) {
    let answer = head(client);
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{answer}"
    );
    assert!(
        answer.contains(&format!("x-skewtap-reason: {reason}\r\n")),
        "{answer}"
    );
}

#[test]
fn a_dead_upstream_gets_502_and_a_record() {
    let proxy = Running::start(config(nobody()));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    answer_has(&mut client, "502", "upstream-refused");
    drop(client);
    let record = only_record(proxy);
    assert_eq!(record.outcome, Outcome::UpstreamUnreachable);
    assert_eq!(record.status, Some(502));
    assert_eq!(record.up, None);
    assert!(
        record
            .milestones
            .best(Milestone::DownResponseLast)
            .is_some()
    );
}

#[test]
fn after_a_502_the_connection_can_be_used_again() {
    let proxy = Running::start(config(nobody()));
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.write_all(GET).unwrap();
        let answer = head(&mut client);
        let length = answer.split("content-length: ").nth(1).unwrap();
        let length = length.split("\r\n").next().unwrap().parse().unwrap();
        exactly(&mut client, length);
    }
    drop(client);
    assert_eq!(proxy.records(2).len(), 2);
}

#[test]
fn a_name_without_address_gets_502() {
    let mut settings = config(nobody());
    settings.upstream = Some("http://nothing.invalid".parse().unwrap());
    let proxy = Running::start(settings);
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    answer_has(&mut client, "502", "upstream-name");
    drop(client);
    assert_eq!(only_record(proxy).outcome, Outcome::UpstreamUnreachable);
}

#[test]
fn a_server_that_closes_without_an_answer_gets_502() {
    for with_reset in [false, true] {
        let (address, server) = origin(1, move |mut stream| {
            head(&mut stream);
            if with_reset {
                reset(&stream);
            }
        });
        let proxy = Running::start(config(address));
        let mut client = proxy.connect();
        client.write_all(GET).unwrap();
        answer_has(&mut client, "502", "upstream-broken");
        server.join().unwrap();
        drop(client);
        assert_eq!(only_record(proxy).outcome, Outcome::UpstreamBroken);
    }
}

#[test]
fn a_server_that_does_not_speak_http_gets_502() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    answer_has(&mut client, "502", "upstream-malformed");
    server.join().unwrap();
    drop(client);
    assert_eq!(only_record(proxy).outcome, Outcome::UpstreamMalformed);
}

#[test]
fn a_response_cut_short_is_cut_short_for_the_client_too() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            .unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    let got = rest(&mut client);
    assert!(got.ends_with(b"\r\n\r\nhalf"));
    server.join().unwrap();
    let record = only_record(proxy);
    assert_eq!(record.outcome, Outcome::UpstreamBroken);
    assert_eq!(record.status, Some(200));
    assert_eq!(record.response_bytes, None);
    assert_eq!(record.milestones.best(Milestone::DownResponseLast), None);
}

#[test]
fn a_broken_chunk_is_the_servers_fault() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        let response =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nnonsense\r\n";
        stream.write_all(response).unwrap();
        // Wait for the proxy to give up.
        let (Ok(_) | Err(_)) = stream.read(&mut [0]);
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    let (Ok(_) | Err(_)) = client.read_to_end(&mut Vec::new());
    server.join().unwrap();
    assert_eq!(only_record(proxy).outcome, Outcome::UpstreamMalformed);
}

#[test]
fn a_client_that_vanishes_while_it_waits_is_gone() {
    for with_reset in [false, true] {
        let (address, server) = origin(1, |mut stream| {
            head(&mut stream);
            // The client's end is passed on.
            let end = stream.read(&mut [0]);
            end.map_err(|error| error.kind())
        });
        let proxy = Running::start(config(address));
        let mut client = proxy.connect();
        client.write_all(GET).unwrap();
        if with_reset {
            reset(&client);
        }
        drop(client);
        let end = if with_reset {
            Err(ErrorKind::ConnectionReset)
        } else {
            Ok(0)
        };
        assert_eq!(server.join().unwrap(), [end]);
        assert_eq!(only_record(proxy).outcome, Outcome::ClientGone);
    }
}

#[test]
fn a_client_that_vanishes_in_its_body_is_gone() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        exactly(&mut stream, 4);
        rest(&mut stream)
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf")
        .unwrap();
    drop(client);
    assert_eq!(server.join().unwrap(), [Vec::<u8>::new()]);
    let record = only_record(proxy);
    assert_eq!(record.outcome, Outcome::ClientGone);
    assert_eq!(record.request_bytes, None);
}

#[test]
fn a_client_that_vanishes_in_the_response_is_gone() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            .unwrap();
        let piece = vec![b'x'; 65_536];
        while stream.write_all(&piece).is_ok() {}
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    exactly(&mut client, 100_000);
    drop(client);
    server.join().unwrap();
    let record = only_record(proxy);
    assert_eq!(record.outcome, Outcome::ClientGone);
    assert_eq!(record.status, Some(200));
}

#[test]
fn a_client_that_closes_its_half_still_gets_its_response() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        let left = rest(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .unwrap();
        left
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(rest(&mut client).ends_with(b"\r\n\r\nok"));
    assert_eq!(server.join().unwrap(), [Vec::<u8>::new()]);
    assert_eq!(only_record(proxy).outcome, Outcome::Complete);
}

#[test]
fn what_is_not_http_gets_the_protocols_own_error() {
    let proxy = Running::start(config(nobody()));
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(70_000));
    for (request, status) in [
        ("nonsense\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n", "400"),
        (&long, "431"),
    ] {
        let mut client = proxy.connect();
        // The proxy may close before it has all of it.
        let (Ok(()) | Err(_)) = client.write_all(request.as_bytes());
        let mut got = Vec::new();
        let (Ok(_) | Err(_)) = client.read_to_end(&mut got);
        let got = String::from_utf8(got).unwrap();
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{got}");
    }
    assert_eq!(proxy.stop(), []);
}

#[test]
fn stopping_closes_what_is_open_with_a_record() {
    let (asked, was_asked) = std::sync::mpsc::channel();
    let (address, server) = origin(1, move |mut stream| {
        head(&mut stream);
        asked.send(()).unwrap();
        rest(&mut stream)
    });
    let proxy = Running::start(skewtap_proxy::Config {
        drain_timeout: std::time::Duration::from_millis(200),
        ..config(address)
    });
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    was_asked.recv().unwrap();
    let records = proxy.stop();
    assert_eq!(server.join().unwrap(), [Vec::<u8>::new()]);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].outcome, Outcome::ProxyStopped);
}
