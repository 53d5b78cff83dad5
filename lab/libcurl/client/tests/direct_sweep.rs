//! The linked libcurl does what was recorded of it, and both sides report what happened.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "the helpers of a test fail it by panicking"
)]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use delay_server::{DelayServer, Settings};
use serde_json::Value;

/// Recorded on another day: delay, client's time, lag in seconds, and three columns more.
const RECORDED: &str = match env!("CARGO_PKG_NAME").as_bytes() {
    b"libcurl-blind-sleep" => include_str!("../../sweep-buggy.tsv"),
    _ => include_str!("../../sweep-fixed.tsv"),
};
/// How far the windows of two runs may lie apart.
const TOLERANCE_SECONDS: f64 = 0.04;
/// Calls of 33 that the machine's other work may have put out of step.
const MOST_OUT_OF_STEP: usize = 3;

#[test]
fn a_sweep_lags_where_it_was_recorded_to_and_both_sides_report_it() {
    let (collector, documents) = start_collector();
    let server = start_server(Some(collector));
    let sweep = "--method expect --timeout-ms 30000 --sweep-ms 250:8250:250";
    let output = client(&format!(
        "--server {server} --otlp http://{collector} {sweep}"
    ));
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output);
    let recorded = recorded();
    assert_eq!((lines.len(), recorded.len()), (33, 33));

    let (mut clients, mut servers) = (HashMap::new(), HashMap::new());
    while clients.len() < 33 || servers.len() < 33 {
        let document = documents.recv_timeout(Duration::from_secs(10)).unwrap();
        for span in spans(&document) {
            let (by, key) = if span["kind"] == 3 {
                (&mut clients, "spanId")
            } else {
                (&mut servers, "parentSpanId")
            };
            assert!(
                by.insert(text(&span[key]), span.clone()).is_none(),
                "reported twice"
            );
        }
    }
    let mut out_of_step = Vec::new();
    for (line, (delay, lag)) in lines.iter().zip(recorded) {
        let measured = number(&line["lag_seconds"]);
        assert_eq!(number(&line["delay_seconds"]), delay);
        if (measured - lag).abs() >= TOLERANCE_SECONDS {
            out_of_step.push(format!("at {delay}: {measured}, was {lag}"));
        }
        let id = text(&line["span_id"]);
        let (client, server) = (&clients[&id], &servers[&id]);
        assert_eq!(
            (&client["traceId"], &server["traceId"]),
            (&line["trace_id"], &line["trace_id"])
        );
        assert!((seconds(client) - number(&line["client_seconds"])).abs() < 1e-6);
        assert!(seconds(server) >= delay, "at {delay}: {}", seconds(server));
    }
    // A client that a busy machine starts late keeps another rhythm than the recorded one.
    assert!(out_of_step.len() <= MOST_OUT_OF_STEP, "{out_of_step:#?}");
}

#[test]
fn a_client_with_another_clock_reports_other_times() {
    let (collector, documents) = start_collector();
    let server = start_server(None);
    let before = unix_nanos();
    let line = format!("--server {server} --otlp http://{collector} --clock-offset-ms 3000");
    let output = client(&line);
    let after = unix_nanos();
    assert!(output.status.success(), "{output:?}");
    let reported = spans(&documents.recv().unwrap());
    let start = text(&reported[0]["startTimeUnixNano"])
        .parse::<u128>()
        .unwrap();
    assert!(
        (before..=after).contains(&(start - 3_000_000_000)),
        "{before} {start} {after}"
    );
}

#[test]
fn a_warm_connection_is_reused_and_both_its_calls_are_reported() {
    let (collector, documents) = start_collector();
    let server = start_server(None);
    let output = client(&format!(
        "--server {server} --otlp http://{collector} --warm"
    ));
    let lines = lines(&output);
    let reported = spans(&documents.recv().unwrap());
    assert_eq!((lines.len(), reported.len()), (1, 2));
    assert_eq!(reported[1]["spanId"], lines[0]["span_id"]);
    assert_ne!(reported[0]["traceId"], reported[1]["traceId"]);
}

#[test]
fn a_request_through_a_forward_proxy_names_the_server_in_full() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap();
    let seen = thread::spawn(move || {
        let (stream, _) = proxy.accept().unwrap();
        let mut request_line = String::new();
        BufReader::new(&stream)
            .read_line(&mut request_line)
            .unwrap();
        (&stream)
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        request_line
    });
    let output = client(&format!(
        "--server origin.test:81 --proxy http://{address} --no-span"
    ));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        seen.join().unwrap(),
        "GET http://origin.test:81/?delay_ms=0 HTTP/1.1\r\n"
    );
}

#[test]
fn the_exit_code_says_what_failed() {
    let server = start_server(None);
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let code = |line: &str| client(line).status.code();
    assert_eq!(code(&format!("--server {server} --no-span")), Some(0));
    let late = format!("--server {server} --no-span --delay-ms 2000 --timeout-ms 50");
    let output = client(&late);
    assert_eq!(output.status.code(), Some(1));
    let line = &lines(&output)[0];
    assert_eq!(
        (&line["curlcode"], &line["http_status"]),
        (&Value::from(28), &Value::Null)
    );
    assert_eq!(code("--server"), Some(2));
    assert_eq!(
        code(&format!("--server {server} --otlp http://{nobody}")),
        Some(3)
    );
}

fn start_server(collector: Option<SocketAddr>) -> SocketAddr {
    let collector = collector.map(|address| format!("http://{address}").parse().unwrap());
    let (listen, service) = (([127, 0, 0, 1], 0).into(), "under-test".to_owned());
    let server = DelayServer::bind(Settings {
        listen,
        collector,
        service,
        clock_offset_ms: 0,
    })
    .unwrap();
    let address = server.address();
    thread::spawn(move || server.run());
    address
}

/// An OTLP/HTTP endpoint that hands on every document it gets.
fn start_collector() -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, documents) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let document = read_document(&mut BufReader::new(&stream));
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                .unwrap();
            if sender.send(document).is_err() {
                return;
            }
        }
    });
    (address, documents)
}

fn read_document(input: &mut impl std::io::BufRead) -> Value {
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
    serde_json::from_slice(&document).unwrap()
}

fn client(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_client"))
        .args(arguments.split(' '))
        .output()
        .unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Delay and lag in seconds.
fn recorded() -> Vec<(f64, f64)> {
    let rows = RECORDED
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    rows.map(|row| {
        let mut columns = row.split('\t').map(|column| column.parse().unwrap());
        (columns.next().unwrap(), columns.nth(1).unwrap())
    })
    .collect()
}

fn spans(document: &Value) -> Vec<Value> {
    document["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap()
        .clone()
}

fn seconds(span: &Value) -> f64 {
    let nanos = |key: &str| text(&span[key]).parse::<u64>().unwrap();
    Duration::from_nanos(nanos("endTimeUnixNano") - nanos("startTimeUnixNano")).as_secs_f64()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is not a text"))
        .to_owned()
}

fn unix_nanos() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos()
}
