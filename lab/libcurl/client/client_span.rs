//! What the client says about its calls.

use otlp_json::{Kind, Reporter, Span, Value, export_request, shifted_unix_nanos};

use crate::call::Call;
use crate::easy;
use crate::options::Options;

/// The OTLP document with a client span for each call. Attributes follow the HTTP semantic
/// conventions, stable since 1.23.
pub(crate) fn document(options: &Options, calls: &[Call]) -> String {
    let reporter = Reporter {
        service: options.service.clone(),
        host: std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned()),
        process_id: std::process::id(),
        scope: (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
    };
    let spans: Vec<Span> = calls
        .iter()
        .map(|call| client_span(options, call))
        .collect();
    export_request(&reporter, &spans)
}

fn client_span(options: &Options, call: &Call) -> Span {
    let transfer = &call.transfer;
    let mut attributes = vec![
        ("http.request.method", text(call.method.http())),
        ("server.address", text(options.host())),
        ("server.port", Value::Integer(options.port().into())),
        ("url.full", text(&call.url)),
        ("user_agent.original", text(&easy::user_agent())),
    ];
    if let Some(status) = transfer.status {
        attributes.push(("http.response.status_code", Value::Integer(status.into())));
    }
    let failure = transfer.failure.as_ref();
    let error_type = failure
        .map(|failure| format!("curlcode {}", failure.code))
        .or_else(|| {
            transfer
                .status
                .filter(|status| *status >= 400)
                .map(|code| code.to_string())
        });
    if let Some(kind) = &error_type {
        attributes.push(("error.type", text(kind)));
    }
    Span {
        trace_id: call.context.trace_id,
        span_id: call.context.span_id,
        parent: None,
        kind: Kind::Client,
        name: call.method.http().to_owned(),
        start_unix_nanos: shifted_unix_nanos(transfer.start, options.clock_offset_ms),
        duration_nanos: u64::try_from(transfer.duration.as_nanos()).unwrap_or(u64::MAX),
        attributes,
        error: error_type
            .map(|_| failure.map_or_else(String::new, |failure| failure.message.clone())),
    }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}
