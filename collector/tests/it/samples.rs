//! Calls whose truth is known, and the same as OTLP requests.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use skewtap_core::audit::Observed;
use skewtap_core::clock::Stamp;
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::exchange_attributes::{self, AttributeValue, SCOPE};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::milestone::Milestones;
use skewtap_core::reported_span::{ReportedSpan, SpanKind};
use skewtap_simulator::scenario::{Meanwhile, Scenario};
use skewtap_simulator::world::World;

/// A healthy call number `n`, which the server takes 20 ms for.
pub(super) fn healthy(n: u64) -> Observed {
    numbered(Scenario::healthy(20_000_000).observe(&World::PLAIN), n)
}

/// Call number `n`, of which the response lies unread for 400 ms while the client sleeps blind.
pub(super) fn asleep(n: u64) -> Observed {
    let scenario = Scenario {
        unread_ns: 400_000_000,
        meanwhile: Meanwhile::SleepsBlind,
        ..Scenario::healthy(20_000_000)
    };
    numbered(scenario.observe(&World::PLAIN), n)
}

/// The same call, begun `later_ns` nanoseconds later.
pub(super) fn later(mut observed: Observed, later_ns: i64) -> Observed {
    for exchange in &mut observed.exchanges {
        let mut moved = Milestones::default();
        for (milestone, stamp) in exchange.milestones.iter() {
            let (lo, hi) = (stamp.lo() + later_ns, stamp.hi() + later_ns);
            moved.note(milestone, Stamp::between(lo, hi, stamp.source()));
        }
        exchange.milestones = moved;
    }
    for span in observed.client.iter_mut().chain(&mut observed.servers) {
        span.start_ns += later_ns;
        span.end_ns += later_ns;
    }
    observed
}

/// The trace that all of call number `n` is in.
pub(super) fn trace_id(n: u64) -> TraceId {
    let mut bytes = [0x4b; 16];
    bytes[8..].copy_from_slice(&n.to_be_bytes());
    TraceId::from_bytes(&bytes).unwrap()
}

/// The client's span of every call.
pub(super) fn client_span_id() -> SpanId {
    SpanId::from_bytes(&[1; 8]).unwrap()
}

fn numbered(mut observed: Observed, n: u64) -> Observed {
    let trace_id = trace_id(n);
    for exchange in &mut observed.exchanges {
        exchange.trace_id = trace_id;
    }
    for span in observed.client.iter_mut().chain(&mut observed.servers) {
        span.trace_id = trace_id;
    }
    observed
}

/// All of a call as one request.
pub(super) fn request(observed: &Observed) -> ExportTraceServiceRequest {
    let exchanges = observed.exchanges.iter().map(exchange);
    let spans = observed.client.iter().chain(&observed.servers).map(span);
    ExportTraceServiceRequest {
        resource_spans: exchanges.chain(spans).collect(),
    }
}

/// An exchange as the proxy sends it.
pub(super) fn exchange(record: &ExchangeRecord) -> ResourceSpans {
    let written = exchange_attributes::write(record);
    let span = Span {
        trace_id: written.trace_id.bytes().to_vec(),
        span_id: written.span_id.bytes().to_vec(),
        parent_span_id: parent(written.parent_span_id),
        name: written.name,
        start_time_unix_nano: written.start_ns.try_into().unwrap(),
        end_time_unix_nano: written.end_ns.try_into().unwrap(),
        attributes: written
            .attributes
            .into_iter()
            .map(|(key, value)| attribute(&key, any(value)))
            .collect(),
        ..Span::default()
    };
    resource_spans(vec![], SCOPE, span)
}

/// A span as an SDK sends it.
pub(super) fn span(reported: &ReportedSpan) -> ResourceSpans {
    let text = |text: &str| Value::StringValue(text.to_owned());
    let mut attributes = Vec::new();
    if let Some(method) = &reported.method {
        attributes.push(attribute("http.request.method", text(method)));
    }
    if let Some(status) = reported.status {
        let status = Value::IntValue(status.into());
        attributes.push(attribute("http.response.status_code", status));
    }
    let span = Span {
        trace_id: reported.trace_id.bytes().to_vec(),
        span_id: reported.span_id.bytes().to_vec(),
        parent_span_id: parent(reported.parent_span_id),
        name: reported.name.clone(),
        kind: match reported.kind {
            SpanKind::Unspecified => 0,
            SpanKind::Internal => 1,
            SpanKind::Server => 2,
            SpanKind::Client => 3,
            SpanKind::Producer => 4,
            SpanKind::Consumer => 5,
        },
        start_time_unix_nano: reported.start_ns.try_into().unwrap(),
        end_time_unix_nano: reported.end_ns.try_into().unwrap(),
        attributes,
        ..Span::default()
    };
    let resource = vec![
        attribute("service.name", text(&reported.service)),
        attribute("service.instance.id", text(&reported.instance)),
    ];
    let mut spans = resource_spans(resource, &reported.scope, span);
    let scope = spans.scope_spans[0].scope.as_mut().unwrap();
    scope.version = reported.scope_version.clone();
    spans
}

/// One attribute.
pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// One span with its resource and scope.
pub(super) fn resource_spans(resource: Vec<KeyValue>, scope: &str, span: Span) -> ResourceSpans {
    ResourceSpans {
        resource: Some(Resource {
            attributes: resource,
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            scope: Some(InstrumentationScope {
                name: scope.to_owned(),
                ..InstrumentationScope::default()
            }),
            spans: vec![span],
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    }
}

fn parent(id: Option<SpanId>) -> Vec<u8> {
    id.map_or_else(Vec::new, |id| id.bytes().to_vec())
}

fn any(value: AttributeValue) -> Value {
    match value {
        AttributeValue::Bool(flag) => Value::BoolValue(flag),
        AttributeValue::Int(int) => Value::IntValue(int),
        AttributeValue::Text(text) => Value::StringValue(text),
        AttributeValue::Ints(ints) => Value::ArrayValue(ArrayValue {
            values: ints
                .into_iter()
                .map(|int| AnyValue {
                    value: Some(Value::IntValue(int)),
                })
                .collect(),
        }),
    }
}
