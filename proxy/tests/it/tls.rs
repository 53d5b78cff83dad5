//! TLS on either leg: what goes through, what is stamped, and what is refused.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use skewtap_core::clock::Source;
use skewtap_core::exchange::{ExchangeRecord, Outcome};
use skewtap_core::milestone::Milestone;
use skewtap_proxy::authority;
use skewtap_proxy::config::Intercept;
use skewtap_proxy::tls::{Identity, TlsSettings};

use crate::harness::{Running, config, nobody, now_ns, origin, stamp};
use crate::pki::{Issued, Pki, Tls, TlsClient, tls_client};
use crate::wire::{expect, expect_end, head, rest};

const GET: &[u8] = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A proxy that speaks TLS to its clients, with an upstream that does not.
fn downstream(upstream: SocketAddr, pki: &Pki) -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        tls: TlsSettings {
            server: Some(pki.identity("localhost")),
            ..TlsSettings::default()
        },
        ..config(upstream)
    }
}

/// A proxy whose upstream speaks TLS.
fn upstream(address: SocketAddr, pki: &Pki) -> skewtap_proxy::Config {
    let url = format!("https://localhost:{}", address.port());
    skewtap_proxy::Config {
        upstream: Some(url.parse().unwrap()),
        tls: TlsSettings {
            upstream_ca: Some(pki.roots()),
            ..TlsSettings::default()
        },
        ..config(nobody())
    }
}

/// A server that speaks TLS, one connection.
fn tls_origin<T: Send + 'static>(
    settings: ServerConfig,
    mut serve: impl FnMut(&mut Tls<ServerConnection>) -> T + Send + 'static,
) -> (SocketAddr, thread::JoinHandle<Vec<T>>) {
    let settings = std::sync::Arc::new(settings);
    origin(1, move |stream| {
        let session = ServerConnection::new(settings.clone()).unwrap();
        let mut stream = Tls::new(session, stream);
        let served = serve(&mut stream);
        stream.conn.send_close_notify();
        let (Ok(_) | Err(_)) = stream.conn.complete_io(&mut stream.sock);
        served
    })
}

/// Asserts that a stamp of the kernel lies between two instants.
#[track_caller]
fn assert_between(record: &ExchangeRecord, milestone: Milestone, from: i64, to: i64) {
    let stamp = stamp(record, milestone, Source::Kernel);
    assert!(
        from <= stamp.lo() && stamp.hi() <= to,
        "{milestone}: [{}, {}] is not within [{from}, {to}]",
        stamp.lo(),
        stamp.hi()
    );
}

