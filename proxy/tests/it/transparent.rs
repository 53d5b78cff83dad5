//! Connections that the kernel redirected to the proxy, in a network of the test's own.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, unshare};
use skewtap_core::endpoint::QueueOutcome;
use skewtap_core::exchange::Outcome;
use socket2::{Domain, Socket, Type};

use crate::harness::{PATIENCE, Running, config, nobody};
use crate::not_run::not_run;
use crate::wire::{exactly, expect, head};

/// Addresses of servers, which only this network has.
const SERVERS: [&str; 2] = ["192.0.2.1:9000", "[2001:db8::1]:9000"];

/// What clients mark their packets with, so that theirs are redirected and the proxy's are not.
const MARK: u32 = 7;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Runs `test` in a thread with a network of its own, or puts it down as not run.
fn in_own_network(name: &str, test: impl FnOnce() + Send + 'static) {
    let name = format!("transparent::{name}");
    let thread = thread::spawn(move || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            return not_run(&name, "needs root, for a network namespace");
        }
        for arguments in [
            "link set lo up",
            "address add 192.0.2.1/32 dev lo",
            "address add 2001:db8::1/128 dev lo nodad",
        ] {
            run(Command::new("ip").args(arguments.split(' ')), "");
        }
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a program that must succeed, in the network of the calling thread.
fn run(command: &mut Command, input: &str) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success(), "{command:?} {input}");
}

/// Redirects what goes to the servers to the proxy's ports for IPv4 and IPv6: what bears the mark,
/// or all of it.
fn redirect(marked: bool, [four, six]: [u16; 2]) {
    let which = if marked {
        format!("meta mark {MARK} ")
    } else {
        String::new()
    };
    let rules = format!(
        "table inet test {{
            chain output {{
                type nat hook output priority -100;
                {which}ip daddr 192.0.2.1 tcp dport 9000 redirect to :{four}
                {which}ip6 daddr 2001:db8::1 tcp dport 9000 redirect to :{six}
            }}
        }}"
    );
    run(Command::new("nft").args(["--file", "-"]), &rules);
}

fn transparent(listen: &[&str]) -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        listen: listen
            .iter()
            .map(|address| address.parse().unwrap())
            .collect(),
        upstream: None,
        transparent: true,
        forward: false,
        ..config(nobody())
    }
}

/// A client's connection to a server's address.
fn connect_to(server: &str) -> TcpStream {
    let server: SocketAddr = server.parse().unwrap();
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).unwrap();
    socket.set_mark(MARK).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

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
        "a_redirected_connection_reaches_the_server_that_was_meant_needs_root",
        || reaches_servers(&["127.0.0.1:0", "[::1]:0"]),
    );
}

#[test]
fn one_socket_for_ipv4_and_ipv6_does_too_needs_root() {
    in_own_network("one_socket_for_ipv4_and_ipv6_does_too_needs_root", || {
        reaches_servers(&["[::]:0"])
    });
}

#[test]
fn a_whole_url_is_left_to_the_server_needs_root() {
    let name = "a_whole_url_is_left_to_the_server_needs_root";
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
    let name = "a_client_of_the_proxy_itself_is_refused_needs_root";
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
    let name = "a_rule_that_redirects_the_proxy_too_makes_no_endless_loop_needs_root";
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
