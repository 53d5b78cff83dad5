//! The proxy as a process of its own: when it may open no more files, and when it is told to end.

use std::io::Write as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::otlp_sink::OtlpSink;
use super::proxy_process::{GET, PATIENCE, ProxyProcess, first_line, outcomes, server};

/// Most files that the proxy may have open; it needs about twenty for itself.
const FILES: usize = 48;

#[test]
fn a_proxy_out_of_descriptors_goes_on_when_there_are_some_again() {
    let sink = OtlpSink::start();
    let proxy = ProxyProcess::start(server(Duration::ZERO), &sink, FILES, &["--no-capture"]);
    // The connection to the collector stands once a record has been taken.
    assert_eq!(proxy.ask(), "HTTP/1.1 200 OK");
    outcomes(&sink, 1);
    let mut clients: Vec<_> = (0..FILES * 2).map(|_| proxy.connect()).collect();
    let began = Instant::now();
    while proxy.open_files() < FILES {
        assert!(began.elapsed() < PATIENCE, "{} open", proxy.open_files());
    }
    // All descriptors are taken by clients: there is none left for a server.
    clients[0].write_all(GET).unwrap();
    assert_eq!(first_line(&mut clients[0]), "HTTP/1.1 502 Bad Gateway");
    let (before, began) = (proxy.cpu(), Instant::now());
    thread::sleep(Duration::from_secs(1));
    let used = proxy.cpu() - before;
    assert!(
        used < began.elapsed() / 4,
        "{used:?} of CPU time spent on waiting"
    );
    drop(clients);
    let began = Instant::now();
    while proxy.open_files() > FILES / 2 {
        assert!(began.elapsed() < PATIENCE, "{} open", proxy.open_files());
    }
    assert_eq!(proxy.ask(), "HTTP/1.1 200 OK");
    assert_eq!(
        outcomes(&sink, 3),
        ["complete", "upstream-unreachable", "complete"]
    );
}

#[test]
fn a_proxy_told_to_end_lets_exchanges_end_and_ships_their_records() {
    let sink = OtlpSink::start();
    let pause = Duration::from_millis(500);
    let mut proxy = ProxyProcess::start(server(pause), &sink, 1_024, &["--no-capture"]);
    let (told, first) = mpsc::channel();
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    thread::spawn(move || told.send(first_line(&mut client)).unwrap());
    // The request is on its way, and the answer is not.
    thread::sleep(pause / 2);
    proxy.signal(Signal::SIGTERM);
    assert_eq!(first.recv_timeout(PATIENCE).unwrap(), "HTTP/1.1 200 OK");
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    assert_eq!(outcomes(&sink, 1), ["complete"]);
}
