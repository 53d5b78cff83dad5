//! Requests whose framing two parties could read differently: refused, and never passed on.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use crate::harness::{Running, config};

/// What is wrong, the bytes, and the status of the answer.
const CORPUS: &[(&str, &str, &str)] = &[
    (
        "a length and chunks",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "chunks and a length",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "two lengths that differ",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "400",
    ),
    (
        "two lengths that agree",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "400",
    ),
    (
        "a list of lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 4\r\n\r\nabcd",
        "400",
    ),
    (
        "a list of equal lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc",
        "400",
    ),
    (
        "a length with a sign",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
        "400",
    ),
    (
        "a negative length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        "400",
    ),
    (
        "a length in hexadecimal",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc",
        "400",
    ),
    (
        "a length beyond any number",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "400",
    ),
    (
        "an empty length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        "400",
    ),
    (
        "an unknown coding last",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "an unknown coding alone",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
        "400",
    ),
    (
        "an unknown coding before chunks",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "501",
    ),
    (
        "a coding disguised",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "chunks twice",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "501",
    ),
    (
        "chunks twice in two headers",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "chunks under HTTP/1.0",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "white space before a colon",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\nabc",
        "400",
    ),
    (
        "white space before the first name",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "400",
    ),
    (
        "a folded line",
        "GET / HTTP/1.1\r\nHost: a\r\nX: one\r\n two\r\n\r\n",
        "400",
    ),
    (
        "a folded coding",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "a bare carriage return in a value",
        "GET / HTTP/1.1\r\nHost: a\r\nX: one\rY: two\r\n\r\n",
        "400",
    ),
    (
        "a bare carriage return as line end",
        "GET / HTTP/1.1\rHost: a\r\r",
        "400",
    ),
    ("bare line feeds", "GET / HTTP/1.1\nHost: a\n\n", "400"),
    (
        "one bare line feed",
        "GET / HTTP/1.1\r\nHost: a\nContent-Length: 3\r\n\r\nabc",
        "400",
    ),
    (
        "a zero byte in a value",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        "400",
    ),
    (
        "a zero byte in a name",
        "GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n",
        "400",
    ),
    (
        "a header without a colon",
        "GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n",
        "400",
    ),
    (
        "a header without a name",
        "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
        "400",
    ),
    ("HTTP/0.9", "GET /\r\n\r\n", "400"),
    (
        "a version that there is not",
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        "400",
    ),
    (
        "a version without a number",
        "GET / HTTP/\r\nHost: a\r\n\r\n",
        "400",
    ),
    (
        "a space in the path",
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        "400",
    ),
    (
        "two hosts",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "400",
    ),
    ("no host", "GET / HTTP/1.1\r\n\r\n", "400"),
    (
        "a coding with a vertical tab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\x0b\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "a coding with a parameter",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "a coding in quotes",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "an empty coding beside a length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding:\r\n\r\nabc",
        "400",
    ),
    (
        "white space before the colon of a coding",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "400",
    ),
    (
        "a length in two parts",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3 4\r\n\r\nabc",
        "400",
    ),
    (
        "a length with a fraction",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3.0\r\n\r\nabc",
        "400",
    ),
    (
        "a length with a zero byte",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\0\r\n\r\nabc",
        "400",
    ),
    (
        "a folded length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 3\r\n\r\nabc",
        "400",
    ),
    (
        "a folded line that looks like a length",
        "POST / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tContent-Length: 3\r\n\r\nabc",
        "400",
    ),
    (
        "a zero byte in the path",
        "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
        "400",
    ),
    (
        "a bare carriage return in the first line",
        "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",
        "400",
    ),
    (
        "a version in lower case",
        "GET / http/1.1\r\nHost: a\r\n\r\n",
        "400",
    ),
    (
        "a method with a colon",
        "GE:T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "400",
    ),
    (
        "a host that is none",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "400",
    ),
];

