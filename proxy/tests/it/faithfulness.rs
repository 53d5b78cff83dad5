//! The stalls between a client and a server keep their size with the proxy between them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::in_turns::in_turns;
use crate::wire::{exactly, expect, expect_end, head, rest};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const POST_HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\
    traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";
const EXPECTING: &str =
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";

/// Exchanges after which a kernel takes the connection for a dialogue, and delays what it
/// acknowledges.
const WARM: usize = 3;

/// Linux delays an acknowledgement by 40 ms at least; a timer may fire one tick of 4 ms early.
const DELAYED_ACK: Duration = Duration::from_millis(36);

const PAUSE: Duration = Duration::from_millis(80);

#[test]
fn a_request_in_two_writes_waits_for_the_delayed_acknowledgement() {
    let (client, _) = in_turns(
        |mut stream| {
            for _ in 0..=WARM {
                exactly(&mut stream, POST_HEAD.len() + 1);
                stream.write_all(OK.as_bytes()).unwrap();
            }
        },
        |mut client| {
            client.set_nodelay(false).unwrap();
            for _ in 0..WARM {
                client
                    .write_all(format!("{POST_HEAD}x").as_bytes())
                    .unwrap();
                expect(&mut client, OK);
            }
            let began = Instant::now();
            client.write_all(POST_HEAD.as_bytes()).unwrap();
            client.write_all(b"x").unwrap();
            expect(&mut client, OK);
            began.elapsed()
        },
    );
    client.assert_same_size(DELAYED_ACK);
}

#[test]
fn a_response_in_two_writes_waits_for_the_delayed_acknowledgement() {
    let (client, _) = in_turns(
        |mut stream| {
            stream.set_nodelay(false).unwrap();
            for _ in 0..WARM {
                head(&mut stream);
                stream.write_all(OK.as_bytes()).unwrap();
            }
            head(&mut stream);
            let (first, second) = OK.split_at(OK.len() - 2);
            stream.write_all(first.as_bytes()).unwrap();
            stream.write_all(second.as_bytes()).unwrap();
            // A close would send the rest along.
            expect_end(&mut stream);
        },
        |mut client| {
            for _ in 0..WARM {
                client.write_all(GET).unwrap();
                expect(&mut client, OK);
            }
            let began = Instant::now();
            client.write_all(GET).unwrap();
            expect(&mut client, OK);
            began.elapsed()
        },
    );
    client.assert_same_size(DELAYED_ACK);
}

#[test]
fn a_client_waits_for_a_late_100_as_long_as_without_the_proxy() {
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            thread::sleep(PAUSE);
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
            expect(&mut stream, "body");
            stream.write_all(OK.as_bytes()).unwrap();
        },
        |mut client| {
            let began = Instant::now();
            client.write_all(EXPECTING.as_bytes()).unwrap();
            expect(&mut client, "HTTP/1.1 100 Continue\r\n\r\n");
            let told = began.elapsed();
            client.write_all(b"body").unwrap();
            expect(&mut client, OK);
            told
        },
    );
    client.assert_same_size(PAUSE);
}

#[test]
fn a_client_that_waits_in_vain_for_a_100_waits_as_long_as_without_the_proxy() {
    let waits = Duration::from_millis(200);
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            expect(&mut stream, "body");
            stream.write_all(OK.as_bytes()).unwrap();
        },
        |mut client| {
            let began = Instant::now();
            client.write_all(EXPECTING.as_bytes()).unwrap();
            client.set_read_timeout(Some(waits)).unwrap();
            let early = client.read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(early, Err(ErrorKind::WouldBlock), "nobody sent a 100");
            client.write_all(b"body").unwrap();
            expect(&mut client, OK);
            began.elapsed()
        },
    );
    client.assert_same_size(waits);
}

