//! New settings while connections are served.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;

use skewtap_core::exchange::Outcome;
use skewtap_proxy::tls::{Identity, TlsSettings};

use crate::harness::{PATIENCE, Running, config, nobody, origin};
use crate::metrics::{metrics, value};
use crate::pki::{Pki, tls_client};
use crate::wire::{expect, expect_end, head};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A server that says its name in each of its connections, as often as it is asked.
fn named(name: &'static str, connections: usize) -> (SocketAddr, JoinHandle<Vec<()>>) {
    origin(connections, move |mut stream| {
        let mut bytes = [0; 1];
        while std::io::Read::read(&mut stream, &mut bytes).unwrap_or(0) > 0 {
            head(&mut stream);
            stream.write_all(answer(name).as_bytes()).unwrap();
        }
    })
}

fn answer(name: &str) -> String {
    let length = name.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}")
}

fn reload(proxy: &Running, config: skewtap_proxy::Config) -> Result<Vec<&'static str>, String> {
    let config = skewtap_proxy::Config {
        otlp: proxy.otlp.clone(),
        ..config
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let reloaded = runtime.block_on(proxy.reloader.reload(config));
    reloaded.map_err(|error| error.to_string())
}

fn metric(proxy: &Running, name: &str) -> f64 {
    value(
        &metrics(proxy.addresses.admin.unwrap()),
        &format!("{name} "),
    )
}

fn with_admin(upstream: SocketAddr) -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        admin: Some("127.0.0.1:0".parse().unwrap()),
        ..config(upstream)
    }
}

#[track_caller]
fn ask(client: &mut TcpStream, name: &str) {
    client.write_all(GET).unwrap();
    expect(client, &answer(name));
}

#[test]
fn new_connections_are_served_by_new_settings_and_those_there_are_as_before() {
    let ((old, old_server), (new, new_server)) = (named("old", 1), named("new", 1));
    let proxy = Running::start(with_admin(old));
    let mut before = proxy.connect();
    ask(&mut before, "old");
    assert_eq!(reload(&proxy, with_admin(new)), Ok(vec![]));
    ask(&mut before, "old");
    let mut after = proxy.connect();
    ask(&mut after, "new");
    ask(&mut before, "old");
    drop((before, after));
    old_server.join().unwrap();
    new_server.join().unwrap();
    let outcomes: Vec<_> = proxy.records(4).iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Complete; 4]);
}

#[test]
fn an_exchange_under_way_ends_as_it_began() {
    let (asked, was_asked) = mpsc::channel();
    let (go_on, told) = mpsc::channel::<()>();
    let (address, server) = origin(1, move |mut stream| {
        head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nol")
            .unwrap();
        asked.send(()).unwrap();
        told.recv_timeout(PATIENCE).unwrap();
        stream.write_all(b"d\n").unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(with_admin(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    was_asked.recv_timeout(PATIENCE).unwrap();
    assert_eq!(reload(&proxy, with_admin(nobody())), Ok(vec![]));
    go_on.send(()).unwrap();
    expect(
        &mut client,
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nold\n",
    );
    drop(client);
    server.join().unwrap();
    assert_eq!(proxy.record().outcome, Outcome::Complete);
}

#[test]
fn settings_that_cannot_be_used_change_nothing_and_are_counted() {
    let (address, _server) = named("old", 2);
    let proxy = Running::start(with_admin(address));
    let successful = "skewtap_proxy_config_last_reload_successful";
    let time = "skewtap_proxy_config_last_reload_success_timestamp_seconds";
    let started = metric(&proxy, time);
    assert_eq!(metric(&proxy, successful), 1.0);
    let impossible = skewtap_proxy::Config {
        max_head_bytes: 1,
        ..with_admin(nobody())
    };
    let why = reload(&proxy, impossible).unwrap_err();
    assert!(why.contains("max_head_bytes is 1"), "{why}");
    let unreadable = skewtap_proxy::Config {
        tls: TlsSettings {
            upstream_ca: Some("/nowhere/ca.pem".into()),
            ..TlsSettings::default()
        },
        ..with_admin(nobody())
    };
    assert!(reload(&proxy, unreadable).is_err());
    assert_eq!(metric(&proxy, successful), 0.0);
    assert_eq!(metric(&proxy, time), started);
    ask(&mut proxy.connect(), "old");
    assert_eq!(reload(&proxy, with_admin(address)), Ok(vec![]));
    assert_eq!(metric(&proxy, successful), 1.0);
    assert!(metric(&proxy, time) >= started);
    ask(&mut proxy.connect(), "old");
}

#[test]
fn what_needs_a_restart_is_named_and_stays() {
    let (address, _server) = named("new", 1);
    let proxy = Running::start(with_admin(nobody()));
    let wanted = skewtap_proxy::Config {
        listen: vec![nobody()],
        workers: 2,
        ..with_admin(address)
    };
    assert_eq!(reload(&proxy, wanted), Ok(vec!["listen", "workers"]));
    ask(&mut proxy.connect(), "new");
}

#[test]
fn a_certificate_that_was_renewed_is_shown_to_new_clients() {
    let (old, new) = (Pki::new(), Pki::new());
    let (address, server) = named("ok", 1);
    let folder = tempfile::tempdir().unwrap();
    let identity = Identity {
        certificates: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
    };
    let install = |pki: &Pki| {
        let issued = pki.identity("localhost");
        std::fs::copy(issued.certificates, &identity.certificates).unwrap();
        std::fs::copy(issued.key, &identity.key).unwrap();
    };
    let settings = || skewtap_proxy::Config {
        tls: TlsSettings {
            server: Some(identity.clone()),
            ..TlsSettings::default()
        },
        ..with_admin(address)
    };
    install(&old);
    let proxy = Running::start(settings());
    install(&new);
    let mut too_soon = tls_client(proxy.connect(), &new, "localhost");
    assert!(
        too_soon.write_all(GET).is_err(),
        "the new one is not in use yet"
    );
    assert_eq!(reload(&proxy, settings()), Ok(vec![]));
    let mut client = tls_client(proxy.connect(), &new, "localhost");
    client.write_all(GET).unwrap();
    expect(&mut client, &answer("ok"));
    drop(client);
    server.join().unwrap();
}
