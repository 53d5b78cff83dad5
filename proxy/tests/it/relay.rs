//! Bytes pass as they came.

use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::thread;

use skewtap_core::exchange::Outcome;

use crate::harness::{CONTEXT, Running, config, origin};
use crate::wire::{exactly, expect, expect_end, head};

#[test]
fn a_request_and_its_response_pass_byte_for_byte() {
    let request = format!(
        "GET /a/../b?c=d%20e HTTP/1.1\r\nHOST: Example.org\r\nx-ODD-case: 1\r\n{CONTEXT}\
         Accept: */*\r\nConnection: keep-alive\r\n\r\n"
    );
    let response = "HTTP/1.1 200 All Is Well\r\nX-First: 1\r\ncontent-LENGTH: 5\r\n\
                    Set-Cookie: a=b\r\nset-cookie: c=d\r\nKeep-Alive: timeout=5\r\n\r\nhello";
    let seen = request.clone();
    let (address, server) = origin(1, move |mut stream| {
        expect(&mut stream, &seen);
        stream.write_all(response.as_bytes()).unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(request.as_bytes()).unwrap();
    expect(&mut client, response);
    drop(client);
    server.join().unwrap();
    let record = proxy.record();
    assert_eq!(record.outcome, Outcome::Complete);
    assert_eq!(record.status, Some(200));
    assert_eq!(record.method, "GET");
    assert_eq!(record.authority, "Example.org");
    assert_eq!(record.path, "/a/../b", "the query is not recorded");
    assert_eq!(record.request_bytes, Some(request.len() as i64));
    assert_eq!(record.response_bytes, Some(response.len() as i64));
}

#[test]
fn heads_without_a_body_keep_the_length_they_announce() {
    for (method, response) in [
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: \"a\"\r\n\r\n",
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Last: 1\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\nX-Last: 1\r\n\r\n"),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX-Last: 1\r\n\r\n",
        ),
        ("HEAD", "HTTP/1.1 200 OK\r\nX-Last: 1\r\n\r\n"),
    ] {
        let (address, server) = origin(1, move |mut stream| {
            head(&mut stream);
            stream.write_all(response.as_bytes()).unwrap();
            // The next exchange on the same connection shows that nothing was left over.
            head(&mut stream);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .unwrap();
            expect_end(&mut stream);
        });
        let proxy = Running::start(config(address));
        let mut client = proxy.connect();
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        expect(&mut client, response);
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        expect(
            &mut client,
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        );
        drop(client);
        server.join().unwrap();
        assert_eq!(
            proxy.records(2)[0].response_bytes,
            Some(response.len() as i64)
        );
    }
}

#[test]
fn chunks_and_trailers_pass_both_ways() {
    let (address, server) = origin(1, |mut stream| {
        let request = head(&mut stream);
        assert!(
            request.contains("Transfer-Encoding: chunked\r\n"),
            "{request}"
        );
        expect(&mut stream, "5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n");
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
                  3\r\nabc\r\n0\r\nx-sum: 2\r\n\r\n",
            )
            .unwrap();
        expect_end(&mut stream);
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(
            b"POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\nTrailer: x-sum\r\n\
              Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n",
        )
        .unwrap();
    expect(
        &mut client,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
         3\r\nabc\r\n0\r\nx-sum: 2\r\n\r\n",
    );
    drop(client);
    server.join().unwrap();
    assert_eq!(proxy.record().outcome, Outcome::Complete);
}

#[test]
fn large_bodies_pass_unchanged_in_both_directions_at_once() {
    const LENGTH: usize = 5 * 1024 * 1024;
    let body = |seed: u64| -> Vec<u8> {
        let mut state = seed;
        std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u8
        })
        .take(LENGTH)
        .collect()
    };
    let hash = |bytes: &[u8]| {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        hasher.finish()
    };
    let (address, server) = origin(1, move |mut stream| {
        head(&mut stream);
        let mut sender = stream.try_clone().unwrap();
        let answer = thread::spawn(move || {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n");
            sender.write_all(head.as_bytes()).unwrap();
            sender.write_all(&body(2)).unwrap();
        });
        let got = hash(&exactly(&mut stream, LENGTH));
        answer.join().unwrap();
        expect_end(&mut stream);
        got
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    let mut sender = client.try_clone().unwrap();
    let asking = thread::spawn(move || {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
        sender.write_all(head.as_bytes()).unwrap();
        sender.write_all(&body(1)).unwrap();
    });
    head(&mut client);
    let got = hash(&exactly(&mut client, LENGTH));
    asking.join().unwrap();
    drop(client);
    assert_eq!(got, hash(&body(2)));
    assert_eq!(server.join().unwrap(), [hash(&body(1))]);
    let record = proxy.record();
    assert_eq!(record.outcome, Outcome::Complete);
    assert!(record.request_bytes.unwrap() > LENGTH as i64);
}

#[test]
fn a_body_is_not_held_back_until_it_is_complete() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        expect(&mut stream, "one");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nuno")
            .unwrap();
        expect(&mut stream, "two");
        stream.write_all(b"dos").unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\none")
        .unwrap();
    expect(
        &mut client,
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nuno",
    );
    client.write_all(b"two").unwrap();
    expect(&mut client, "dos");
    server.join().unwrap();
}

#[test]
fn a_response_until_close_is_complete_when_the_server_closes() {
    let (address, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nall of it")
            .unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let got = head(&mut client);
    assert!(got.starts_with("HTTP/1.1 200 OK\r\nX-A: 1\r\n"), "{got}");
    expect(&mut client, "9\r\nall of it\r\n0\r\n\r\n");
    expect_end(&mut client);
    server.join().unwrap();
    assert_eq!(proxy.record().outcome, Outcome::Complete);
}

#[test]
fn an_http_1_0_client_gets_an_http_1_0_exchange() {
    let (address, server) = origin(1, |mut stream| {
        let request = head(&mut stream);
        assert!(request.starts_with("GET /old HTTP/1.0\r\n"), "{request}");
        stream
            .write_all(b"HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nuntil close")
            .unwrap();
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(b"GET /old HTTP/1.0\r\n\r\n").unwrap();
    expect(&mut client, "HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nuntil close");
    expect_end(&mut client);
    server.join().unwrap();
    let record = proxy.record();
    assert_eq!(record.outcome, Outcome::Complete);
    assert_eq!(record.authority, "");
}
