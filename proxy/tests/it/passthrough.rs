//! What is not HTTP in the clear on connections that the kernel redirected to the proxy: carried to
//! where it was going, unseen but counted and timed.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection};
use skewtap_core::exchange::{ExchangeRecord, Outcome};
use skewtap_core::milestone::Milestone;
use skewtap_proxy::authority;
use skewtap_proxy::config::Intercept;
use skewtap_proxy::tls::TlsSettings;

use crate::harness::{PATIENCE, Running, assert_arrived, connect, timed_write};
use crate::pki::{Pki, Tls, tls_client};
use crate::redirected::{SERVERS, connect_to, in_own_network, redirect, transparent};
use crate::wire::{exactly, expect, expect_end, head, rest};

const GET: &str = "GET /x HTTP/1.1\r\nHost: named.example\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Starts a proxy, and redirects to it.
fn redirecting(config: skewtap_proxy::Config) -> Running {
    let proxy = Running::start(config);
    redirect(true, [0, 1].map(|at: usize| proxy.addresses.all[at].port()));
    proxy
}

fn plain() -> Running {
    redirecting(transparent(&["127.0.0.1:0", "[::1]:0"]))
}

/// Serves one connection at `at`, in a thread that gives what the closure gives.
fn server<T: Send + 'static>(
    at: &str,
    serve: impl FnOnce(&mut TcpStream) -> T + Send + 'static,
) -> JoinHandle<T> {
    let listener = TcpListener::bind(at).unwrap();
    thread::spawn(move || serve(&mut accept(&listener)))
}

fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn tls_server(at: &str, pki: &Pki) -> JoinHandle<String> {
    let config = Arc::new(pki.server_config("named.example"));
    server(at, move |stream| {
        let session = ServerConnection::new(config).unwrap();
        let mut stream = Tls::new(session, stream.try_clone().unwrap());
        let request = head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        request
    })
}

/// What a client of TLS sends first that wants to speak to `name`.
fn client_hello(name: ServerName<'static>) -> Vec<u8> {
    let config = Pki::new().trusted().offering(&[]);
    let mut session = ClientConnection::new(config, name).unwrap();
    let mut hello = Vec::new();
    session.write_tls(&mut hello).unwrap();
    hello
}

fn named_hello() -> Vec<u8> {
    client_hello("named.example".try_into().unwrap())
}

/// Asserts of a record what is so of all that is carried.
#[track_caller]
fn assert_carried(record: &ExchangeRecord, scheme: &str, authority: &str, server: &str) {
    assert_eq!(record.outcome, Outcome::Upgraded);
    assert_eq!(
        (record.method.as_str(), record.path.as_str()),
        ("_OTHER", "")
    );
    assert_eq!((record.scheme.as_str(), record.status), (scheme, None));
    assert_eq!(record.authority, authority);
    assert_eq!(record.up.as_ref().unwrap().peer, server);
    for milestone in [
        Milestone::DownConnected,
        Milestone::UpConnectStart,
        Milestone::UpConnected,
        Milestone::DownTunnelFirst,
        Milestone::UpTunnelLast,
        Milestone::UpFin,
    ] {
        assert!(record.milestones.best(milestone).is_some(), "{milestone}");
    }
    for milestone in [Milestone::DownRequestFirst, Milestone::DownResponseFirst] {
        assert_eq!(record.milestones.best(milestone), None, "{milestone}");
    }
}

#[test]
fn tls_reaches_the_server_that_was_meant_and_its_certificate_the_client_needs_root() {
    let name = "tls_reaches_the_server_that_was_meant_and_its_certificate_the_client_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let (pki, proxy) = (Pki::new(), plain());
        for at in SERVERS {
            let serving = tls_server(at, &pki);
            let mut client = tls_client(connect_to(at), &pki, "named.example");
            client.write_all(GET.as_bytes()).unwrap();
            expect(&mut client, OK);
            expect_end(&mut client);
            assert_eq!(serving.join().unwrap(), GET);
            drop(client);
            assert_carried(&proxy.record(), "tls", "named.example:9000", at);
        }
        assert_eq!(proxy.stop(), []);
    });
}

