//! HTTP on connections that the kernel redirected to the proxy.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use skewtap_core::endpoint::QueueOutcome;
use skewtap_core::exchange::Outcome;

use crate::harness::{PATIENCE, Running};
use crate::redirected::{SERVERS, connect_to, in_own_network, redirect, transparent};
use crate::wire::{exactly, expect, head};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers one request, and gives its head.
fn serve_one(at: &str) -> JoinHandle<String> {
    let listener = TcpListener::bind(at).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        request
    })
}

#[track_caller]
fn is_a_loop(client: &mut TcpStream) {
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let answer = head(client).to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 508 "), "{answer}");
    assert!(answer.contains("x-skewtap-reason: loop\r\n"), "{answer}");
    let length = answer.split("content-length: ").nth(1).unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    exactly(client, length);
}

/// Each server is reached through a proxy that listens like this.
fn reaches_servers(listen: &'static [&'static str]) {
    let proxy = Running::start(transparent(listen));
    let ports: Vec<u16> = proxy.addresses.all.iter().map(SocketAddr::port).collect();
    redirect(true, [ports[0], ports[ports.len() - 1]]);
    for server in SERVERS {
        let serving = serve_one(server);
        let mut client = connect_to(server);
        let request = "GET /x HTTP/1.1\r\nHost: named.example\r\n";
        client
            .write_all(format!("{request}\r\n").as_bytes())
            .unwrap();
        expect(&mut client, OK);
        let asked = serving.join().unwrap();
        assert!(asked.starts_with(request), "{asked}");
        // Open until then, so that its socket can be looked at.
        let record = proxy.record();
        drop(client);
        assert_eq!(record.outcome, Outcome::Complete);
        assert_eq!(record.authority, "named.example");
        assert_eq!(record.up.unwrap().peer, server);
        // The client's socket is found although it is connected to the server, not to the proxy.
        assert_eq!(record.client_queue.outcome, QueueOutcome::Read);
    }
}

#[test]
fn a_redirected_connection_reaches_the_server_that_was_meant_needs_root() {
    in_own_network(
        "transparent::a_redirected_connection_reaches_the_server_that_was_meant_needs_root",
        || reaches_servers(&["127.0.0.1:0", "[::1]:0"]),
    );
}

#[test]
fn one_socket_for_ipv4_and_ipv6_does_too_needs_root() {
    in_own_network(
        "transparent::one_socket_for_ipv4_and_ipv6_does_too_needs_root",
        || reaches_servers(&["[::]:0"]),
    );
}

#[test]
fn a_whole_url_is_left_to_the_server_needs_root() {
    let name = "transparent::a_whole_url_is_left_to_the_server_needs_root";
    in_own_network(name, || {
        let proxy = Running::start(transparent(&["127.0.0.1:0"]));
        redirect(true, [proxy.addresses.traffic.port(); 2]);
        let serving = serve_one(SERVERS[0]);
        let mut client = connect_to(SERVERS[0]);
        let line = "GET http://elsewhere.example/x HTTP/1.1\r\n";
        let request = format!("{line}Host: elsewhere.example\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        expect(&mut client, OK);
        let asked = serving.join().unwrap();
        assert!(asked.starts_with(line), "{asked}");
    });
}

#[test]
fn a_client_of_the_proxy_itself_is_refused_needs_root() {
    let name = "transparent::a_client_of_the_proxy_itself_is_refused_needs_root";
    in_own_network(name, || {
        for listen in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let proxy = Running::start(transparent(&[listen]));
            let port = proxy.addresses.traffic.port();
            is_a_loop(&mut crate::harness::connect(([127, 0, 0, 1], port).into()));
            if listen != "127.0.0.1:0" {
                // An address of this machine that is no loopback address.
                is_a_loop(&mut crate::harness::connect(([192, 0, 2, 1], port).into()));
            }
        }
    });
}

#[test]
fn a_rule_that_redirects_the_proxy_too_makes_no_endless_loop_needs_root() {
    let name = "transparent::a_rule_that_redirects_the_proxy_too_makes_no_endless_loop_needs_root";
    in_own_network(name, || {
        let proxy = Running::start(transparent(&["127.0.0.1:0", "[::1]:0"]));
        let ports = [0, 1].map(|at: usize| proxy.addresses.all[at].port());
        redirect(false, ports);
        for server in SERVERS {
            let mut client = connect_to(server);
            is_a_loop(&mut client);
            // And once more on the same connections.
            is_a_loop(&mut client);
            drop(client);
            // Its own, and the one that came back.
            let mut records = proxy.records(4);
            records.sort_by_key(|record| record.up.is_some());
            let outcomes: Vec<_> = records.iter().map(|record| record.outcome).collect();
            let (refused, complete) = (Outcome::Refused, Outcome::Complete);
            assert_eq!(outcomes, [refused, refused, complete, complete]);
        }
        assert_eq!(proxy.stop(), []);
    });
}
