//! The stamps contain what the endpoints' own clocks say.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use skewtap_core::clock::{Source, Stamp};
use skewtap_core::exchange::{ExchangeRecord, Outcome, SourceState};
use skewtap_core::milestone::Milestone;

use crate::harness::{
    PATIENCE, Running, assert_arrived, assert_within, config, now_ns, origin, stamp, timed_write,
};
use crate::wire::{exactly, expect, expect_end, head};

const PAUSE: Duration = Duration::from_millis(60);

/// The clock before and after a write.
type Sent = (i64, i64);

/// An exchange with pauses between all parts, timed by both ends. The parts are the first half
/// of the head, the rest of it, and the body.
struct Timed {
    record: ExchangeRecord,
    connected: Sent,
    client_sent: [Sent; 3],
    client_got: [i64; 3],
    server_got: [i64; 3],
    server_sent: [Sent; 3],
}

/// Writes the parts with a pause after each.
fn send_slowly(stream: &mut TcpStream, parts: [&[u8]; 3]) -> [Sent; 3] {
    parts.map(|part| {
        let when = timed_write(stream, part);
        thread::sleep(PAUSE);
        when
    })
}

/// Reads a first byte, a head and a body of four, with the clock after each.
fn receive(stream: &mut TcpStream) -> [i64; 3] {
    exactly(stream, 1);
    let first = now_ns();
    head(stream);
    let head = now_ns();
    exactly(stream, 4);
    [first, head, now_ns()]
}

fn timed_exchange() -> Timed {
    let (address, server) = origin(1, |mut stream| {
        let got = receive(&mut stream);
        let parts = [
            &b"HTTP/1.1 200 OK\r\n"[..],
            b"Content-Length: 4\r\n\r\n",
            b"done",
        ];
        (got, send_slowly(&mut stream, parts))
    });
    let proxy = Running::start(config(address));
    let connecting = now_ns();
    let mut client = proxy.connect();
    let connected = (connecting, now_ns());
    thread::sleep(PAUSE);
    let parts = [
        &b"POST / HTTP/1.1\r\nHost: a\r\n"[..],
        b"Content-Length: 4\r\n\r\n",
        b"body",
    ];
    let client_sent = send_slowly(&mut client, parts);
    let client_got = receive(&mut client);
    let (server_got, server_sent) = server.join().unwrap().remove(0);
    Timed {
        record: proxy.record(),
        connected,
        client_sent,
        client_got,
        server_got,
        server_sent,
    }
}

#[test]
fn what_arrives_has_the_time_at_which_the_kernel_had_it() {
    let timed = timed_exchange();
    let arrivals = [
        (Milestone::DownRequestFirst, timed.client_sent[0]),
        (Milestone::DownRequestHead, timed.client_sent[1]),
        (Milestone::DownRequestLast, timed.client_sent[2]),
        (Milestone::UpResponseFirst, timed.server_sent[0]),
        (Milestone::UpResponseHead, timed.server_sent[1]),
        (Milestone::UpResponseLast, timed.server_sent[2]),
    ];
    for (milestone, sent) in arrivals {
        assert_arrived(&timed.record, milestone, sent);
        // Each part came in a segment of its own.
        let kernel = stamp(&timed.record, milestone, Source::Kernel);
        assert_eq!(kernel.width(), 0, "{milestone}");
        let user = stamp(&timed.record, milestone, Source::User);
        assert!(
            user.lo() >= kernel.hi(),
            "{milestone} was read after it came"
        );
    }
}

#[test]
fn a_clock_that_nobody_steps_is_said_to_have_run_on() {
    assert_eq!(timed_exchange().record.clock_step_ns, 0);
}

#[test]
fn what_leaves_has_the_time_of_its_write() {
    let timed = timed_exchange();
    // hyper passes a head on when it is complete, and bodies as they come.
    for (milestone, sent, got) in [
        (
            Milestone::UpRequestFirst,
            timed.client_sent[1],
            timed.server_got[0],
        ),
        (
            Milestone::UpRequestHead,
            timed.client_sent[1],
            timed.server_got[1],
        ),
        (
            Milestone::UpRequestLast,
            timed.client_sent[2],
            timed.server_got[2],
        ),
        (
            Milestone::DownResponseFirst,
            timed.server_sent[1],
            timed.client_got[0],
        ),
        (
            Milestone::DownResponseHead,
            timed.server_sent[1],
            timed.client_got[1],
        ),
        (
            Milestone::DownResponseLast,
            timed.server_sent[2],
            timed.client_got[2],
        ),
    ] {
        let write = stamp(&timed.record, milestone, Source::WriteBracket);
        assert_within(write, (sent.0, got), milestone.name());
    }
}

#[test]
fn connections_have_their_times_and_figures() {
    let timed = timed_exchange();
    let record = timed.record;
    let accepted = stamp(&record, Milestone::DownConnected, Source::User);
    assert!(accepted.lo() >= timed.connected.0 && accepted.hi() < timed.client_sent[0].0);
    let dialled = stamp(&record, Milestone::UpConnectStart, Source::WriteBracket);
    assert!(dialled.lo() >= timed.client_sent[1].0);
    let stands = stamp(&record, Milestone::UpConnected, Source::User);
    assert!(stands.lo() >= dialled.hi() && stands.hi() <= timed.server_got[0]);
    let tcp = record.down.tcp.unwrap();
    assert!(tcp.min_rtt_ns > 0);
    assert_eq!((tcp.retransmits, tcp.window_limited_ns), (0, 0));
    assert!(record.up.unwrap().tcp.is_some());
    assert!(record.clock_step_ns.abs() < 1_000_000);
}