#[test]
fn what_is_carried_is_counted_and_timed_and_each_half_closes_by_itself_needs_root() {
    let name = "what_is_carried_is_counted_and_timed_and_each_half_closes_by_itself_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let hello = named_hello();
        let (proxy, sent) = (plain(), hello.clone());
        let serving = server(SERVERS[0], move |stream| {
            assert_eq!(exactly(stream, sent.len()), sent);
            let first = timed_write(stream, b"wor");
            expect(stream, "more");
            expect_end(stream);
            (first, timed_write(stream, b"ld!"))
        });
        let mut client = connect_to(SERVERS[0]);
        let first = timed_write(&mut client, &hello);
        expect(&mut client, "wor");
        let last = timed_write(&mut client, b"more");
        client.shutdown(Shutdown::Write).unwrap();
        expect(&mut client, "ld!");
        expect_end(&mut client);
        let (answer_first, answer_last) = serving.join().unwrap();
        let record = proxy.record();
        assert_carried(&record, "tls", "named.example:9000", SERVERS[0]);
        assert_eq!(record.request_bytes, Some(hello.len() as i64 + 4));
        assert_eq!(record.response_bytes, Some(6));
        assert_arrived(&record, Milestone::DownTunnelFirst, first);
        assert_arrived(&record, Milestone::DownTunnelLast, last);
        assert_arrived(&record, Milestone::UpTunnelFirst, answer_first);
        assert_arrived(&record, Milestone::UpTunnelLast, answer_last);
        assert_eq!(proxy.stop(), []);
    });
}

#[test]
fn a_handshake_without_a_name_is_known_by_its_address_needs_root() {
    let name = "a_handshake_without_a_name_is_known_by_its_address_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let proxy = plain();
        let unnamed = client_hello(IpAddr::from([192, 0, 2, 1]).into());
        // Also what begins as a handshake and is none.
        for hello in [unnamed, b"\x16\x03\x01\x00\x02\x01\x00".to_vec()] {
            let serving = server(SERVERS[0], rest);
            let mut client = connect_to(SERVERS[0]);
            client.write_all(&hello).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            expect_end(&mut client);
            assert_eq!(serving.join().unwrap(), hello);
            let record = proxy.record();
            assert_eq!(record.authority, SERVERS[0]);
            assert_eq!(
                (record.scheme.as_str(), record.outcome),
                ("tls", Outcome::Upgraded)
            );
        }
        assert_eq!(proxy.stop(), []);
    });
}

#[test]
fn a_handshake_in_pieces_still_tells_its_name_needs_root() {
    let name = "a_handshake_in_pieces_still_tells_its_name_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let (proxy, hello) = (plain(), named_hello());
        let serving = server(SERVERS[0], rest);
        let mut client = connect_to(SERVERS[0]);
        client.set_nodelay(true).unwrap();
        for piece in [&hello[..1], &hello[1..40], &hello[40..]] {
            client.write_all(piece).unwrap();
        }
        client.shutdown(Shutdown::Write).unwrap();
        expect_end(&mut client);
        assert_eq!(serving.join().unwrap(), hello);
        assert_eq!(proxy.record().authority, "named.example:9000");
        assert_eq!(proxy.stop(), []);
    });
}

#[test]
fn other_protocols_are_carried_too_needs_root() {
    let name = "other_protocols_are_carried_too_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let proxy = plain();
        for greeting in [
            "SSH-2.0-client\r\n",
            "*1\r\n$4\r\nPING\r\n",
            "\0\0\0\x08",
            "hm",
        ] {
            let serving = server(SERVERS[0], move |stream| {
                expect(stream, greeting);
                stream.write_all(b"welcome").unwrap();
                rest(stream)
            });
            let mut client = connect_to(SERVERS[0]);
            client.write_all(greeting.as_bytes()).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            expect(&mut client, "welcome");
            expect_end(&mut client);
            assert_eq!(serving.join().unwrap(), b"");
            assert_carried(&proxy.record(), "tcp", SERVERS[0], SERVERS[0]);
        }
        assert_eq!(proxy.stop(), []);
    });
}

#[test]
fn a_server_that_speaks_first_is_heard_needs_root() {
    let name = "a_server_that_speaks_first_is_heard_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let proxy = plain();
        let serving = server(SERVERS[0], |stream| {
            let greeted = timed_write(stream, b"220 mail.example\r\n");
            expect(stream, "QUIT\r\n");
            greeted
        });
        let mut client = connect_to(SERVERS[0]);
        expect(&mut client, "220 mail.example\r\n");
        let asked = timed_write(&mut client, b"QUIT\r\n");
        expect_end(&mut client);
        drop(client);
        let greeted = serving.join().unwrap();
        let record = proxy.record();
        assert_carried(&record, "tcp", SERVERS[0], SERVERS[0]);
        assert_eq!(
            (record.request_bytes, record.response_bytes),
            (Some(6), Some(18))
        );
        assert_arrived(&record, Milestone::UpTunnelFirst, greeted);
        assert_arrived(&record, Milestone::DownTunnelFirst, asked);
        assert_eq!(proxy.stop(), []);
    });
}

