//! Requests for whole URLs.

use std::io::Write as _;

use skewtap_core::exchange::Outcome;

use crate::harness::{CONTEXT, Running, config, nobody, origin};
use crate::wire::{expect, expect_end, head};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn forward_only() -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        upstream: None,
        ..config(nobody())
    }
}

#[test]
fn a_whole_url_is_sent_to_its_host_as_a_path() {
    let (address, server) = origin(1, |mut stream| {
        let request = head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        request
    });
    let proxy = Running::start(forward_only());
    let mut client = proxy.connect();
    let request = format!(
        "GET http://{address}/a?b HTTP/1.1\r\nHost: {address}\r\nProxy-Connection: Keep-Alive\r\n\
         {CONTEXT}X-Last: 1\r\n\r\n"
    );
    client.write_all(request.as_bytes()).unwrap();
    expect(&mut client, OK);
    assert_eq!(
        server.join().unwrap(),
        [format!(
            "GET /a?b HTTP/1.1\r\nHost: {address}\r\n{CONTEXT}X-Last: 1\r\n\r\n"
        )]
    );
    let record = proxy.record();
    assert_eq!(record.authority, address.to_string());
    assert_eq!(record.path, "/a");
    assert_eq!(record.up.unwrap().peer, address.to_string());
}

#[test]
fn one_client_may_ask_several_hosts_in_turn() {
    let serve = |mut stream: std::net::TcpStream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
    };
    let (one, first) = origin(1, serve);
    let (two, second) = origin(1, serve);
    let proxy = Running::start(forward_only());
    let mut client = proxy.connect();
    for address in [one, two] {
        let request = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        expect(&mut client, OK);
    }
    drop(client);
    first.join().unwrap();
    second.join().unwrap();
    let peers: Vec<_> = proxy
        .records(2)
        .into_iter()
        .map(|r| r.up.unwrap().peer)
        .collect();
    assert_eq!(peers, [one.to_string(), two.to_string()]);
}

/// Asserts that a request with this first line is refused, with its reason and a record.
#[track_caller]
fn refused(settings: skewtap_proxy::Config, line: &str, status: &str, reason: &str) {
    let proxy = Running::start(settings);
    let mut client = proxy.connect();
    let line = line.replace("OWN", &proxy.addresses.traffic.to_string());
    let request = format!("{line}\r\nHost: a\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let answer = head(&mut client);
    let first = format!("HTTP/1.1 {status} ");
    assert!(answer.starts_with(&first), "{answer}");
    let because = format!("x-skewtap-reason: {reason}\r\n");
    assert!(answer.contains(&because), "{answer}");
    drop(client);
    let record = proxy.record();
    assert_eq!(record.outcome, Outcome::Refused);
    assert_eq!(record.status, Some(status.parse().unwrap()));
}

#[test]
fn a_request_to_the_proxy_itself_is_a_loop() {
    refused(forward_only(), "GET http://OWN/ HTTP/1.1", "508", "loop");
}

#[test]
fn without_forwarding_other_hosts_are_forbidden() {
    let closed = skewtap_proxy::Config {
        forward: false,
        ..config(nobody())
    };
    refused(closed, "GET http://a/ HTTP/1.1", "403", "forwarding-off");
}

#[test]
fn without_an_upstream_a_plain_path_leads_nowhere() {
    refused(forward_only(), "GET / HTTP/1.1", "400", "no-upstream");
}

#[test]
fn another_scheme_is_not_implemented() {
    let ftp = "GET ftp://a/ HTTP/1.1";
    refused(forward_only(), ftp, "501", "scheme-unsupported");
}

#[test]
fn a_tunnel_to_the_proxy_itself_is_a_loop() {
    refused(forward_only(), "CONNECT OWN HTTP/1.1", "508", "loop");
}

#[test]
fn a_tunnel_needs_a_port() {
    refused(forward_only(), "CONNECT a HTTP/1.1", "400", "no-port");
}

#[test]
fn without_forwarding_there_are_no_tunnels() {
    let closed = skewtap_proxy::Config {
        forward: false,
        ..config(nobody())
    };
    refused(closed, "CONNECT a:443 HTTP/1.1", "403", "forwarding-off");
}
