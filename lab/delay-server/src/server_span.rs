//! What the server says about an answered request.

use otlp_json::{Kind, Span, SpanId, TraceId, Value, shifted_unix_nanos};
use std::net::SocketAddr;

use crate::connection::Served;

/// The span of a request answered with 200, on a clock that is `clock_offset_ms` ahead of the
/// machine's. Attributes follow the HTTP semantic conventions, stable since 1.23.
pub(crate) fn server_span(
    served: &Served,
    local: SocketAddr,
    peer: SocketAddr,
    clock_offset_ms: i64,
) -> Span {
    let head = &served.head;
    let mut attributes = vec![
        ("http.request.method", text(&head.method)),
        ("http.response.status_code", Value::Integer(200)),
        ("network.peer.address", text(peer.ip())),
        ("network.peer.port", Value::Integer(peer.port().into())),
        ("server.address", text(local.ip())),
        ("server.port", Value::Integer(local.port().into())),
        ("url.path", text(head.path())),
        ("url.scheme", text("http")),
    ];
    if let Some(user_agent) = &head.user_agent {
        attributes.push(("user_agent.original", text(user_agent)));
    }
    Span {
        trace_id: head
            .caller
            .map_or_else(TraceId::random, |caller| caller.trace_id),
        span_id: SpanId::random(),
        parent: head.caller.map(|caller| caller.span_id),
        kind: Kind::Server,
        name: head.method.clone(),
        start_unix_nanos: shifted_unix_nanos(served.start, clock_offset_ms),
        duration_nanos: u64::try_from(served.duration.as_nanos()).unwrap_or(u64::MAX),
        attributes,
        error: None,
    }
}

fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}
