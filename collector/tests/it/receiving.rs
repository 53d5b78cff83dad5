//! Requests over real sockets, and the answers that the protocol asks for.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use http::StatusCode;
use opentelemetry::trace::{
    SpanBuilder, SpanContext, SpanKind, TraceContextExt, TraceFlags, TraceState, Tracer,
    TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric,
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
const ZSTD: (&str, &str) = ("content-encoding", "zstd");
const DEFLATE: (&str, &str) = ("content-encoding", "deflate");

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 0).unwrap()
}

/// A zstd body that asks to look back on 128 MiB.
fn zstd_of_a_wide_window() -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 0).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&[1; 100]).unwrap();
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
        (5, vec![PROTOBUF, ZSTD], zstd(&request(5).encode_to_vec())),
        (6, vec![JSON, ZSTD], zstd(&json(6))),
        (
            7,
            vec![PROTOBUF, DEFLATE],
            deflate(&request(7).encode_to_vec()),
        ),
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
        plain.clone().send_compressed(CompressionEncoding::Zstd),
        plain.send_compressed(CompressionEncoding::Deflate),
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
    let collector = Running::start(config).await;
    let http = collector.addresses.otlp_http;
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: [(StatusCode, Headers, Vec<u8>); 6] = [
        (StatusCode::BAD_REQUEST, &[PROTOBUF], b"garbage".to_vec()),
        (
            StatusCode::BAD_REQUEST,
            &[JSON],
            b"{\"resourceSpans\": 7}".to_vec(),
        ),
        (StatusCode::BAD_REQUEST, &[JSON], vec![0xff; 10]),
        (StatusCode::PAYLOAD_TOO_LARGE, &[PROTOBUF], vec![0; 2_001]),
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
async fn a_compressed_body_is_held_to_its_form_and_to_its_size() {
    let directory = tempdir().unwrap();
    let mut config = config(directory.path());
    config.most_decompressed_bytes = 10_000;
    let collector = Running::start(config).await;
    let zeros = vec![0; 10_001];
    let text = b"neither gzip nor zstd nor zlib".to_vec();
    let (bad, large) = (StatusCode::BAD_REQUEST, StatusCode::PAYLOAD_TOO_LARGE);
    for (status, encoding, body) in [
        (bad, GZIP, text.clone()),
        (bad, ZSTD, text.clone()),
        (bad, DEFLATE, text),
        (bad, ZSTD, zstd_of_a_wide_window()),
        (large, GZIP, gzip(&zeros)),
        (large, ZSTD, zstd(&zeros)),
        (large, DEFLATE, deflate(&zeros)),
    ] {
        let headers = [PROTOBUF, encoding];
        let answer = post(collector.addresses.otlp_http, "/v1/traces", &headers, body).await;
        assert_eq!(answer.status, status, "{encoding:?} {answer:?}");
        let status = tonic_types::Status::decode(answer.body).unwrap();
        assert_eq!(status.code, Code::InvalidArgument as i32);
    }
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

fn logs() -> ExportLogsServiceRequest {
    let records = ScopeLogs {
        log_records: vec![LogRecord::default(); 3],
        ..ScopeLogs::default()
    };
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![records],
            ..ResourceLogs::default()
        }],
    }
}

fn metrics() -> ExportMetricsServiceRequest {
    let gauge = Gauge {
        data_points: vec![NumberDataPoint::default(); 2],
    };
    let metric = Metric {
        data: Some(metric::Data::Gauge(gauge)),
        ..Metric::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            scope_metrics: vec![ScopeMetrics {
                metrics: vec![metric],
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
}

/// As OTLP has it: success, with the number of what was not kept and the reason in words.
#[tokio::test]
async fn other_signals_are_said_to_be_unsupported() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let address = format!("http://{}", collector.addresses.otlp_grpc);
    let mut client = LogsServiceClient::connect(address.clone()).await.unwrap();
    let answer = client.export(logs()).await.unwrap().into_inner();
    let partial = answer.partial_success.unwrap();
    assert_eq!(partial.rejected_log_records, 3);
    assert!(partial.error_message.contains("logs"), "{partial:?}");
    let nothing = client.export(ExportLogsServiceRequest::default());
    assert_eq!(nothing.await.unwrap().into_inner().partial_success, None);

    let mut client = MetricsServiceClient::connect(address).await.unwrap();
    let answer = client.export(metrics()).await.unwrap().into_inner();
    assert_eq!(answer.partial_success.unwrap().rejected_data_points, 2);

    let http = collector.addresses.otlp_http;
    let answer = post(http, "/v1/logs", &[PROTOBUF], logs().encode_to_vec()).await;
    assert_eq!(answer.status, StatusCode::OK);
    let answer = ExportLogsServiceResponse::decode(answer.body).unwrap();
    assert_eq!(answer.partial_success.unwrap().rejected_log_records, 3);
    let body = serde_json::to_vec(&metrics()).unwrap();
    let answer = post(http, "/v1/metrics", &[JSON], body).await;
    assert_eq!(answer.status, StatusCode::OK);
    let message = &answer.json()["partialSuccess"]["errorMessage"];
    assert!(message.as_str().unwrap().contains("metrics"), "{answer:?}");

    let counted = get(collector.addresses.http, "/metrics").await.text();
    assert!(counted.contains("skewtap_otlp_requests_ignored_total{signal=\"logs\"} 3\n"));
    assert!(counted.contains("skewtap_otlp_requests_ignored_total{signal=\"metrics\"} 2\n"));
    collector.stop().await;
}

#[tokio::test]
async fn grpc_that_is_no_request_gets_the_protocols_own_error() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let address = format!("http://{}", collector.addresses.otlp_grpc);
    // A text where the request has a list of messages.
    let status = grpc_of_another_form(
        &address,
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    )
    .await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    assert!(status.details().is_empty());
    let status = grpc_of_another_form(
        &address,
        "/opentelemetry.proto.collector.trace.v1.TraceService/Import",
    )
    .await;
    assert_eq!(status.code(), Code::Unimplemented, "{status}");
    collector.stop().await;
}

/// Calls `method` with a message that is none of OTLP's, and gives the refusal.
async fn grpc_of_another_form(address: &str, method: &'static str) -> tonic::Status {
    let channel = tonic::transport::Endpoint::new(address.to_owned())
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let codec = tonic_prost::ProstCodec::<String, ExportTraceServiceResponse>::default();
    let path = http::uri::PathAndQuery::from_static(method);
    let request = tonic::Request::new("no message of OTLP".to_owned());
    client.unary(request, path, codec).await.unwrap_err()
}
