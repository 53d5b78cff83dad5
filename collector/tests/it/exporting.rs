//! Spans sent on to a backend: as they came, in spite of trouble, and never at the cost of
//! receiving.

use std::time::{Duration, Instant};

use http::StatusCode;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::ResourceSpans;
use prost::Message;
use skewtap_collector::{Collector, Config, ExportConfig, ExportProtocol, StartError};
use tempfile::tempdir;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::fake_backend::{Backend, POISON, Reply, spans};
use super::running::{Running, config, export, export_call, get, post, verdict, wait_for_metrics};
use super::samples;

const ANY: &str = "127.0.0.1:0";

/// A collector that sends received spans on, and writes nothing back.
fn exporting(store: &std::path::Path, url: String) -> Config {
    let mut config = config(store);
    config.export = Some(ExportConfig {
        write_back: false,
        ..ExportConfig::new(url.parse().unwrap())
    });
    config
}

/// In an order that does not depend on how requests were joined.
fn sorted(mut resources: Vec<ResourceSpans>) -> Vec<Vec<u8>> {
    let mut encoded: Vec<_> = resources.drain(..).map(|r| r.encode_to_vec()).collect();
    encoded.sort();
    encoded
}

/// A request of one span, which nothing is done with here.
fn lone(name: &str, n: u64) -> ExportTraceServiceRequest {
    let mut request = samples::request(&samples::healthy(n));
    request.resource_spans.truncate(1);
    request.resource_spans[0].scope_spans[0].spans[0].name = name.to_owned();
    request
}

async fn wait_for_line(collector: &Running, line: &str) {
    let line = format!("{line}\n");
    wait_for_metrics(collector, |text| text.contains(&line)).await;
}

#[tokio::test]
async fn spans_arrive_as_they_came_over_either_transport() {
    for protocol in [ExportProtocol::Grpc, ExportProtocol::Http] {
        let directory = tempdir().unwrap();
        let backend = match protocol {
            ExportProtocol::Grpc => Backend::grpc(ANY, []).await,
            ExportProtocol::Http => Backend::http(ANY, []).await,
        };
        let mut config = exporting(directory.path(), format!("http://{}", backend.address));
        let export_to = config.export.as_mut().unwrap();
        export_to.protocol = protocol;
        let key = ("x-api-key".parse().unwrap(), "sesame".parse().unwrap());
        export_to.headers.push(key);
        let collector = Running::start(config).await;
        let mut sent = Vec::new();
        for n in 1..=3 {
            let request = samples::request(&samples::healthy(n));
            export(collector.addresses.otlp_http, &request).await;
            sent.extend(request.resource_spans);
        }
        let json = samples::request(&samples::healthy(4));
        let body = serde_json::to_vec(&json).unwrap();
        let headers = [("content-type", "application/json")];
        let answer = post(collector.addresses.otlp_http, "/v1/traces", &headers, body).await;
        assert_eq!(answer.status, StatusCode::OK);
        sent.extend(json.resource_spans);
        let taken = backend.resources(|taken| taken.len() >= sent.len()).await;
        assert_eq!(sorted(taken), sorted(sent));
        assert!(backend.headers().iter().all(|h| h["x-api-key"] == "sesame"));
        wait_for_line(
            &collector,
            "skewtap_export_spans_total{origin=\"received\"} 12",
        )
        .await;
        wait_for_line(&collector, "skewtap_export_waiting_spans 0").await;
        collector.stop().await;
    }
}

#[tokio::test]
async fn a_request_is_made_again_where_the_backend_asks_for_it() {
    let retry = ErrorDetails::with_retry_info(Some(Duration::from_millis(50)));
    let exhausted = Status::with_error_details(Code::ResourceExhausted, "busy", retry);
    let grpc = [
        Status::unavailable("starting"),
        Status::aborted("moved"),
        exhausted,
    ];
    let http = [
        (StatusCode::SERVICE_UNAVAILABLE, None),
        (StatusCode::TOO_MANY_REQUESTS, Some("1")),
        (StatusCode::BAD_GATEWAY, None),
    ];
    for (backend, protocol) in [
        (
            Backend::grpc(ANY, grpc.map(Reply::Grpc)).await,
            ExportProtocol::Grpc,
        ),
        (
            Backend::http(ANY, http.map(|(s, h)| Reply::Http(s, h))).await,
            ExportProtocol::Http,
        ),
    ] {
        let directory = tempdir().unwrap();
        let mut config = exporting(directory.path(), format!("http://{}", backend.address));
        config.export.as_mut().unwrap().protocol = protocol;
        let collector = Running::start(config).await;
        export(collector.addresses.otlp_http, &lone("late", 1)).await;
        let taken = backend.resources(|taken| !taken.is_empty()).await;
        assert_eq!(spans(&taken)[0].name, "late");
        assert_eq!(backend.headers().len(), 4);
        wait_for_line(&collector, "skewtap_export_retries_total 3").await;
        collector.stop().await;
    }
}

#[tokio::test]
async fn what_a_backend_refuses_for_good_is_counted_and_takes_nothing_with_it() {
    let directory = tempdir().unwrap();
    let backend = Backend::http(ANY, []).await;
    let mut config = exporting(directory.path(), format!("http://{}", backend.address));
    config.export.as_mut().unwrap().protocol = ExportProtocol::Http;
    let collector = Running::start(config).await;
    // At once, so that they are joined.
    for (n, name) in [(1, "good"), (2, POISON), (3, "fine")] {
        export(collector.addresses.otlp_http, &lone(name, n)).await;
    }
    let taken = backend.resources(|taken| taken.len() == 2).await;
    let names: Vec<_> = spans(&taken).into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["good", "fine"]);
    wait_for_line(
        &collector,
        "skewtap_export_dropped_spans_total{reason=\"refused\"} 1",
    )
    .await;
    collector.stop().await;
}

