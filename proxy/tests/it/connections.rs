//! One connection to the server for each of the client's, opened and closed together.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use skewtap_core::exchange::Outcome;

use crate::harness::{Running, config, connect, nobody, origin};
use crate::wire::{expect, expect_end, head, rest};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_client_connection_alone_opens_none_to_the_server() {
    let proxy = Running::start(config(nobody()));
    let client = proxy.connect();
    drop(client);
    assert_eq!(proxy.stop(), []);
}

#[test]
fn every_client_has_a_connection_of_its_own() {
    let (address, server) = origin(2, |mut stream| {
        let port = stream.peer_addr().unwrap().port();
        for _ in 0..3 {
            head(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
        }
        expect_end(&mut stream);
        port
    });
    let proxy = Running::start(config(address));
    for _ in 0..2 {
        let mut client = proxy.connect();
        for _ in 0..3 {
            client.write_all(GET).unwrap();
            expect(&mut client, OK);
        }
    }
    let ports = server.join().unwrap();
    let records = proxy.records(6);
    for (record, port) in records.iter().zip([&ports[..1]; 3].concat()) {
        assert!(
            record
                .up
                .as_ref()
                .unwrap()
                .local
                .ends_with(&format!(":{port}"))
        );
    }
}

#[test]
fn when_an_idle_server_closes_so_does_the_proxy() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    server.join().unwrap();
    expect_end(&mut client);
}

#[test]
fn a_response_with_close_closes_both_and_stays_as_it_is() {
    let close = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let (address, server) = origin(1, move |mut stream| {
        head(&mut stream);
        stream.write_all(close.as_bytes()).unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    assert_eq!(String::from_utf8(rest(&mut client)).unwrap(), close);
    server.join().unwrap();
}

#[test]
fn a_request_with_close_reaches_the_server_and_closes_both() {
    let (address, server) = origin(1, move |mut stream| {
        let request = head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
        request
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let got = head(&mut client);
    assert!(
        got.starts_with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"),
        "{got}"
    );
    expect(&mut client, "ok");
    // A server that stays in spite of it is seen to stay.
    drop(client);
    let request = server.join().unwrap().remove(0);
    assert!(request.contains("Connection: close\r\n"), "{request}");
}

#[test]
fn many_clients_at_once_are_served_by_several_workers() {
    const CLIENTS: usize = 40;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            thread::spawn(move || {
                for _ in 0..5 {
                    let request = head(&mut stream);
                    let name = request.split(' ').nth(1).unwrap();
                    let length = name.len();
                    let response =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}");
                    stream.write_all(response.as_bytes()).unwrap();
                }
            });
        }
    });
    let proxy = Running::start(skewtap_proxy::Config {
        workers: 2,
        max_connections: 8,
        ..config(address)
    });
    let (done, all_done) = mpsc::channel();
    for client in 0..CLIENTS {
        let (traffic, done) = (proxy.addresses.traffic, done.clone());
        thread::spawn(move || {
            let mut stream = connect(traffic);
            for number in 0..5 {
                let name = format!("/{client}/{number}");
                let request = format!("GET {name} HTTP/1.1\r\nHost: a\r\n\r\n");
                stream.write_all(request.as_bytes()).unwrap();
                assert!(head(&mut stream).starts_with("HTTP/1.1 200 OK\r\n"));
                expect(&mut stream, &name);
            }
            done.send(()).unwrap();
        });
    }
    drop(done);
    assert_eq!(all_done.iter().count(), CLIENTS);
    let records = proxy.records(CLIENTS * 5);
    assert!(
        records
            .iter()
            .all(|record| record.outcome == Outcome::Complete)
    );
    let mut paths: Vec<_> = records.iter().map(|record| record.path.clone()).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), CLIENTS * 5);
}

#[test]
fn a_head_that_never_ends_is_given_up() {
    let proxy = Running::start(skewtap_proxy::Config {
        head_timeout: Duration::from_millis(200),
        ..config(nobody())
    });
    // A connection without a request may stay.
    let mut idle = proxy.connect();
    let mut slow = proxy.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    expect_end(&mut slow);
    idle.write_all(GET).unwrap();
    assert!(head(&mut idle).starts_with("HTTP/1.1 502 "));
}

#[test]
fn a_client_that_stays_idle_too_long_is_closed() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(skewtap_proxy::Config {
        idle_timeout: Duration::from_secs(1),
        ..config(address)
    });
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    let began = std::time::Instant::now();
    expect_end(&mut client);
    assert!(began.elapsed() >= Duration::from_millis(990));
    server.join().unwrap();
}

#[test]
fn a_taken_port_is_named_with_the_flag_that_changes_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (settings, flag) in [
        (
            skewtap_proxy::Config {
                listen: vec![address],
                ..config(nobody())
            },
            "--listen",
        ),
        (
            skewtap_proxy::Config {
                admin: Some(address),
                ..config(nobody())
            },
            "--admin",
        ),
    ] {
        let Err(error) = runtime.block_on(skewtap_proxy::Proxy::bind(settings)) else {
            panic!("the port was taken");
        };
        let text = error.to_string();
        assert!(
            text.contains(&address.to_string()) && text.contains(flag),
            "{text}"
        );
    }
}
