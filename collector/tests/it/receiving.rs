//! Requests over real sockets, and the answers that the protocol asks for.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanKind, TraceContextExt, TraceFlags, TraceState, Tracer,
    TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prost::Message;
use tempfile::tempdir;
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic_types::StatusExt;

use super::running::{Running, config, export_call, get, post, verdict, wait_for};
use super::samples;

const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");
const JSON: (&str, &str) = ("content-type", "application/json");
const GZIP: (&str, &str) = ("content-encoding", "gzip");

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A request of which one span has no trace id.
fn partly_bad() -> ExportTraceServiceRequest {
    let mut request = samples::request(&samples::healthy(1));
    request.resource_spans[1].scope_spans[0].spans[0]
        .trace_id
        .clear();
    request
}

#[tokio::test]
async fn every_form_of_http_leads_to_a_verdict() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let request = |n| samples::request(&samples::asleep(n));
    let json = |n| serde_json::to_vec(&request(n)).unwrap();
    let forms = [
        (1, vec![PROTOBUF], request(1).encode_to_vec()),
        (2, vec![JSON], json(2)),
        (3, vec![PROTOBUF, GZIP], gzip(&request(3).encode_to_vec())),
        (4, vec![JSON, GZIP], gzip(&json(4))),
    ];
    for (n, headers, body) in forms {
        let answer = post(collector.addresses.otlp_http, "/v1/traces", &headers, body).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        assert_eq!(answer.headers["content-type"], headers[0].1);
        let verdict = verdict(collector.addresses.http, n, |_| true).await;
        assert_eq!(verdict.findings.len(), 1, "{verdict:?}");
        assert_eq!(verdict.findings[0].cause, "client_blind_sleep");
        assert!(verdict.flagged);
    }
    collector.stop().await;
}

#[tokio::test]
async fn grpc_leads_to_a_verdict_with_and_without_compression() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let address = format!("http://{}", collector.addresses.otlp_grpc);
    let plain = TraceServiceClient::connect(address).await.unwrap();
    let clients = [
        plain.clone(),
        plain.clone().send_compressed(CompressionEncoding::Gzip),
        plain.send_compressed(CompressionEncoding::Zstd),
    ];
    for (n, mut client) in (1..).zip(clients) {
        let request = samples::request(&samples::healthy(n));
        let answer = client.export(request).await.unwrap().into_inner();
        assert_eq!(answer, ExportTraceServiceResponse::default());
        let verdict = verdict(collector.addresses.http, n, |_| true).await;
        assert!(!verdict.flagged, "{verdict:?}");
    }
    collector.stop().await;
}

/// The client's span of call number 1, sent by the SDK that applications use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_span_of_a_real_sdk_joins_its_exchange() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(format!("http://{}", collector.addresses.otlp_grpc))
        .build()
        .unwrap();
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name("till").build())
        .build();
    let call = samples::healthy(1);
    let client = call.client.clone().unwrap();
    let parent = Context::new().with_remote_span_context(SpanContext::new(
        opentelemetry::TraceId::from_bytes(client.trace_id.bytes()),
        opentelemetry::SpanId::from_bytes(client.span_id.bytes()),
        TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    ));
    let span = SpanBuilder::from_name("GET /cart")
        .with_kind(SpanKind::Server)
        .with_attributes([KeyValue::new("http.route", "/cart")]);
    drop(provider.tracer("till").build_with_context(span, &parent));
    let flushed = tokio::task::spawn_blocking(move || provider.shutdown()).await;
    flushed.unwrap().unwrap();

    let mut others = call.clone();
    others.servers.clear();
    export_call(collector.addresses.otlp_http, &others).await;
    let verdict = verdict(collector.addresses.http, 1, |v| v.server_service.is_some()).await;
    assert_eq!(verdict.server_service.as_deref(), Some("till"));
    assert_eq!(verdict.route.as_deref(), Some("/cart"));
    collector.stop().await;
}

#[tokio::test]
async fn spans_that_cannot_be_used_are_told_as_partial_success() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let http = collector.addresses.otlp_http;

    let body = partly_bad().encode_to_vec();
    let answer = post(http, "/v1/traces", &[PROTOBUF], body).await;
    let partial = ExportTraceServiceResponse::decode(answer.body).unwrap();
    let partial = partial.partial_success.unwrap();
    assert_eq!(partial.rejected_spans, 1);
    assert!(partial.error_message.contains("trace id"), "{partial:?}");

    let body = serde_json::to_vec(&partly_bad()).unwrap();
    let answer = post(http, "/v1/traces", &[JSON], body).await;
    // 64-bit integers are texts in the JSON of protobuf.
    let rejected = &answer.json()["partialSuccess"]["rejectedSpans"];
    assert!(*rejected == "1" || *rejected == 1, "{answer:?}");

    let address = format!("http://{}", collector.addresses.otlp_grpc);
    let mut client = TraceServiceClient::connect(address).await.unwrap();
    let answer = client.export(partly_bad()).await.unwrap().into_inner();
    assert_eq!(answer.partial_success.unwrap().rejected_spans, 1);

    let metrics = get(collector.addresses.http, "/metrics").await.text();
    assert!(
        metrics.contains("skewtap_spans_rejected_total{reason=\"bad_id\"} 3\n"),
        "{metrics}"
    );
    collector.stop().await;
}

