//! Who closes, when, and how is seen on the other side as without the proxy.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::in_turns::in_turns;
use crate::wire::{exactly, expect, expect_end, head, rest};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const PART: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
const PAUSE: Duration = Duration::from_millis(120);

/// Closes with a reset.
fn reset(stream: TcpStream) {
    let now = Some(Duration::ZERO);
    SockRef::from(&stream).set_linger(now).unwrap();
}

/// Asks, and reads the answer and the end after it: how long that took.
#[track_caller]
fn until_end(mut client: TcpStream, answer: &str) -> Duration {
    let began = Instant::now();
    client.write_all(GET).unwrap();
    expect(&mut client, answer);
    expect_end(&mut client);
    began.elapsed()
}

/// Reads to the end, which must be a reset: when it came.
#[track_caller]
fn until_reset(stream: &mut TcpStream) -> Instant {
    let end = stream.read_to_end(&mut Vec::new());
    let kind = end.map_err(|error| error.kind());
    assert_eq!(kind, Err(ErrorKind::ConnectionReset));
    Instant::now()
}

#[test]
fn a_server_that_lingers_before_it_closes_is_seen_to_linger() {
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            stream.write_all(LAST.as_bytes()).unwrap();
            thread::sleep(PAUSE);
        },
        |client| until_end(client, LAST),
    );
    client.assert_same_size(PAUSE);
}

#[test]
fn a_client_that_asked_to_close_sees_when_the_server_does() {
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
            thread::sleep(PAUSE);
        },
        |mut client| {
            let began = Instant::now();
            let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            client.write_all(request).unwrap();
            exactly(&mut client, OK.len());
            rest(&mut client);
            began.elapsed()
        },
    );
    client.assert_same_size(PAUSE);
}

#[test]
fn a_server_that_waits_for_the_client_to_close_waits_as_long() {
    for closes_its_half in [false, true] {
        let (client, server) = in_turns(
            move |mut stream| {
                head(&mut stream);
                stream.write_all(LAST.as_bytes()).unwrap();
                if closes_its_half {
                    stream.shutdown(Shutdown::Write).unwrap();
                }
                expect_end(&mut stream);
                Instant::now()
            },
            |mut client| {
                let began = Instant::now();
                client.write_all(GET).unwrap();
                expect(&mut client, LAST);
                thread::sleep(PAUSE);
                began
            },
        );
        client.until(&server).assert_same_size(PAUSE);
    }
}

#[test]
fn an_idle_server_that_closes_does_so_when_it_does() {
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
            thread::sleep(PAUSE);
        },
        |client| until_end(client, OK),
    );
    client.assert_same_size(PAUSE);
}

#[test]
fn a_half_close_by_the_client_is_seen_when_it_happens() {
    let (client, server) = in_turns(
        |mut stream| {
            head(&mut stream);
            expect_end(&mut stream);
            let ended = Instant::now();
            stream.write_all(OK.as_bytes()).unwrap();
            ended
        },
        |mut client| {
            let began = Instant::now();
            client.write_all(GET).unwrap();
            thread::sleep(PAUSE);
            client.shutdown(Shutdown::Write).unwrap();
            expect(&mut client, OK);
            began
        },
    );
    client.until(&server).assert_same_size(PAUSE);
}

#[test]
fn a_server_that_resets_in_its_response_resets_the_client() {
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            stream.write_all(PART).unwrap();
            thread::sleep(PAUSE);
            reset(stream);
        },
        |mut client| {
            let began = Instant::now();
            client.write_all(GET).unwrap();
            exactly(&mut client, PART.len());
            until_reset(&mut client) - began
        },
    );
    client.assert_same_size(PAUSE);
}

#[test]
fn a_client_that_resets_while_it_waits_resets_the_server() {
    let (client, server) = in_turns(
        |mut stream| {
            head(&mut stream);
            until_reset(&mut stream)
        },
        |mut client| {
            let began = Instant::now();
            client.write_all(GET).unwrap();
            thread::sleep(PAUSE);
            reset(client);
            began
        },
    );
    client.until(&server).assert_same_size(PAUSE);
}

#[test]
fn a_client_that_resets_in_its_request_resets_the_server() {
    let (client, server) = in_turns(
        |mut stream| {
            head(&mut stream);
            exactly(&mut stream, 4);
            until_reset(&mut stream)
        },
        |mut client| {
            let began = Instant::now();
            let half = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf";
            client.write_all(half).unwrap();
            thread::sleep(PAUSE);
            reset(client);
            began
        },
    );
    client.until(&server).assert_same_size(PAUSE);
}

#[test]
fn a_client_that_resets_in_the_response_resets_the_server() {
    let (client, server) = in_turns(
        |mut stream| {
            head(&mut stream);
            stream.write_all(PART).unwrap();
            until_reset(&mut stream)
        },
        |mut client| {
            let began = Instant::now();
            client.write_all(GET).unwrap();
            exactly(&mut client, PART.len());
            thread::sleep(PAUSE);
            reset(client);
            began
        },
    );
    client.until(&server).assert_same_size(PAUSE);
}

#[test]
fn a_refusal_reaches_a_client_that_still_sends_while_the_server_lingers() {
    const LENGTH: usize = 4 * 1024 * 1024;
    const REFUSAL: &str =
        "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let (client, _) = in_turns(
        |mut stream| {
            head(&mut stream);
            stream.write_all(REFUSAL.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            // As servers do that would not have the refusal lost to a reset.
            let (Ok(_) | Err(_)) = stream.read_to_end(&mut Vec::new());
        },
        |mut client| {
            let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
            client.write_all(head.as_bytes()).unwrap();
            let piece = vec![b'x'; 65_536];
            for _ in 0..LENGTH / piece.len() {
                client.write_all(&piece).unwrap();
            }
            String::from_utf8(rest(&mut client)).unwrap()
        },
    );
    assert!(client.straight.iter().all(|answer| answer == REFUSAL));
    assert!(client.through.iter().all(|answer| answer == REFUSAL));
}