#[tokio::test]
async fn what_a_backend_does_not_take_of_a_request_is_counted() {
    let directory = tempdir().unwrap();
    let exhausted = Status::resource_exhausted("for good, since no pause is named");
    let replies = [Reply::Grpc(exhausted), Reply::TakenBut(1)];
    let backend = Backend::grpc(ANY, replies).await;
    let url = format!("http://{}", backend.address);
    let collector = Running::start(exporting(directory.path(), url)).await;
    export(collector.addresses.otlp_http, &lone("refused", 1)).await;
    wait_for_line(
        &collector,
        "skewtap_export_dropped_spans_total{reason=\"refused\"} 1",
    )
    .await;
    export_call(collector.addresses.otlp_http, &samples::healthy(2)).await;
    wait_for_line(
        &collector,
        "skewtap_export_dropped_spans_total{reason=\"rejected\"} 1",
    )
    .await;
    wait_for_line(
        &collector,
        "skewtap_export_spans_total{origin=\"received\"} 3",
    )
    .await;
    collector.stop().await;
}

/// The number in the metric that begins with `name`; 0 where there is none yet.
fn value(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_backend_that_is_down_costs_what_exceeds_the_queue_and_nothing_else() {
    let directory = tempdir().unwrap();
    // An address that nothing listens on.
    let address = Backend::grpc(ANY, []).await.address.to_string();
    let mut config = exporting(directory.path(), format!("http://{address}"));
    config.export.as_mut().unwrap().most_queued_bytes = 64 * 1024;
    let collector = Running::start(config).await;
    let (sent_requests, mut slowest) = (100, Duration::ZERO);
    for n in 1..=sent_requests {
        let began = Instant::now();
        export_call(collector.addresses.otlp_http, &samples::healthy(n)).await;
        slowest = slowest.max(began.elapsed());
    }
    // The first connection alone is given five seconds; nobody waits for it.
    assert!(slowest < Duration::from_secs(3), "{slowest:?}");
    verdict(collector.addresses.http, sent_requests, |_| true).await;
    let text = get(collector.addresses.http, "/metrics").await.text();
    let dropped = value(
        &text,
        "skewtap_export_dropped_spans_total{reason=\"queue_full\"}",
    );
    let waiting = value(&text, "skewtap_export_waiting_spans");
    assert_eq!(dropped + waiting, 3 * sent_requests);
    assert!(
        dropped > 0 && waiting > 0,
        "{dropped} dropped, {waiting} waiting"
    );
    // Each call has some 5 KiB.
    assert!(waiting <= 3 * 64, "{waiting}");

    let backend = Backend::grpc(&address, []).await;
    let expected = usize::try_from(waiting).unwrap();
    let taken = backend.resources(|taken| taken.len() >= expected).await;
    assert_eq!(taken.len(), expected);
    export_call(
        collector.addresses.otlp_http,
        &samples::healthy(sent_requests + 1),
    )
    .await;
    backend.resources(|taken| taken.len() == expected + 3).await;
    wait_for_line(&collector, "skewtap_export_waiting_spans 0").await;
    collector.stop().await;
}

#[tokio::test]
async fn what_was_acknowledged_is_sent_on_before_a_stop() {
    let directory = tempdir().unwrap();
    let backend = Backend::grpc(ANY, []).await;
    let url = format!("http://{}", backend.address);
    let collector = Running::start(exporting(directory.path(), url)).await;
    export_call(collector.addresses.otlp_http, &samples::healthy(1)).await;
    collector.stop().await;
    assert_eq!(backend.resources(|_| true).await.len(), 3);
}

#[tokio::test]
async fn metrics_are_pushed_where_that_is_asked_for_and_a_last_time_at_the_end() {
    let directory = tempdir().unwrap();
    let backend = Backend::http(ANY, []).await;
    let mut config = exporting(directory.path(), format!("http://{}", backend.address));
    let export_to = config.export.as_mut().unwrap();
    export_to.protocol = ExportProtocol::Http;
    // So long that the last push is the only one.
    export_to.metrics_every = Some(Duration::from_secs(3600));
    let collector = Running::start(config).await;
    export_call(collector.addresses.otlp_http, &samples::healthy(1)).await;
    collector.stop().await;
    let pushed = backend.last_metrics().unwrap();
    let scope = &pushed.resource_metrics[0].scope_metrics[0];
    let received = scope
        .metrics
        .iter()
        .find(|m| m.name == "skewtap_spans_received");
    let Some(metric::Data::Sum(sum)) = &received.unwrap().data else {
        panic!("no sum: {received:?}");
    };
    let value = sum.data_points[0].value;
    assert_eq!(value, Some(number_data_point::Value::AsDouble(3.0)));
}

#[tokio::test]
async fn a_backend_that_cannot_be_one_is_refused_at_the_start() {
    let directory = tempdir().unwrap();
    for (url, says) in [
        ("ftp://127.0.0.1:4317", "http://host:port"),
        ("http://127.0.0.1:14317", "come back"),
        ("http://localhost:14318/v1/traces", "come back"),
    ] {
        let mut config = exporting(directory.path(), url.to_owned());
        // An address of loopback that nothing else here uses.
        config.otlp_grpc = "127.43.17.1:14317".parse().unwrap();
        config.otlp_http = "127.43.17.1:14318".parse().unwrap();
        let error = Collector::bind(config).await.unwrap_err();
        assert!(matches!(error, StartError::Export { .. }), "{error}");
        let words = error.to_string();
        assert!(
            words.contains(says) && words.contains("--export-otlp"),
            "{words}"
        );
    }
}