#[tokio::test]
async fn what_is_no_request_gets_the_protocols_own_error() {
    let directory = tempdir().unwrap();
    let mut config = config(directory.path());
    config.most_request_bytes = 2_000;
    config.most_decompressed_bytes = 10_000;
    let collector = Running::start(config).await;
    let http = collector.addresses.otlp_http;
    let zeros = vec![0; 10_001];
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: [(StatusCode, Headers, Vec<u8>); 8] = [
        (StatusCode::BAD_REQUEST, &[PROTOBUF], b"garbage".to_vec()),
        (
            StatusCode::BAD_REQUEST,
            &[JSON],
            b"{\"resourceSpans\": 7}".to_vec(),
        ),
        (StatusCode::BAD_REQUEST, &[JSON], vec![0xff; 10]),
        (
            StatusCode::BAD_REQUEST,
            &[PROTOBUF, GZIP],
            b"not gzip".to_vec(),
        ),
        (StatusCode::PAYLOAD_TOO_LARGE, &[PROTOBUF], vec![0; 2_001]),
        (
            StatusCode::PAYLOAD_TOO_LARGE,
            &[PROTOBUF, GZIP],
            gzip(&zeros),
        ),
        (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &[("content-type", "text/plain")],
            vec![],
        ),
        (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &[JSON, ("content-encoding", "br")],
            vec![],
        ),
    ];
    for (status, headers, body) in cases {
        let answer = post(http, "/v1/traces", headers, body).await;
        assert_eq!(answer.status, status, "{headers:?} {answer:?}");
        let message = if headers[0] == PROTOBUF {
            let status = tonic_types::Status::decode(answer.body).unwrap();
            assert_eq!(status.code, Code::InvalidArgument as i32);
            status.message
        } else {
            answer.json()["message"].as_str().unwrap().to_owned()
        };
        assert!(!message.is_empty());
    }
    assert_eq!(
        get(http, "/v1/traces").await.status,
        StatusCode::METHOD_NOT_ALLOWED
    );
    assert_eq!(get(http, "/v2/traces").await.status, StatusCode::NOT_FOUND);
    collector.stop().await;
}

#[tokio::test]
async fn a_grpc_message_that_never_fits_is_not_to_be_sent_again() {
    let directory = tempdir().unwrap();
    let mut config = config(directory.path());
    config.most_decompressed_bytes = 10_000;
    let collector = Running::start(config).await;
    let address = format!("http://{}", collector.addresses.otlp_grpc);
    let plain = TraceServiceClient::connect(address).await.unwrap();
    let gzipped = plain.clone().send_compressed(CompressionEncoding::Gzip);
    let mut huge = samples::request(&samples::healthy(1));
    huge.resource_spans[0].schema_url = "x".repeat(20_000);
    for (mut client, code) in [
        (plain, Code::InvalidArgument),
        (gzipped, Code::ResourceExhausted),
    ] {
        let status = client.export(huge.clone()).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        // Without the details that ask for another try.
        assert!(status.details().is_empty());
    }
    collector.stop().await;
}

#[tokio::test]
async fn a_full_log_refuses_with_the_request_to_try_again() {
    let directory = tempdir().unwrap();
    let mut config = config(directory.path());
    config.most_log_bytes = 0;
    let collector = Running::start(config).await;
    let request = samples::request(&samples::healthy(1));

    let body = request.encode_to_vec();
    let answer = post(
        collector.addresses.otlp_http,
        "/v1/traces",
        &[PROTOBUF],
        body,
    )
    .await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS, "{answer:?}");
    assert_eq!(answer.headers["retry-after"], "1");

    let address = format!("http://{}", collector.addresses.otlp_grpc);
    let mut client = TraceServiceClient::connect(address).await.unwrap();
    let status = client.export(request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let retry = status.get_details_retry_info().unwrap();
    assert_eq!(retry.retry_delay, Some(Duration::from_secs(1)));

    let metrics = get(collector.addresses.http, "/metrics").await.text();
    let refused = "skewtap_otlp_requests_refused_total{reason=\"log_full\"} 2\n";
    assert!(metrics.contains(refused), "{metrics}");
    collector.stop().await;
}

#[tokio::test]
async fn a_store_that_refuses_is_told_and_used_again_once_it_takes() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let body = samples::request(&samples::asleep(1)).encode_to_vec();
    let http = collector.addresses.http;

    let other = rusqlite::Connection::open(directory.path().join("skewtap.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let otlp_http = collector.addresses.otlp_http;
    let answer = post(otlp_http, "/v1/traces", &[PROTOBUF], body.clone()).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
    assert_eq!(answer.headers["retry-after"], "1");
    let health = get(http, "/healthz").await;
    assert_eq!(health.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(health.text().contains("locked"), "{health:?}");

    other.execute_batch("ROLLBACK").unwrap();
    // Without another request: whoever sends only to the healthy must see it get well.
    wait_for(http, "/healthz", |answer| answer.status == StatusCode::OK).await;
    let answer = post(otlp_http, "/v1/traces", &[PROTOBUF], body).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    verdict(http, 1, |verdict| verdict.flagged).await;
    collector.stop().await;
}

#[tokio::test]
async fn other_signals_are_acknowledged_and_counted() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let address = format!("http://{}", collector.addresses.otlp_grpc);
    let mut logs = LogsServiceClient::connect(address).await.unwrap();
    logs.export(ExportLogsServiceRequest::default())
        .await
        .unwrap();
    for path in ["/v1/logs", "/v1/metrics"] {
        let answer = post(collector.addresses.otlp_http, path, &[JSON], "{}").await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.json()["partialSuccess"].is_null(), "{answer:?}");
    }
    let metrics = get(collector.addresses.http, "/metrics").await.text();
    assert!(metrics.contains("skewtap_otlp_requests_ignored_total{signal=\"logs\"} 2\n"));
    assert!(metrics.contains("skewtap_otlp_requests_ignored_total{signal=\"metrics\"} 1\n"));
    collector.stop().await;
}
