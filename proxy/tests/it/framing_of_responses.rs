//! Responses whose framing two parties could read differently.

use std::io::{Read as _, Write as _};

use crate::harness::{Running, config, origin};
use crate::wire::head;

/// Responses whose end a client could see elsewhere than the proxy does.
const RESPONSES: &[(&str, &str)] = &[
    (
        "two lengths that differ",
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    ),
    ("a list of lengths", "Content-Length: 2, 3\r\n\r\nabc"),
    ("a length with a sign", "Content-Length: +2\r\n\r\nab"),
    ("white space before a colon", "Content-Length : 2\r\n\r\nab"),
    ("a folded length", "Content-Length:\r\n 2\r\n\r\nab"),
    (
        "a zero byte in a value",
        "X: a\0b\r\nContent-Length: 2\r\n\r\nab",
    ),
    (
        "a bare carriage return in a value",
        "X: a\rb\r\nContent-Length: 2\r\n\r\nab",
    ),
];

#[test]
fn responses_that_can_be_read_in_two_ways_are_not_passed_on() {
    let mut wrong = Vec::new();
    for (what, rest) in RESPONSES {
        let answer = answer_for(rest);
        if !answer.starts_with("HTTP/1.1 502 ") || !answer.contains("upstream-malformed") {
            wrong.push(format!("{what}: answered {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_response_with_a_length_and_chunks_is_passed_on_with_one_of_them() {
    let body = "2\r\nab\r\n0\r\n\r\n";
    for rest in [
        format!("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n{body}"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n{body}"),
    ] {
        let answer = answer_for(&rest).to_ascii_lowercase();
        let one = !answer.contains("content-length") && answer.ends_with(body);
        assert!(one || answer.starts_with("http/1.1 502 "), "{answer}");
    }
}

/// What a client gets when the server's response goes on like this after its first line.
fn answer_for(rest: &str) -> String {
    let response = format!("HTTP/1.1 200 OK\r\n{rest}");
    let (address, server) = origin(1, move |mut stream| {
        head(&mut stream);
        // The proxy may have closed already.
        let (Ok(()) | Err(_)) = stream.write_all(response.as_bytes());
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    let (Ok(_) | Err(_)) = client.read_to_end(&mut answer);
    server.join().unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}
