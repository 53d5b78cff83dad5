//! The body of a `POST /v1/traces`.

use crate::ids::{SpanId, TraceId};
use crate::json::quote;

/// Who reports: the resource of all its spans.
#[derive(Clone, Debug)]
pub struct Reporter {
    /// `service.name`.
    pub service: String,
    /// `host.name`.
    pub host: String,
    /// `process.pid`.
    pub process_id: u32,
    /// Name and version of the instrumentation scope.
    pub scope: (&'static str, &'static str),
}

/// One finished span.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its trace.
    pub trace_id: TraceId,
    /// Its own id.
    pub span_id: SpanId,
    /// The caller's span.
    pub parent: Option<SpanId>,
    /// Which side of a call it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Nanoseconds since the Unix epoch on the reporter's clock.
    pub start_unix_nanos: u64,
    /// Nanoseconds from start to end, taken from a clock that does not step.
    pub duration_nanos: u64,
    /// Attributes, in the order they are written.
    pub attributes: Vec<(&'static str, Value)>,
    /// What went wrong, if the status is an error.
    pub error: Option<String>,
}

/// Which side of a call a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The side that answers.
    Server,
    /// The side that asks.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
}

/// The JSON of an `ExportTraceServiceRequest` with these spans.
#[must_use]
pub fn export_request(reporter: &Reporter, spans: &[Span]) -> String {
    let resource = attributes(&[
        ("service.name", Value::Text(reporter.service.clone())),
        ("host.name", Value::Text(reporter.host.clone())),
        (
            "process.pid",
            Value::Integer(i64::from(reporter.process_id)),
        ),
    ]);
    let (scope, version) = reporter.scope;
    let spans: Vec<String> = spans.iter().map(span_object).collect();
    format!(
        "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":{resource}}},\
         \"scopeSpans\":[{{\"scope\":{{\"name\":{},\"version\":{}}},\"spans\":[{}]}}]}}]}}",
        quote(scope),
        quote(version),
        spans.join(",")
    )
}

fn span_object(span: &Span) -> String {
    let parent = span
        .parent
        .map_or_else(String::new, |id| format!("\"parentSpanId\":\"{id}\","));
    let status = span.error.as_ref().map_or_else(
        || "{}".to_owned(),
        |message| format!("{{\"code\":2,\"message\":{}}}", quote(message)),
    );
    let kind = match span.kind {
        Kind::Server => 2,
        Kind::Client => 3,
    };
    // 64-bit numbers are texts in OTLP's JSON; a reader may hold numbers as doubles.
    format!(
        "{{\"traceId\":\"{}\",\"spanId\":\"{}\",{parent}\"name\":{},\"kind\":{kind},\
         \"startTimeUnixNano\":\"{}\",\"endTimeUnixNano\":\"{}\",\"attributes\":{},\"status\":{status}}}",
        span.trace_id,
        span.span_id,
        quote(&span.name),
        span.start_unix_nanos,
        span.start_unix_nanos.saturating_add(span.duration_nanos),
        attributes(&span.attributes),
    )
}

fn attributes(all: &[(&'static str, Value)]) -> String {
    let all: Vec<String> = all
        .iter()
        .map(|(key, value)| {
            let value = match value {
                Value::Text(text) => format!("{{\"stringValue\":{}}}", quote(text)),
                Value::Integer(number) => format!("{{\"intValue\":\"{number}\"}}"),
            };
            format!("{{\"key\":{},\"value\":{value}}}", quote(key))
        })
        .collect();
    format!("[{}]", all.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::ids::TraceContext;

    fn reporter() -> Reporter {
        Reporter {
            service: "a \"quoted\" service".to_owned(),
            host: "host".to_owned(),
            process_id: 7,
            scope: ("scope", "1.2"),
        }
    }

    fn span() -> Span {
        let context =
            TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        Span {
            trace_id: context.trace_id,
            span_id: context.span_id,
            parent: Some(context.span_id),
            kind: Kind::Server,
            name: "GET".to_owned(),
            start_unix_nanos: 1_544_712_660_000_000_001,
            duration_nanos: 7_510_000_000,
            attributes: vec![
                ("http.request.method", Value::Text("GET".to_owned())),
                ("http.response.status_code", Value::Integer(200)),
            ],
            error: None,
        }
    }

    /// The expected names and shapes are those of the OTLP specification's JSON examples.
    #[test]
    fn the_document_has_the_shape_of_the_specification() {
        let read: Json = serde_json::from_str(&export_request(&reporter(), &[span()])).unwrap();
        assert_eq!(
            read,
            json!({"resourceSpans": [{
                "resource": {"attributes": [
                    {"key": "service.name", "value": {"stringValue": "a \"quoted\" service"}},
                    {"key": "host.name", "value": {"stringValue": "host"}},
                    {"key": "process.pid", "value": {"intValue": "7"}},
                ]},
                "scopeSpans": [{
                    "scope": {"name": "scope", "version": "1.2"},
                    "spans": [{
                        "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                        "spanId": "00f067aa0ba902b7",
                        "parentSpanId": "00f067aa0ba902b7",
                        "name": "GET",
                        "kind": 2,
                        "startTimeUnixNano": "1544712660000000001",
                        "endTimeUnixNano": "1544712667510000001",
                        "attributes": [
                            {"key": "http.request.method", "value": {"stringValue": "GET"}},
                            {"key": "http.response.status_code", "value": {"intValue": "200"}},
                        ],
                        "status": {},
                    }],
                }],
            }]})
        );
    }

    #[test]
    fn a_root_span_names_no_parent_and_a_failure_says_what_failed() {
        let failed = Span {
            parent: None,
            kind: Kind::Client,
            error: Some("it\nbroke".to_owned()),
            ..span()
        };
        let text = export_request(&reporter(), &[span(), failed]);
        let read: Json = serde_json::from_str(&text).unwrap();
        let spans = &read["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!(spans.as_array().unwrap().len(), 2);
        assert_eq!(spans[1]["kind"], 3);
        assert_eq!(spans[1].get("parentSpanId"), None);
        assert_eq!(
            spans[1]["status"],
            json!({"code": 2, "message": "it\nbroke"})
        );
    }
}