#[test]
fn a_client_that_takes_its_time_to_ask_is_served_as_one_that_does_not_needs_root() {
    let name = "a_client_that_takes_its_time_to_ask_is_served_as_one_that_does_not_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let (proxy, listener) = (plain(), TcpListener::bind(SERVERS[0]).unwrap());
        let (connected, is_connected) = mpsc::channel();
        let serving = thread::spawn(move || {
            let mut unused = accept(&listener);
            connected.send(()).unwrap();
            expect_end(&mut unused);
            let mut stream = accept(&listener);
            let request = head(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
            request
        });
        let mut client = connect_to(SERVERS[0]);
        is_connected.recv_timeout(PATIENCE).unwrap();
        client.write_all(GET.as_bytes()).unwrap();
        expect(&mut client, OK);
        assert!(serving.join().unwrap().starts_with("GET /x HTTP/1.1\r\n"));
        drop(client);
        let record = proxy.record();
        assert_eq!(
            (record.method.as_str(), record.outcome),
            ("GET", Outcome::Complete)
        );
        assert_eq!(proxy.stop(), []);
    });
}

#[test]
fn where_there_is_no_server_the_client_is_reset_needs_root() {
    let name = "where_there_is_no_server_the_client_is_reset_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let proxy = plain();
        let mut silent = connect_to(SERVERS[0]);
        assert_reset(&mut silent);
        let mut client = connect_to(SERVERS[0]);
        client.write_all(&named_hello()).unwrap();
        assert_reset(&mut client);
        // The proxy's own port leads nowhere either.
        let mut own = connect(proxy.addresses.traffic);
        own.write_all(&named_hello()).unwrap();
        assert_reset(&mut own);
        let outcomes: Vec<_> = (0..3).map(|_| proxy.record().outcome).collect();
        let unreachable = Outcome::UpstreamUnreachable;
        assert_eq!(outcomes, [unreachable, unreachable, Outcome::Refused]);
        assert_eq!(proxy.stop(), []);
    });
}

#[track_caller]
fn assert_reset(client: &mut TcpStream) {
    let end = client.read_to_end(&mut Vec::new());
    let reset = std::io::ErrorKind::ConnectionReset;
    assert!(
        end.as_ref().is_err_and(|error| error.kind() == reset),
        "{end:?}"
    );
}

/// A proxy that looks inside TLS to `host`.
fn intercepting(host: &str, pki: &Pki, folder: &std::path::Path) -> Running {
    authority::create(folder).unwrap();
    redirecting(skewtap_proxy::Config {
        intercept: Some(Intercept {
            hosts: vec![host.to_owned()],
            authority: folder.to_owned(),
        }),
        tls: TlsSettings {
            upstream_ca: Some(pki.roots()),
            ..TlsSettings::default()
        },
        ..transparent(&["127.0.0.1:0", "[::1]:0"])
    })
}

#[test]
fn tls_to_a_named_host_is_opened_up_and_seen_into_needs_root() {
    let name = "tls_to_a_named_host_is_opened_up_and_seen_into_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let (pki, folder) = (Pki::new(), tempfile::tempdir().unwrap());
        let proxy = intercepting("named.example", &pki, folder.path());
        let trusted = Pki::trusting(&authority::certificate_file(folder.path()));
        for at in SERVERS {
            let serving = tls_server(at, &pki);
            let mut client = trusted.connect(connect_to(at), "named.example");
            client.write_all(GET.as_bytes()).unwrap();
            expect(&mut client, OK);
            let request = serving.join().unwrap();
            assert!(request.starts_with("GET /x HTTP/1.1\r\n"), "{request}");
            drop(client);
            let record = proxy.record();
            assert_eq!(
                (record.method.as_str(), record.path.as_str()),
                ("GET", "/x")
            );
            assert_eq!(
                (record.scheme.as_str(), record.outcome),
                ("https", Outcome::Complete)
            );
            // There is no other way to it than by its address: nobody knows the name.
            assert_eq!(record.up.as_ref().unwrap().peer, at);
            for milestone in [
                Milestone::DownConnected,
                Milestone::DownTlsDone,
                Milestone::UpTlsDone,
            ] {
                assert!(record.milestones.best(milestone).is_some(), "{milestone}");
            }
        }
        assert_eq!(proxy.stop(), []);
    });
}

#[test]
fn tls_to_any_other_host_stays_shut_needs_root() {
    let name = "tls_to_any_other_host_stays_shut_needs_root";
    in_own_network(&format!("passthrough::{name}"), || {
        let (pki, folder) = (Pki::new(), tempfile::tempdir().unwrap());
        let proxy = intercepting("other.example", &pki, folder.path());
        let serving = tls_server(SERVERS[0], &pki);
        // The client sees the server's own certificate.
        let mut client = tls_client(connect_to(SERVERS[0]), &pki, "named.example");
        client.write_all(GET.as_bytes()).unwrap();
        expect(&mut client, OK);
        expect_end(&mut client);
        serving.join().unwrap();
        drop(client);
        assert_carried(&proxy.record(), "tls", "named.example:9000", SERVERS[0]);
        assert_eq!(proxy.stop(), []);
    });
}
