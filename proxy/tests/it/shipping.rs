//! Records on their way, and what is counted.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{PATIENCE, Running, config, connect, nobody, origin};
use crate::metrics::{metrics, value};
use crate::wire::{expect, head, rest};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that answers at once, on any number of connections.
fn quick_origin() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                    if stream.write_all(OK.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Median time of an exchange.
fn median(client: &mut TcpStream, exchanges: usize) -> Duration {
    let mut times: Vec<_> = (0..exchanges)
        .map(|_| {
            let begun = Instant::now();
            client.write_all(GET).unwrap();
            expect(client, OK);
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[exchanges / 2]
}

#[test]
fn a_dead_collector_does_not_slow_requests() {
    let address = quick_origin();
    let with = Running::start(config(address));
    let without = Running::start(skewtap_proxy::Config {
        otlp: Some(format!("http://{}", nobody()).parse().unwrap()),
        admin: Some("127.0.0.1:0".parse().unwrap()),
        ship_queue: 50,
        drain_timeout: Duration::from_millis(100),
        ..config(address)
    });
    let (mut a, mut b) = (with.connect(), without.connect());
    let (mut slow, mut quick) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..10 {
        quick += median(&mut a, 200);
        slow += median(&mut b, 200);
    }
    assert!(
        slow < quick * 3,
        "{slow:?} without a collector, {quick:?} with one"
    );
    // Records take their way even if no one waits for them.
    let counted = loop {
        let text = metrics(without.addresses.admin.unwrap());
        if text.contains("queue-full") {
            break text;
        }
        median(&mut b, 10);
    };
    assert!(
        value(
            &counted,
            "skewtap_proxy_records_dropped_total{reason=\"queue-full\"}"
        ) > 0.0
    );
    assert_eq!(value(&counted, "skewtap_proxy_records_shipped_total"), 0.0);
}

/// Shipped and dropped records so far.
fn settled(admin: SocketAddr) -> (f64, f64) {
    let text = metrics(admin);
    let lines = text.lines();
    let dropped = lines.filter(|line| line.starts_with("skewtap_proxy_records_dropped_total{"));
    let dropped = dropped.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    (
        value(&text, "skewtap_proxy_records_shipped_total"),
        dropped.sum(),
    )
}

#[test]
fn a_collector_that_was_gone_gets_what_found_room_and_the_rest_is_counted() {
    const EXCHANGES: usize = 1_500;
    const ROOM: usize = 50;
    let address = quick_origin();
    let later = nobody();
    let proxy = Running::start(skewtap_proxy::Config {
        otlp: Some(format!("http://{later}").parse().unwrap()),
        admin: Some("127.0.0.1:0".parse().unwrap()),
        ship_queue: ROOM,
        ..config(address)
    });
    let admin = proxy.addresses.admin.unwrap();
    let mut client = proxy.connect();
    median(&mut client, EXCHANGES);
    drop(client);
    // What finds no room is dropped at once; the rest waits in the queue and in one batch.
    let begun = Instant::now();
    let waiting = loop {
        let (shipped, dropped) = settled(admin);
        assert_eq!(shipped, 0.0);
        let left = EXCHANGES as f64 - dropped;
        if left <= (ROOM + 512) as f64 {
            break left;
        }
        assert!(begun.elapsed() < PATIENCE, "{dropped} dropped");
    };
    assert!(waiting >= ROOM as f64, "only {waiting} of {EXCHANGES} kept");
    let (kept, records) = std::sync::mpsc::channel();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(crate::collector::start_at(later, kept));
    let (shipped, dropped) = loop {
        let (shipped, dropped) = settled(admin);
        if shipped + dropped >= EXCHANGES as f64 {
            break (shipped, dropped);
        }
        assert!(begun.elapsed() < PATIENCE * 2, "{shipped} and {dropped}");
    };
    assert_eq!(shipped + dropped, EXCHANGES as f64);
    assert_eq!(records.try_iter().count() as f64, shipped);
    assert!(shipped >= ROOM as f64, "{shipped} shipped");
}

#[test]
fn what_the_proxy_does_is_counted() {
    let address = quick_origin();
    let proxy = Running::start(skewtap_proxy::Config {
        admin: Some("127.0.0.1:0".parse().unwrap()),
        ..config(address)
    });
    let admin = proxy.addresses.admin.unwrap();
    let mut client = proxy.connect();
    median(&mut client, 3);
    proxy.records(3);
    let mut bad = proxy.connect();
    bad.write_all(b"nonsense\r\n\r\n").unwrap();
    rest(&mut bad);
    // The connection is counted when the proxy is done with it, just after its last byte.
    let text = loop {
        let text = metrics(admin);
        if value(&text, "skewtap_proxy_malformed_requests_total") > 0.0 {
            break text;
        }
    };
    assert!(
        text.contains("application/openmetrics-text; version=1.0.0"),
        "{text}"
    );
    assert!(text.ends_with("# EOF\n"), "{text}");
    for (name, expected) in [
        ("skewtap_proxy_exchanges_total{outcome=\"complete\"}", 3.0),
        (
            "skewtap_proxy_exchanges_total{outcome=\"client-gone\"}",
            0.0,
        ),
        ("skewtap_proxy_connections_total", 2.0),
        ("skewtap_proxy_malformed_requests_total", 1.0),
        ("skewtap_proxy_watches_refused_total", 0.0),
        ("skewtap_proxy_capture_packets_total", 0.0),
    ] {
        assert_eq!(value(&text, name), expected, "{name}");
    }
    assert!(value(&text, "skewtap_proxy_scheduling_delay_seconds_count") >= 6.0);
    assert!(value(&text, "skewtap_proxy_open_connections") >= 1.0);
    let mut health = connect(admin);
    health
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert!(head(&mut health).starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn stopping_ships_what_is_left() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    expect(&mut client, OK);
    server.join().unwrap();
    assert_eq!(proxy.stop().len(), 1);
}