#[test]
fn a_body_without_a_length_ends_when_the_server_closes() {
    for version in ["HTTP/1.0", "HTTP/1.1"] {
        let (client, _) = in_turns(
            move |mut stream| {
                head(&mut stream);
                let response = format!("{version} 200 OK\r\nX-A: 1\r\n\r\nall of it");
                stream.write_all(response.as_bytes()).unwrap();
                thread::sleep(PAUSE);
            },
            |mut client| {
                let began = Instant::now();
                let request = format!("GET / {version}\r\nHost: a\r\n\r\n");
                client.write_all(request.as_bytes()).unwrap();
                rest(&mut client);
                began.elapsed()
            },
        );
        client.assert_same_size(PAUSE);
    }
}

#[test]
fn a_response_head_goes_on_at_once_however_late_its_body_is() {
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
                .unwrap();
            thread::sleep(PAUSE);
            stream.write_all(b"ok").unwrap();
        },
        |mut client| {
            let began = Instant::now();
            client.write_all(GET).unwrap();
            head(&mut client);
            let of_head = began.elapsed();
            expect(&mut client, "ok");
            (of_head, began.elapsed())
        },
    );
    client
        .map(|(of_head, _)| *of_head)
        .assert_same_size(Duration::ZERO);
    client.map(|(_, of_all)| *of_all).assert_same_size(PAUSE);
}

#[test]
fn a_request_head_goes_on_at_once_however_late_its_body_is() {
    let (client, server) = in_turns(
        |mut stream| {
            head(&mut stream);
            let of_head = Instant::now();
            expect(&mut stream, "x");
            let of_all = Instant::now();
            stream.write_all(OK.as_bytes()).unwrap();
            (of_head, of_all)
        },
        |mut client| {
            let began = Instant::now();
            client.write_all(POST_HEAD.as_bytes()).unwrap();
            thread::sleep(PAUSE);
            client.write_all(b"x").unwrap();
            expect(&mut client, OK);
            began
        },
    );
    let of_head = client.until(&server.map(|(of_head, _)| *of_head));
    of_head.assert_same_size(Duration::ZERO);
    let of_all = client.until(&server.map(|(_, of_all)| *of_all));
    of_all.assert_same_size(PAUSE);
}

/// Pieces of a body that comes slowly.
const PIECES: usize = 12;
const BETWEEN: Duration = Duration::from_millis(20);
const PIECE: &[u8] = b"0123456789";

fn trickle(stream: &mut TcpStream) {
    for _ in 0..PIECES {
        thread::sleep(BETWEEN);
        stream.write_all(PIECE).unwrap();
    }
}

/// Reads what [`trickle`] writes: in how many reads.
fn reads(stream: &mut TcpStream) -> usize {
    let mut space = [0; 4096];
    let (mut got, mut reads) = (0, 0);
    while got < PIECES * PIECE.len() {
        let count = stream.read(&mut space).unwrap();
        assert_ne!(count, 0, "the stream ended early");
        (got, reads) = (got + count, reads + 1);
    }
    reads
}

/// Asserts that the pieces came one by one. A reader that was kept from the processor for longer
/// than the time between two may find them together now and then.
#[track_caller]
fn assert_one_by_one(reads: &[usize]) {
    let few = reads.iter().filter(|reads| **reads < PIECES - 2).count();
    assert!(
        few * 2 < reads.len(),
        "{PIECES} pieces came in {reads:?} reads"
    );
}

#[test]
fn a_response_that_trickles_is_not_put_together() {
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            let length = PIECES * PIECE.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            trickle(&mut stream);
        },
        |mut client| {
            client.write_all(GET).unwrap();
            head(&mut client);
            reads(&mut client)
        },
    );
    assert_one_by_one(&client.straight);
    assert_one_by_one(&client.through);
}

#[test]
fn a_request_that_trickles_is_not_put_together() {
    let (_, server) = in_turns(
        |mut stream| {
            head(&mut stream);
            let reads = reads(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
            reads
        },
        |mut client| {
            let length = PIECES * PIECE.len();
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            client.write_all(head.as_bytes()).unwrap();
            trickle(&mut client);
            expect(&mut client, OK);
        },
    );
    assert_one_by_one(&server.straight);
    assert_one_by_one(&server.through);
}
