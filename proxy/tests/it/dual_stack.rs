//! IPv6, and several addresses.

use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use skewtap_core::exchange::ExchangeRecord;

use crate::harness::{PATIENCE, Running, config, connect, nobody};
use crate::not_run::not_run;
use crate::wire::{expect, head};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Whether this machine has IPv6; if not, `test` is put down as not run.
fn has_ipv6(test: &str) -> bool {
    let has = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    if !has {
        not_run(
            &format!("dual_stack::{test}"),
            "needs IPv6 on the loopback interface",
        );
    }
    has
}

/// Answers one request in each of so many connections.
fn origin_at(at: &str, connections: usize) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(at).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = thread::spawn(move || {
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            head(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    (address, serving)
}

fn listening(listen: &[SocketAddr], upstream: SocketAddr) -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        listen: listen.to_vec(),
        ..config(upstream)
    }
}

/// The record of an exchange with the proxy at `address`.
fn exchange(proxy: &Running, address: SocketAddr) -> ExchangeRecord {
    let mut client = connect(address);
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    let own = client.local_addr().unwrap();
    drop(client);
    let record = proxy.record();
    // As the client knows them, whatever kind of socket took the connection.
    assert_eq!(
        (&record.down.peer, &record.down.local),
        (&own.to_string(), &address.to_string())
    );
    record
}

#[test]
fn both_legs_speak_ipv6() {
    if !has_ipv6("both_legs_speak_ipv6") {
        return;
    }
    let (upstream, server) = origin_at("[::1]:0", 1);
    let proxy = Running::start(listening(&["[::1]:0".parse().unwrap()], upstream));
    let record = exchange(&proxy, proxy.addresses.traffic);
    assert!(
        record.down.peer.starts_with("[::1]:"),
        "{}",
        record.down.peer
    );
    assert_eq!(record.up.unwrap().peer, upstream.to_string());
    server.join().unwrap();
}

#[test]
fn all_of_ipv6_takes_ipv4_as_well() {
    if !has_ipv6("all_of_ipv6_takes_ipv4_as_well") {
        return;
    }
    let (upstream, server) = origin_at("127.0.0.1:0", 2);
    let proxy = Running::start(listening(&["[::]:0".parse().unwrap()], upstream));
    let port = proxy.addresses.traffic.port();
    exchange(&proxy, (Ipv4Addr::LOCALHOST, port).into());
    exchange(&proxy, (Ipv6Addr::LOCALHOST, port).into());
    server.join().unwrap();
}

#[test]
fn the_same_port_can_be_had_of_both_by_name() {
    if !has_ipv6("the_same_port_can_be_had_of_both_by_name") {
        return;
    }
    let (upstream, server) = origin_at("127.0.0.1:0", 2);
    let port = nobody().port();
    let both: [SocketAddr; 2] = [
        (Ipv6Addr::UNSPECIFIED, port).into(),
        (Ipv4Addr::UNSPECIFIED, port).into(),
    ];
    let proxy = Running::start(listening(&both, upstream));
    assert_eq!(proxy.addresses.all, both);
    exchange(&proxy, (Ipv4Addr::LOCALHOST, port).into());
    exchange(&proxy, (Ipv6Addr::LOCALHOST, port).into());
    server.join().unwrap();
}

#[test]
fn every_address_is_served_by_every_worker() {
    let (upstream, server) = origin_at("127.0.0.1:0", 12);
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let proxy = Running::start(skewtap_proxy::Config {
        workers: 2,
        ..listening(&[any, any, any], upstream)
    });
    for _ in 0..4 {
        for address in &proxy.addresses.all {
            exchange(&proxy, *address);
        }
    }
    server.join().unwrap();
}

#[test]
fn a_request_to_any_of_its_own_addresses_is_a_loop() {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let forward = skewtap_proxy::Config {
        upstream: None,
        ..listening(&[any, "0.0.0.0:0".parse().unwrap()], nobody())
    };
    let proxy = Running::start(forward);
    let ports = proxy.addresses.all.iter().map(SocketAddr::port);
    for host in ports.map(|port| format!("127.0.0.1:{port}")) {
        let mut client = proxy.connect();
        let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        expect(&mut client, "HTTP/1.1 508 ");
    }
}
