//! Real connections to a real server, and the reports that a collector gets of them.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail it by panicking"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use delay_server::{DelayServer, Settings};
use serde_json::{Value, json};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

#[test]
fn an_answer_takes_its_delay_and_the_span_says_so() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = start(Some(&collector), 0);
    let before = unix_nanos();
    let (answer, took) = ask(server, &head("GET /a?delay_ms=120 HTTP/1.1", ""));
    let after = unix_nanos();
    assert_eq!(
        answer,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/plain\r\n\r\nok\n"
    );
    assert!(took >= Duration::from_millis(120));

    let document = receive(&collector);
    let span = &document["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(
        (&span["traceId"], &span["parentSpanId"]),
        (&json!(TRACE), &json!(CALLER))
    );
    assert_eq!(span["kind"], 2);
    assert_eq!(attribute(span, "url.path"), json!({"stringValue": "/a"}));
    assert_eq!(
        attribute(span, "http.response.status_code"),
        json!({"intValue": "200"})
    );
    let (start, end) = (
        nanos(&span["startTimeUnixNano"]),
        nanos(&span["endTimeUnixNano"]),
    );
    assert!(
        before <= start && end <= after + 1_000_000,
        "{before} {start} {end} {after}"
    );
    assert!(end - start >= 120_000_000 && u128::from(end - start) <= took.as_nanos());
}

#[test]
fn reported_times_follow_the_wanted_clock() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = start(Some(&collector), -5_000);
    let before = unix_nanos();
    ask(server, &head("GET / HTTP/1.1", ""));
    let after = unix_nanos();
    let document = receive(&collector);
    let span = &document["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    let start = nanos(&span["startTimeUnixNano"]) + 5_000_000_000;
    assert!(
        (before..=after).contains(&start),
        "{before} {start} {after}"
    );
}

#[test]
fn a_body_may_wait_for_the_go_ahead() {
    let server = start(None, 0);
    let mut stream = TcpStream::connect(server).unwrap();
    let expecting = "Expect: 100-continue\r\nContent-Length: 4\r\n";
    stream
        .write_all(head("POST / HTTP/1.1", expecting).as_bytes())
        .unwrap();
    let mut go_ahead = [0; 25];
    stream.read_exact(&mut go_ahead).unwrap();
    assert_eq!(&go_ahead, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"body").unwrap();
    assert!(rest_of_answer(&stream).starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_go_ahead_can_be_withheld() {
    let server = start(None, 0);
    let expecting = "Expect: 100-continue\r\nContent-Length: 4\r\n";
    let (answer, _) = ask(
        server,
        &(head("POST /?no100=1 HTTP/1.1", expecting) + "body"),
    );
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
}

#[test]
fn one_connection_carries_several_requests() {
    let server = start(None, 0);
    let stream = TcpStream::connect(server).unwrap();
    for _ in 0..3 {
        (&stream)
            .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut answer = [0; 67];
        (&stream).read_exact(&mut answer).unwrap();
        assert!(answer.ends_with(b"\r\n\r\nok\n"));
    }
}

#[test]
fn a_request_it_cannot_read_gets_a_reason() {
    let (answer, _) = ask(start(None, 0), "GET / HTTP/3\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 505 "), "{answer:?}");
}

fn start(collector: Option<&TcpListener>, clock_offset_ms: i64) -> SocketAddr {
    let collector = collector.map(|listener| {
        format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap()
    });
    let listen = ([127, 0, 0, 1], 0).into();
    let service = "under-test".to_owned();
    let server = DelayServer::bind(Settings {
        listen,
        collector,
        service,
        clock_offset_ms,
    })
    .unwrap();
    let address = server.address();
    thread::spawn(move || server.run());
    address
}

fn head(request_line: &str, more: &str) -> String {
    format!(
        "{request_line}\r\nHost: x\r\nConnection: close\r\n\
         traceparent: 00-{TRACE}-{CALLER}-01\r\n{more}\r\n"
    )
}

/// The whole answer to a request after which the server closes, and how long it took.
fn ask(server: SocketAddr, request: &str) -> (String, Duration) {
    let mut stream = TcpStream::connect(server).unwrap();
    let asked = Instant::now();
    stream.write_all(request.as_bytes()).unwrap();
    (rest_of_answer(&stream), asked.elapsed())
}

fn rest_of_answer(mut stream: &TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The document of the next report.
fn receive(collector: &TcpListener) -> Value {
    let (stream, _) = collector.accept().unwrap();
    let mut input = BufReader::new(&stream);
    let mut length = 0;
    let mut line = String::new();
    input.read_line(&mut line).unwrap();
    assert_eq!(line, "POST /v1/traces HTTP/1.1\r\n");
    while line != "\r\n" {
        line.clear();
        input.read_line(&mut line).unwrap();
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut document = vec![0; length];
    input.read_exact(&mut document).unwrap();
    (&stream)
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        .unwrap();
    serde_json::from_slice(&document).unwrap()
}

fn attribute(span: &Value, key: &str) -> Value {
    let all = span["attributes"].as_array().unwrap();
    all.iter()
        .find(|attribute| attribute["key"] == key)
        .unwrap()["value"]
        .clone()
}

fn nanos(text: &Value) -> u64 {
    text.as_str().unwrap().parse().unwrap()
}

fn unix_nanos() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos()
        .try_into()
        .unwrap()
}
