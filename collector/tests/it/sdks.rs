//! The OpenTelemetry SDKs of Python, Node.js and Rust, as they come, over every transport.
//!
//! The first two are installed by `lab/sdks.sh`, and set up by nothing but the variables that
//! OpenTelemetry defines.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use opentelemetry::trace::{SpanKind, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use skewtap_core::verdict_json::VerdictJson;
use tempfile::tempdir;

use super::running::{Running, config, wait_for};

const GRPC: &str = "grpc";
const PROTOBUF: &str = "http/protobuf";
const JSON: &str = "http/json";

/// A file below the root of the sources; one that `lab/sdks.sh` puts there must be there.
fn file(path: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path);
    assert!(
        path.exists(),
        "{} is not there: run lab/sdks.sh",
        path.display()
    );
    path
}

fn python() -> Command {
    let mut command = Command::new(file("target/sdks/python/bin/python"));
    command.arg(file("lab/sdks/send.py"));
    command
}

fn node() -> Command {
    let mut command = Command::new("node");
    command
        .env("NODE_PATH", file("target/sdks/node/node_modules"))
        .arg(file("lab/sdks/send.js"));
    command
}

/// Runs a program that sends, and gives the words it prints.
async fn send(mut program: Command, collector: &Running, protocol: &str) -> (Output, String) {
    let address = match protocol {
        GRPC => collector.addresses.otlp_grpc,
        _ => collector.addresses.otlp_http,
    };
    program
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        .env("OTEL_EXPORTER_OTLP_INSECURE", "true")
        .env("OTEL_SERVICE_NAME", "lab")
        .env("OTEL_TRACES_EXPORTER", "otlp")
        .env("OTEL_METRICS_EXPORTER", "otlp")
        .env("OTEL_LOGS_EXPORTER", "otlp")
        .stdin(Stdio::null());
    let run = tokio::task::spawn_blocking(move || program.output());
    let output = run.await.unwrap().unwrap();
    assert!(output.status.success(), "{protocol}: {output:?}");
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    (output, printed)
}

/// The verdict on the ids that a sender printed.
async fn verdict(collector: &Running, printed: &str) -> VerdictJson {
    let (trace, span) = printed.trim().split_once(' ').unwrap();
    let path = format!("/api/v1/exchanges/{trace}/{span}");
    let answer = wait_for(collector.addresses.http, &path, |a| a.status.is_success()).await;
    serde_json::from_slice(&answer.body).unwrap()
}

/// Sends over `protocol` with logs and metrics beside, and checks what the collector has.
async fn sends_all_signals(program: fn() -> Command, protocol: &str) {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let (output, printed) = send(program(), &collector, protocol).await;
    let verdict = verdict(&collector, &printed).await;
    assert_eq!(verdict.client_service.as_deref(), Some("lab"), "{output:?}");
    assert_eq!(verdict.server_service.as_deref(), Some("lab"));
    assert_eq!(verdict.route.as_deref(), Some("/cart"));
    let (client, server) = (
        verdict.client_seconds.unwrap(),
        verdict.server_seconds.unwrap(),
    );
    assert!(client >= server && server > 0.0, "{client} s, {server} s");
    let metrics = super::running::get(collector.addresses.http, "/metrics")
        .await
        .text();
    for signal in ["logs", "metrics"] {
        let ignored = format!("skewtap_otlp_requests_ignored_total{{signal=\"{signal}\"}} ");
        assert!(metrics.contains(&ignored), "{metrics}");
    }
    let mut refused = metrics
        .lines()
        .filter(|line| line.starts_with("skewtap_otlp_requests_refused_total{"));
    assert!(refused.all(|line| line.ends_with(" 0")), "{metrics}");
    collector.stop().await;
}

#[tokio::test]
async fn python_over_grpc() {
    sends_all_signals(python, GRPC).await;
}

#[tokio::test]
async fn python_over_http() {
    sends_all_signals(python, PROTOBUF).await;
}

#[tokio::test]
async fn node_over_grpc() {
    sends_all_signals(node, GRPC).await;
}

#[tokio::test]
async fn node_over_http() {
    sends_all_signals(node, PROTOBUF).await;
}

#[tokio::test]
async fn node_over_http_in_json() {
    sends_all_signals(node, JSON).await;
}

/// Compressed as the SDKs do it, and with the token that they are told to send.
#[tokio::test]
async fn python_with_compression_and_a_token() {
    let directory = tempdir().unwrap();
    let tokens = directory.path().join("tokens");
    std::fs::write(&tokens, "open-sesame\n").unwrap();
    let mut config = config(&directory.path().join("store"));
    config.otlp_token_file = Some(tokens);
    let collector = Running::start(config).await;
    for (protocol, compression) in [(GRPC, "gzip"), (PROTOBUF, "gzip"), (PROTOBUF, "deflate")] {
        let mut program = python();
        program
            .env("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
            .env(
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20open-sesame",
            );
        let (_, printed) = send(program, &collector, protocol).await;
        verdict(&collector, &printed).await;
    }
    collector.stop().await;
}

/// Sends a client's and a server's span, and gives what the other programs print.
fn send_by(exporter: SpanExporter) -> String {
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name("lab").build())
        .build();
    let tracer = provider.tracer("lab");
    let client = tracer
        .span_builder("GET")
        .with_kind(SpanKind::Client)
        .start(&tracer);
    let context = Context::current_with_span(client);
    let server = tracer
        .span_builder("GET /cart")
        .with_kind(SpanKind::Server)
        .with_attributes([KeyValue::new("http.route", "/cart")])
        .start_with_context(&tracer, &context);
    drop(server);
    let ids = context.span().span_context().clone();
    drop(context);
    provider.shutdown().unwrap();
    format!("{} {}", ids.trace_id(), ids.span_id())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rust_over_grpc_and_http() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let grpc = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(format!("http://{}", collector.addresses.otlp_grpc))
        .build();
    let url = format!("http://{}/v1/traces", collector.addresses.otlp_http);
    let over_http = |protocol| {
        let url = url.clone();
        // It may not be made on a thread of the runtime, for it waits for its requests.
        tokio::task::spawn_blocking(move || {
            let exporter = SpanExporter::builder().with_http();
            exporter.with_endpoint(url).with_protocol(protocol).build()
        })
    };
    let exporters = [
        grpc,
        over_http(Protocol::HttpBinary).await.unwrap(),
        over_http(Protocol::HttpJson).await.unwrap(),
    ];
    for exporter in exporters {
        let exporter = exporter.unwrap();
        let printed = tokio::task::spawn_blocking(move || send_by(exporter))
            .await
            .unwrap();
        let verdict = verdict(&collector, &printed).await;
        assert_eq!(verdict.route.as_deref(), Some("/cart"));
        assert!(verdict.client_seconds.unwrap() >= verdict.server_seconds.unwrap());
    }
    collector.stop().await;
}