#[test]
fn a_client_under_tls_is_served_and_its_records_are_stamped() {
    let pki = Pki::new();
    let (address, server) = origin(1, |mut stream| {
        for _ in 0..2 {
            head(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let proxy = Running::start(downstream(address, &pki));
    let began = now_ns();
    let mut client = tls_client(proxy.connect(), &pki, "localhost");
    client.conn.complete_io(&mut client.sock).unwrap();
    for number in 0..2 {
        let before = now_ns();
        client.write_all(GET).unwrap();
        expect(&mut client, OK);
        let after = now_ns();
        if number == 1 {
            drop(client);
            let record = &proxy.records(2)[1];
            assert_between(record, Milestone::DownRequestFirst, before, after);
            assert_between(record, Milestone::DownRequestLast, before, after);
            assert_eq!(record.milestones.best(Milestone::DownTlsDone), None);
            assert_eq!(record.scheme, "https");
            assert_eq!(record.request_bytes, Some(GET.len() as i64));
            assert_eq!(record.response_bytes, Some(OK.len() as i64));
            assert_eq!(record.outcome, Outcome::Complete);
            break;
        }
    }
    server.join().unwrap();
    let mut client = tls_client(proxy.connect(), &pki, "localhost");
    client.conn.complete_io(&mut client.sock).unwrap();
    // Session tickets come once the proxy has the last message of the handshake.
    client.conn.read_tls(&mut client.sock).unwrap();
    client.conn.process_new_packets().unwrap();
    let ready = now_ns();
    client.write_all(GET).unwrap();
    assert!(head(&mut client).starts_with("HTTP/1.1 502 "));
    drop(client);
    let record = proxy.record();
    assert_between(&record, Milestone::DownTlsDone, began, ready);
}

#[test]
fn a_record_that_comes_in_halves_counts_from_its_last_byte() {
    const PAUSE: Duration = Duration::from_millis(120);
    let pki = Pki::new();
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(downstream(address, &pki));
    let mut client = tls_client(proxy.connect(), &pki, "localhost");
    client.conn.complete_io(&mut client.sock).unwrap();
    client.conn.writer().write_all(GET).unwrap();
    let mut ciphertext = Vec::new();
    client.conn.write_tls(&mut ciphertext).unwrap();
    let (one, two) = ciphertext.split_at(ciphertext.len() / 2);
    client.sock.write_all(one).unwrap();
    thread::sleep(PAUSE);
    let before = now_ns();
    client.sock.write_all(two).unwrap();
    expect(&mut client, OK);
    let after = now_ns();
    server.join().unwrap();
    drop(client);
    let record = proxy.record();
    assert_between(&record, Milestone::DownRequestFirst, before, after);
    assert_between(&record, Milestone::DownRequestLast, before, after);
}

#[test]
fn a_client_that_reads_late_under_tls_is_seen_to() {
    const LATE: Duration = Duration::from_millis(150);
    let pki = Pki::new();
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(downstream(address, &pki));
    let mut client = tls_client(proxy.connect(), &pki, "localhost");
    client.write_all(GET).unwrap();
    thread::sleep(LATE);
    let before = now_ns();
    expect(&mut client, OK);
    let after = now_ns();
    let record = proxy.record();
    drop(client);
    server.join().unwrap();
    let read = record.milestones.best(Milestone::ClientPickedUp).unwrap();
    assert!(
        read.lo() <= after && before <= read.hi() && read.lo() > before - 100_000_000,
        "picked up in [{}, {}], read in [{before}, {after}]",
        read.lo(),
        read.hi()
    );
}

#[test]
fn a_server_under_tls_is_asked_and_its_answer_stamped() {
    const THINKS: Duration = Duration::from_millis(60);
    let pki = Pki::new();
    let settings = pki.server_config("localhost");
    let (address, server) = tls_origin(settings, |stream| {
        let request = head(stream);
        thread::sleep(THINKS);
        let before = now_ns();
        stream.write_all(OK.as_bytes()).unwrap();
        expect_end(stream);
        (request, before)
    });
    let proxy = Running::start(upstream(address, &pki));
    let mut client = proxy.connect();
    let began = now_ns();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    let after = now_ns();
    drop(client);
    let (request, answered) = server.join().unwrap().remove(0);
    assert!(
        request.starts_with("GET /x HTTP/1.1\r\nHost: localhost\r\n"),
        "{request}"
    );
    let record = proxy.record();
    assert_eq!(record.scheme, "http");
    assert_between(&record, Milestone::UpResponseFirst, answered, after);
    assert_between(&record, Milestone::UpResponseLast, answered, after);
    let done = record.milestones.best(Milestone::UpTlsDone).unwrap();
    let asked = record.milestones.best(Milestone::UpRequestFirst).unwrap();
    assert!(began <= done.lo() && done.hi() <= asked.hi() && asked.hi() < answered);
}

#[test]
fn a_server_that_nobody_vouches_for_is_not_asked() {
    let (pki, other) = (Pki::new(), Pki::new());
    let (address, server) = origin(1, {
        let settings = std::sync::Arc::new(other.server_config("localhost"));
        move |mut stream| {
            let mut session = ServerConnection::new(settings.clone()).unwrap();
            session.complete_io(&mut stream).is_err()
        }
    });
    let proxy = Running::start(upstream(address, &pki));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    let answer = head(&mut client);
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        answer.contains("x-skewtap-reason: upstream-tls\r\n"),
        "{answer}"
    );
    assert_eq!(server.join().unwrap(), [true]);
    drop(client);
    assert_eq!(proxy.record().outcome, Outcome::UpstreamUnreachable);
    assert_eq!(proxy.stop(), []);
}

#[test]
fn a_server_that_wants_a_certificate_is_shown_one() {
    let pki = Pki::new();
    let mut roots = RootCertStore::empty();
    roots.add(pki.root().clone()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let Issued { chain, key } = pki.issue("localhost");
    let settings = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(chain, key)
        .unwrap();
    let (address, server) = tls_origin(settings, |stream| {
        head(stream);
        stream.write_all(OK.as_bytes()).unwrap();
        stream.conn.peer_certificates().unwrap()[0].clone()
    });
    let mut settings = upstream(address, &pki);
    settings.tls.upstream_identity = Some(pki.identity("client.example"));
    let shown = pki.certificate_of(settings.tls.upstream_identity.as_ref().unwrap());
    let proxy = Running::start(settings);
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    assert_eq!(server.join().unwrap(), [shown]);
}

#[test]
fn long_bodies_pass_under_tls_on_both_legs_unchanged() {
    const LENGTH: usize = 3_000_000;
    let pki = Pki::new();
    let body: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
    let sent = body.clone();
    let (address, server) = tls_origin(pki.server_config("localhost"), move |stream| {
        head(stream);
        let got = crate::wire::exactly(stream, LENGTH);
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
        stream.write_all(response.as_bytes()).unwrap();
        stream.write_all(&got).unwrap();
    });
    let mut settings = upstream(address, &pki);
    settings.tls.server = Some(pki.identity("localhost"));
    let proxy = Running::start(settings);
    let mut client = tls_client(proxy.connect(), &pki, "localhost");
    let request = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {LENGTH}\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    client.write_all(&sent).unwrap();
    head(&mut client);
    assert!(crate::wire::exactly(&mut client, LENGTH) == body);
    server.join().unwrap();
    drop(client);
    let record = proxy.record();
    assert_eq!(record.outcome, Outcome::Complete);
    assert_eq!(record.request_bytes, Some((request.len() + LENGTH) as i64));
}

#[test]
fn a_client_that_takes_its_leave_while_it_waits_is_gone() {
    let pki = Pki::new();
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        rest(&mut stream)
    });
    let proxy = Running::start(downstream(address, &pki));
    let mut client = tls_client(proxy.connect(), &pki, "localhost");
    client.write_all(GET).unwrap();
    client.conn.send_close_notify();
    client.conn.complete_io(&mut client.sock).unwrap();
    assert_eq!(server.join().unwrap(), [Vec::<u8>::new()]);
    drop(client);
    assert_eq!(proxy.record().outcome, Outcome::ClientGone);
}

#[test]
fn what_is_not_tls_gets_no_connection() {
    let pki = Pki::new();
    let proxy = Running::start(downstream(nobody(), &pki));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    let mut answer = Vec::new();
    let (Ok(_) | Err(_)) = client.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
    assert_eq!(proxy.stop(), []);
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let missing = PathBuf::from("/nowhere/cert.pem");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = skewtap_proxy::Config {
        tls: TlsSettings {
            server: Some(Identity {
                certificates: missing.clone(),
                key: missing,
            }),
            ..TlsSettings::default()
        },
        ..config(nobody())
    };
    let Err(error) = runtime.block_on(skewtap_proxy::Proxy::bind(settings)) else {
        panic!("there is no such file");
    };
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("/nowhere/cert.pem"), "{source}");
}

/// A forward proxy that may look into tunnels to `hosts`.
fn intercepting(hosts: &[&str], pki: &Pki, folder: &std::path::Path) -> skewtap_proxy::Config {
    authority::create(folder).unwrap();
    skewtap_proxy::Config {
        upstream: None,
        intercept: Some(Intercept {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            authority: folder.to_owned(),
        }),
        tls: TlsSettings {
            upstream_ca: Some(pki.roots()),
            ..TlsSettings::default()
        },
        ..config(nobody())
    }
}

fn tunnel_to(proxy: &Running, address: SocketAddr) -> TcpStream {
    let mut client = proxy.connect();
    let host = format!("localhost:{}", address.port());
    let request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    expect(&mut client, "HTTP/1.1 200 OK\r\n\r\n");
    client
}

#[test]
fn a_tunnel_to_a_named_host_is_opened_up_and_seen_into() {
    let (pki, folder) = (Pki::new(), tempfile::tempdir().unwrap());
    let (address, server) = tls_origin(pki.server_config("localhost"), |stream| {
        let request = head(stream);
        stream.write_all(OK.as_bytes()).unwrap();
        request
    });
    let proxy = Running::start(intercepting(&["localhost"], &pki, folder.path()));
    let trusted = Pki::trusting(&authority::certificate_file(folder.path()));
    let mut client: TlsClient = trusted.connect(tunnel_to(&proxy, address), "localhost");
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    let request = server.join().unwrap().remove(0);
    assert!(
        request.starts_with("GET /x HTTP/1.1\r\nHost: localhost\r\n"),
        "{request}"
    );
    drop(client);
    let mut records = [proxy.record(), proxy.record()];
    records.sort_by_key(|record| record.method.clone());
    assert_eq!(records[0].method, "CONNECT");
    assert_eq!(records[0].outcome, Outcome::Upgraded);
    assert_eq!(records[1].method, "GET");
    assert_eq!(records[1].scheme, "https");
    assert_eq!(records[1].path, "/x");
    assert_eq!(records[1].outcome, Outcome::Complete);
    assert!(records[1].milestones.best(Milestone::DownTlsDone).is_some());
    assert!(records[1].milestones.best(Milestone::UpTlsDone).is_some());
    assert_eq!(proxy.stop(), []);
}

#[test]
fn a_tunnel_to_any_other_host_stays_shut() {
    let (pki, folder) = (Pki::new(), tempfile::tempdir().unwrap());
    let (address, server) = tls_origin(pki.server_config("localhost"), |stream| {
        head(stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(intercepting(&["other.example"], &pki, folder.path()));
    // The client sees the server's own certificate.
    let mut client = tls_client(tunnel_to(&proxy, address), &pki, "localhost");
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    drop(client);
    server.join().unwrap();
    let record = proxy.record();
    assert_eq!(
        (record.method.as_str(), record.outcome),
        ("CONNECT", Outcome::Upgraded)
    );
    assert_eq!(proxy.stop(), []);
}
