//! Whatever breaks, and at whatever stage: one record says what, and what the other side did.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use skewtap_core::exchange::{ExchangeRecord, Outcome};
use skewtap_core::milestone::Milestone;
use socket2::{Domain, SockRef, Socket, Type};

use crate::harness::{PATIENCE, Running, config, nobody, origin};
use crate::metrics::{metrics, value};
use crate::wire::{exactly, expect, expect_end, head, rest};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Closes with a reset.
fn reset(stream: TcpStream) {
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

/// The only record that there is.
#[track_caller]
fn only_record(proxy: Running) -> ExchangeRecord {
    let record = proxy.record();
    assert_eq!(proxy.stop(), []);
    record
}

fn has(record: &ExchangeRecord, milestone: Milestone) -> bool {
    record.milestones.best(milestone).is_some()
}

#[test]
fn a_server_that_breaks_in_its_head_gets_502() {
    for with_reset in [false, true] {
        let (address, server) = origin(1, move |mut stream| {
            head(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Le").unwrap();
            if with_reset {
                // Otherwise the half head could be lost with the connection.
                thread::sleep(Duration::from_millis(50));
                reset(stream);
            }
        });
        let proxy = Running::start(config(address));
        let mut client = proxy.connect();
        client.write_all(GET).unwrap();
        let answer = head(&mut client);
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(answer.contains("upstream-broken"), "{answer}");
        server.join().unwrap();
        drop(client);
        let record = only_record(proxy);
        assert_eq!(record.outcome, Outcome::UpstreamBroken);
        assert!(has(&record, Milestone::UpRequestLast));
        assert!(!has(&record, Milestone::UpResponseHead));
    }
}

#[test]
fn a_server_that_resets_in_its_body_is_to_blame() {
    let part = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(part).unwrap();
        // The client's word that it has the part.
        exactly(&mut stream, 1);
        reset(stream);
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
        .unwrap();
    exactly(&mut client, part.len());
    client.write_all(b"x").unwrap();
    server.join().unwrap();
    let (Ok(_) | Err(_)) = client.read_to_end(&mut Vec::new());
    let record = only_record(proxy);
    assert_eq!(record.outcome, Outcome::UpstreamBroken);
    assert_eq!(record.status, Some(200));
    assert_eq!(record.response_bytes, None);
}

#[test]
fn a_client_that_gives_a_silent_server_up_is_gone() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        rest(&mut stream)
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    client
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    client.read(&mut [0]).unwrap_err();
    drop(client);
    assert_eq!(server.join().unwrap(), [b""]);
    let record = only_record(proxy);
    assert_eq!(record.outcome, Outcome::ClientGone);
    assert!(
        has(&record, Milestone::UpRequestLast),
        "the server was asked"
    );
    assert!(!has(&record, Milestone::UpResponseFirst), "and was silent");
}

#[test]
fn a_response_that_comes_too_late_finds_the_client_gone() {
    for with_reset in [false, true] {
        let (address, server) = origin(1, |mut stream| {
            head(&mut stream);
            let (Ok(_) | Err(_)) = stream.read(&mut [0]);
            thread::sleep(Duration::from_millis(100));
            stream.write_all(OK.as_bytes()).is_ok()
        });
        let proxy = Running::start(config(address));
        let mut client = proxy.connect();
        client.write_all(GET).unwrap();
        thread::sleep(Duration::from_millis(50));
        if with_reset {
            reset(client);
        } else {
            drop(client);
        }
        let answered = server.join().unwrap()[0];
        let record = only_record(proxy);
        assert_eq!(record.outcome, Outcome::ClientGone);
        assert_eq!(answered, !with_reset, "a reset is the server's too");
        assert_eq!(has(&record, Milestone::UpResponseLast), answered);
    }
}

/// A listener whose queue of connections is full, so that it does not answer to a further one.
fn deaf() -> (Socket, Vec<TcpStream>, SocketAddr) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    let short = Duration::from_millis(200);
    while let Ok(stream) = TcpStream::connect_timeout(&address, short) {
        queued.push(stream);
        assert!(queued.len() < 10, "the queue has no end");
    }
    (listener, queued, address)
}

#[test]
fn a_server_that_does_not_take_connections_gets_504_in_time() {
    let allowed = Duration::from_millis(400);
    let (_listener, _queued, address) = deaf();
    let proxy = Running::start(skewtap_proxy::Config {
        connect_timeout: allowed,
        ..config(address)
    });
    let mut client = proxy.connect();
    let began = Instant::now();
    client.write_all(GET).unwrap();
    let answer = head(&mut client);
    let took = began.elapsed();
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(answer.contains("upstream-connect-timeout"), "{answer}");
    assert!(took >= allowed && took < allowed * 3, "{took:?}");
    drop(client);
    let record = only_record(proxy);
    assert_eq!(record.outcome, Outcome::UpstreamUnreachable);
    assert_eq!(record.status, Some(504));
    assert_eq!(record.up, None);
}

#[test]
fn a_head_that_never_ends_is_counted_and_no_exchange() {
    let proxy = Running::start(skewtap_proxy::Config {
        admin: Some("127.0.0.1:0".parse().unwrap()),
        head_timeout: Duration::from_millis(200),
        ..config(nobody())
    });
    let half = b"GET / HTTP/1.1\r\nHost:";
    let mut closes = proxy.connect();
    closes.write_all(half).unwrap();
    drop(closes);
    let mut stays = proxy.connect();
    stays.write_all(half).unwrap();
    expect_end(&mut stays);
    let admin = proxy.addresses.admin.unwrap();
    let began = Instant::now();
    let cut_short = || value(&metrics(admin), "skewtap_proxy_requests_cut_short_total");
    while cut_short() < 2.0 {
        assert!(began.elapsed() < PATIENCE);
    }
    assert_eq!(cut_short(), 2.0);
    assert_eq!(proxy.stop(), []);
}

#[test]
fn an_exchange_under_way_ends_in_peace_when_the_proxy_stops() {
    let (asked, was_asked) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let (address, server) = origin(1, move |mut stream| {
        head(&mut stream);
        asked.send(()).unwrap();
        may_go.recv().unwrap();
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(config(address));
    let traffic = proxy.addresses.traffic;
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    was_asked.recv().unwrap();
    let stopping = thread::spawn(move || proxy.stop());
    // From here on nobody is let in.
    let began = Instant::now();
    while TcpStream::connect(traffic).is_ok() {
        assert!(began.elapsed() < PATIENCE);
    }
    go.send(()).unwrap();
    let answer = head(&mut client);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    expect(&mut client, "ok");
    expect_end(&mut client);
    server.join().unwrap();
    let records = stopping.join().unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].outcome, Outcome::Complete);
}

#[test]
fn many_clients_at_once_are_all_let_in_without_a_second_attempt() {
    const CLIENTS: usize = 300;
    let proxy = Running::start(config(nobody()));
    let began = Instant::now();
    let clients: Vec<_> = (0..CLIENTS).map(|_| proxy.connect()).collect();
    // A connection that finds no room is tried again after a second.
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    drop(clients);
    assert_eq!(proxy.stop(), []);
}