#[test]
fn kept_connections_give_each_exchange_its_own_stamps() {
    const EXCHANGES: usize = 5;
    let (address, server) = origin(1, |mut stream| {
        (0..EXCHANGES)
            .map(|number| {
                head(&mut stream);
                thread::sleep(Duration::from_millis(20));
                let response = format!("HTTP/1.1 20{number} OK\r\nContent-Length: 0\r\n\r\n");
                timed_write(&mut stream, response.as_bytes())
            })
            .collect::<Vec<_>>()
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    let mut asked = Vec::new();
    for number in 0..EXCHANGES {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n");
        asked.push(timed_write(&mut client, request.as_bytes()));
        head(&mut client);
        thread::sleep(Duration::from_millis(20));
    }
    drop(client);
    let answered = server.join().unwrap().remove(0);
    let records = proxy.records(EXCHANGES);
    for (number, record) in records.iter().enumerate() {
        assert_eq!(record.path, format!("/{number}"));
        assert_eq!(record.status, Some(200 + number as u16));
        assert_eq!(record.down.earlier_exchanges, number as i64);
        assert_eq!(record.up.as_ref().unwrap().earlier_exchanges, number as i64);
        let first = number == 0;
        assert_eq!(
            record.milestones.best(Milestone::DownConnected).is_some(),
            first
        );
        assert_eq!(
            record.milestones.best(Milestone::UpConnected).is_some(),
            first
        );
        assert_arrived(record, Milestone::DownRequestFirst, asked[number]);
        assert_arrived(record, Milestone::UpResponseFirst, answered[number]);
    }
}

#[test]
fn the_next_request_shows_that_the_response_was_read() {
    let (address, server) = origin(1, |mut stream| {
        for _ in 0..2 {
            head(&mut stream);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
        }
        expect_end(&mut stream);
    });
    let proxy = Running::start(skewtap_proxy::Config {
        queues: false,
        processes: false,
        activity_wait: PATIENCE,
        ..config(address)
    });
    let mut client = proxy.connect();
    client
        .write_all(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    head(&mut client);
    thread::sleep(PAUSE);
    let next = timed_write(&mut client, b"GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    head(&mut client);
    let closing = now_ns();
    drop(client);
    server.join().unwrap();
    let records = proxy.records(2);
    assert_arrived(&records[0], Milestone::ClientNextActivity, next);
    let end = stamp(&records[1], Milestone::ClientNextActivity, Source::User);
    assert!(end.hi() >= closing, "the end of the stream");
    assert_eq!(records[0].sources.queues, SourceState::Off);
}

#[test]
fn pipelined_requests_keep_their_own_stamps_and_prove_no_pick_up() {
    let (address, server) = origin(1, |mut stream| {
        (0..3)
            .map(|number| {
                let request = head(&mut stream);
                assert!(request.starts_with(&format!("GET /{number} ")), "{request}");
                thread::sleep(Duration::from_millis(30));
                timed_write(
                    &mut stream,
                    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
                )
            })
            .collect::<Vec<_>>()
    });
    let proxy = Running::start(skewtap_proxy::Config {
        queues: false,
        ..config(address)
    });
    let mut client = proxy.connect();
    let request = |number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n");
    let together = timed_write(&mut client, (request(0) + &request(1)).as_bytes());
    thread::sleep(Duration::from_millis(10));
    let alone = timed_write(&mut client, request(2).as_bytes());
    for _ in 0..3 {
        expect(&mut client, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    }
    drop(client);
    let answered = server.join().unwrap().remove(0);
    let records = proxy.records(3);
    for (number, asked) in [together, together, alone].into_iter().enumerate() {
        let record = records
            .iter()
            .find(|r| r.path == format!("/{number}"))
            .unwrap();
        assert_eq!(record.outcome, Outcome::Complete);
        assert_arrived(record, Milestone::DownRequestLast, asked);
        assert_arrived(record, Milestone::UpResponseLast, answered[number]);
        assert_eq!(record.milestones.best(Milestone::ClientNextActivity), None);
    }
}

#[test]
fn bytes_read_late_have_an_interval_that_holds_their_arrival() {
    // The server's first segment is merged with a later one, because the proxy reads nothing
    // while the client does not take what it has.
    const MUCH: usize = 16 * 1024 * 1024;
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {MUCH}\r\n\r\n");
        let first = timed_write(&mut stream, response.as_bytes());
        stream.write_all(&vec![b'x'; MUCH - 1]).unwrap();
        (first, timed_write(&mut stream, b"y"))
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    thread::sleep(Duration::from_millis(300));
    head(&mut client);
    exactly(&mut client, MUCH);
    let (first, last) = server.join().unwrap().remove(0);
    let record = proxy.record();
    assert_arrived(&record, Milestone::UpResponseFirst, first);
    // It may have waited on the server's side until there was room for it.
    let read = stamp(&record, Milestone::UpResponseLast, Source::User).hi();
    let came = stamp(&record, Milestone::UpResponseLast, Source::Kernel);
    assert_within(came, (last.0, read), "last byte");
    let limited = record.down.tcp.unwrap().window_limited_ns;
    assert!(
        limited > 100_000_000,
        "the client's window was closed for {limited} ns"
    );
    let order = |milestone| record.milestones.best(milestone).map(Stamp::lo);
    assert!(order(Milestone::UpResponseFirst) <= order(Milestone::UpResponseLast));
}
