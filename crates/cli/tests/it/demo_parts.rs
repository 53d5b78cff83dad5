//! The demo's clients and server against each other, without proxy or verdict: what they plant
//! and report must be true before anything is judged by it.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

use super::finished::{code, end, run, stderr};
use super::otlp_sink::{OtlpSink, hex, integer, text};
use super::program::Running;

/// How far a busy machine may push a time, in seconds; less than the distance of each planted
/// delay from the edge of the loop's turn.
const SLACK: f64 = 0.2;

struct Run {
    report: Report,
    sink: OtlpSink,
    origin: Running,
}

struct Report {
    client_seconds: f64,
    server_seconds: f64,
    before_send_seconds: f64,
    unread_seconds: f64,
    slept_over_response: bool,
    trace_id: String,
    span_id: String,
}

fn exchange(behaviour: &str, delay_ms: &str) -> Run {
    let sink = OtlpSink::start();
    let origin = Running::start(&["demo-origin", "--otlp", &sink.url()]);
    let server = origin.address("traffic").to_string();
    let mut arguments = vec!["demo-client", "--behaviour", behaviour];
    let url = sink.url();
    arguments.extend(["--server", &server, "--delay-ms", delay_ms, "--otlp", &url]);
    let output = run(&arguments);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = Report {
        client_seconds: printed["client_seconds"].as_f64().unwrap(),
        server_seconds: printed["server_seconds"].as_f64().unwrap(),
        before_send_seconds: printed["before_send_seconds"].as_f64().unwrap(),
        unread_seconds: printed["unread_seconds"].as_f64().unwrap(),
        slept_over_response: printed["slept_over_response"].as_bool().unwrap(),
        trace_id: printed["trace_id"].as_str().unwrap().to_owned(),
        span_id: printed["span_id"].as_str().unwrap().to_owned(),
    };
    Run {
        report,
        sink,
        origin,
    }
}

fn seconds(span: &Span) -> f64 {
    Duration::from_nanos(span.end_time_unix_nano - span.start_time_unix_nano).as_secs_f64()
}

#[test]
fn the_blind_client_is_late_by_what_is_left_of_its_sleep() {
    let Run { report, .. } = exchange("blind-sleep", "1250");
    assert!(report.slept_over_response);
    assert!(report.server_seconds >= 1.25);
    // What it sent and waited for, it knows: the rest of its time is the sleep.
    let arrived = report.client_seconds - report.unread_seconds;
    assert!((1.25..=1.25 + SLACK).contains(&arrived), "{arrived}");
    assert!((0.0..=SLACK).contains(&report.before_send_seconds));
    // It watches for one second and sleeps for one; nothing wakes it before two are over.
    assert!(report.client_seconds >= 2.0, "{}", report.client_seconds);
    assert!(
        report.client_seconds <= 2.0 + SLACK,
        "{}",
        report.client_seconds
    );
}

#[test]
fn the_blind_client_is_in_time_when_it_watches() {
    let Run { report, .. } = exchange("blind-sleep", "600");
    assert!(!report.slept_over_response);
    let lag = report.client_seconds - report.server_seconds;
    assert!((0.0..SLACK).contains(&lag), "{lag}");
}

#[test]
fn the_healthy_client_is_in_time_when_the_blind_one_sleeps() {
    let Run { report, .. } = exchange("healthy", "1250");
    assert!(!report.slept_over_response);
    let lag = report.client_seconds - report.server_seconds;
    assert!((0.0..SLACK).contains(&lag), "{lag}");
}

#[test]
fn both_sides_report_one_trace() {
    let run = exchange("healthy", "300");
    assert_eq!(end(run.origin), Some(0));
    let (report, sink) = (run.report, run.sink);

    let client = sink.spans_of("demo-healthy");
    let [client] = client.as_slice() else {
        panic!("{client:?}")
    };
    assert_eq!(client.kind(), SpanKind::Client);
    assert_eq!(hex(&client.trace_id), report.trace_id);
    assert_eq!(hex(&client.span_id), report.span_id);
    assert!(seconds(client) <= report.client_seconds);
    assert!(seconds(client) >= report.server_seconds);
    assert_eq!(
        text(&client.attributes, "http.request.method").unwrap(),
        "GET"
    );
    assert_eq!(
        integer(&client.attributes, "http.response.status_code"),
        Some(200)
    );

    let server = sink.spans_of("demo-origin");
    let [server] = server.as_slice() else {
        panic!("{server:?}")
    };
    assert_eq!(server.kind(), SpanKind::Server);
    assert_eq!(server.trace_id, client.trace_id);
    assert_eq!(server.parent_span_id, client.span_id);
    assert!((0.3..=report.client_seconds).contains(&seconds(server)));
    assert_eq!(text(&server.attributes, "http.route").unwrap(), "/work");
    assert!(integer(&server.attributes, "network.peer.port").is_some());
}

#[test]
fn a_client_without_server_fails_and_says_whom_it_asked() {
    let sink = OtlpSink::start();
    let url = sink.url();
    // The sink's own port does not speak HTTP/1.1, so it is no server to this client.
    let server = sink.address.to_string();
    let mut arguments = vec!["demo-client", "--behaviour", "healthy", "--server", &server];
    arguments.extend(["--delay-ms", "1", "--otlp", &url]);
    let output = run(&arguments);
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains(&server), "{}", stderr(&output));
    let spans = sink.spans_of("demo-healthy");
    assert_eq!(spans.len(), 1, "a failed exchange is reported too");
}

#[test]
fn a_part_ends_with_the_one_that_started_it() {
    let sink = OtlpSink::start();
    let origin = Running::start(&["demo-origin", "--otlp", &sink.url()]);
    let began = Instant::now();
    assert_eq!(end(origin), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10));
}
