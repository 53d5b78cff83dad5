//! `skewtap demo-client`: one request, one client span, and the client's own account of it.
//!
//! The process has a single thread until its response is read, so that what the kernel shows of
//! it meanwhile is its wait loop and nothing else. Its span is held until then.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use opentelemetry::KeyValue;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanKind, Status, Tracer as _, TracerProvider as _,
};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

use super::client_report::ClientReport;
use super::plain_request::{PlainRequest, Response};
use super::report_spans::{HeldSpans, resource};
use super::work::{self, Answer};
use crate::args::DemoClientArgs;
use crate::failure::{Exit, Failure};

/// Longest wait for a response.
const TIMEOUT: Duration = Duration::from_secs(30);
const USER_AGENT: &str = concat!("skewtap-demo/", env!("CARGO_PKG_VERSION"));

/// Sends the request and its span, then prints a [`ClientReport`] as JSON.
///
/// # Errors
/// The exchange failed, or the span could not be sent.
pub(crate) fn run(args: &DemoClientArgs) -> Result<Exit, Failure> {
    exchange_and_report(args).map_err(Failure::broken)?;
    Ok(Exit::Done)
}

fn exchange_and_report(args: &DemoClientArgs) -> anyhow::Result<()> {
    let held = HeldSpans::default();
    let resource = resource(&format!("demo-{}", args.behaviour.name()));
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(held.clone())
        .with_resource(resource.clone())
        .build();
    let outcome = traced_exchange(args, &provider.tracer("skewtap-demo-client"));
    held.send(&resource, &args.otlp)?;
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, &outcome?)?;
    writeln!(stdout)?;
    Ok(())
}

fn traced_exchange(args: &DemoClientArgs, tracer: &SdkTracer) -> anyhow::Result<ClientReport> {
    let began = Instant::now();
    let mut span = tracer
        .span_builder("GET")
        .with_kind(SpanKind::Client)
        .with_attributes(request_attributes(args.server, args.delay_ms))
        .start(tracer);
    let context = span.span_context().clone();
    let request = PlainRequest {
        server: args.server,
        target: work::target(args.delay_ms),
        traceparent: traceparent(&context),
        user_agent: USER_AGENT,
    };
    let response = request.send(args.behaviour, began + TIMEOUT);
    note_response(&mut span, &response);
    span.end();
    let client_seconds = began.elapsed().as_secs_f64();

    let response = response.with_context(|| format!("no response from {}", args.server))?;
    let answer: Answer = serde_json::from_slice(&response.body)
        .with_context(|| format!("a response of status {} without an answer", response.status))?;
    Ok(ClientReport {
        behaviour: args.behaviour,
        delay_seconds: Duration::from_millis(args.delay_ms).as_secs_f64(),
        trace_id: context.trace_id().to_string(),
        span_id: context.span_id().to_string(),
        status: response.status,
        client_seconds,
        server_seconds: answer.server_seconds,
        before_send_seconds: response.sent.duration_since(began).as_secs_f64(),
        unread_seconds: response.unread.as_secs_f64(),
        blind_sleeps: response.wait.blind_sleeps,
        slept_over_response: response.wait.slept_over_response,
    })
}

fn traceparent(context: &SpanContext) -> String {
    format!(
        "00-{}-{}-{:02x}",
        context.trace_id(),
        context.span_id(),
        context.trace_flags()
    )
}

fn request_attributes(server: SocketAddr, delay_ms: u64) -> Vec<KeyValue> {
    vec![
        KeyValue::new("http.request.method", "GET"),
        KeyValue::new(
            "url.full",
            format!("http://{server}{}", work::target(delay_ms)),
        ),
        KeyValue::new("server.address", server.ip().to_string()),
        KeyValue::new("server.port", i64::from(server.port())),
        KeyValue::new("network.peer.address", server.ip().to_string()),
        KeyValue::new("network.peer.port", i64::from(server.port())),
        KeyValue::new("network.protocol.version", "1.1"),
        KeyValue::new("user_agent.original", USER_AGENT),
    ]
}

fn note_response(span: &mut Span, response: &io::Result<Response>) {
    match response {
        Ok(response) => {
            let status = i64::from(response.status);
            span.set_attribute(KeyValue::new("http.response.status_code", status));
            if status >= 400 {
                span.set_status(Status::error(""));
            }
        }
        Err(error) => {
            span.set_attribute(KeyValue::new("error.type", error.kind().to_string()));
            span.set_status(Status::error(error.to_string()));
        }
    }
}