/// What is wrong within a body, after a head that is right.
const BODIES: &[(&str, &str)] = &[
    ("a size that is no number", "zz\r\nab\r\n0\r\n\r\n"),
    ("a size with a sign", "+2\r\nab\r\n0\r\n\r\n"),
    ("a size in C's hexadecimal", "0x2\r\nab\r\n0\r\n\r\n"),
    (
        "a size beyond any number",
        "fffffffffffffffff\r\nab\r\n0\r\n\r\n",
    ),
    ("no size", "\r\nab\r\n0\r\n\r\n"),
    ("white space before a size", " 2\r\nab\r\n0\r\n\r\n"),
    ("more data than its size", "2\r\nabc\r\n0\r\n\r\n"),
    ("a bare line feed after a size", "2\nab\r\n0\r\n\r\n"),
    ("a bare line feed after data", "2\r\nab\n0\r\n\r\n"),
    (
        "a bare line feed in an extension",
        "2;a\nb\r\nab\r\n0\r\n\r\n",
    ),
    ("a negative size", "-2\r\nab\r\n0\r\n\r\n"),
    ("a size with a zero byte", "2\0\r\nab\r\n0\r\n\r\n"),
    ("a size in two parts", "2 2\r\nab\r\n0\r\n\r\n"),
    ("no line end after data", "2\r\nab0\r\n\r\n"),
    ("a bare carriage return after data", "2\r\nab\r0\r\n\r\n"),
    (
        "a bare line feed at the end of a trailer",
        "2\r\nab\r\n0\r\nX: a\n\r\n",
    ),
    (
        "a trailer without a colon",
        "2\r\nab\r\n0\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    ),
    ("a folded trailer", "2\r\nab\r\n0\r\nX: a\r\n b\r\n\r\n"),
    (
        "a bare carriage return in an extension",
        "2;a\rb\r\nab\r\n0\r\n\r\n",
    ),
];

/// A marker request that must never be taken for one of its own.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends `bytes`, then a request that would be seen by the server if their end were misread;
/// gives what the client got, and what the server got.
fn pass(bytes: &str) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Running::start(skewtap_proxy::Config {
        drain_timeout: Duration::from_millis(50),
        ..config(listener.local_addr().unwrap())
    });
    let mut client = proxy.connect();
    let (Ok(()) | Err(_)) = client.write_all(format!("{bytes}{SMUGGLED}").as_bytes());
    let (Ok(()) | Err(_)) = client.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let (Ok(_) | Err(_)) = client.read_to_end(&mut answer);
    drop(client);
    // The proxy has ended everything it had open.
    proxy.stop();
    listener.set_nonblocking(true).unwrap();
    let mut got = Vec::new();
    if let Ok((mut stream, _)) = listener.accept() {
        stream.set_nonblocking(false).unwrap();
        let (Ok(_) | Err(_)) = stream.read_to_end(&mut got);
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(answer), text(got))
}

#[test]
fn heads_that_can_be_read_in_two_ways_are_refused() {
    let mut wrong = Vec::new();
    for (what, bytes, status) in CORPUS {
        let (answer, got) = pass(bytes);
        if !answer.starts_with(&format!("HTTP/1.1 {status} ")) || !got.is_empty() {
            wrong.push(format!("{what}: answered {answer:?}, passed on {got:?}"));
        }
        if answer.matches("HTTP/1.1 ").count() > 1 {
            wrong.push(format!("{what}: the connection went on: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_broken_chunk_ends_the_request_where_it_broke() {
    let mut wrong = Vec::new();
    for (what, body) in BODIES {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (answer, got) = pass(&format!("{head}{body}"));
        // The head may have gone on before the body came; the end of a body must not have.
        if got.contains("smuggled") || got.ends_with("0\r\n\r\n") || answer.contains(" 200 ") {
            wrong.push(format!("{what}: answered {answer:?}, passed on {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let long = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "a".repeat(70_000)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: a\r\n".repeat(300)
    );
    let path = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(66_000));
    for (bytes, status) in [(long, "431"), (many, "431"), (path, "431")] {
        let (answer, got) = pass(&bytes);
        let first = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&first), "{answer} is not {status}");
        assert_eq!(got, "");
    }
}
