//! A record in the form that the OpenTelemetry SDK exports.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::exchange_attributes::{AttributeValue, SCOPE, write};

/// The span of a record.
pub(super) fn of(record: &ExchangeRecord) -> SpanData {
    let sampled = record.sampled;
    let span = write(record);
    let flags = if sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::NOT_SAMPLED
    };
    let parent = span.parent_span_id.map(|id| SpanId::from_bytes(id.bytes()));
    let attributes = span.attributes.into_iter();
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(span.trace_id.bytes()),
            SpanId::from_bytes(span.span_id.bytes()),
            flags,
            false,
            TraceState::NONE,
        ),
        parent_span_id: parent.unwrap_or(SpanId::INVALID),
        parent_span_is_remote: parent.is_some(),
        span_kind: SpanKind::Internal,
        name: span.name.into(),
        start_time: time(span.start_ns),
        end_time: time(span.end_ns),
        attributes: attributes
            .map(|(key, value)| KeyValue::new(key, convert(value)))
            .collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder(SCOPE)
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn convert(value: AttributeValue) -> Value {
    match value {
        AttributeValue::Bool(value) => Value::Bool(value),
        AttributeValue::Int(value) => Value::I64(value),
        AttributeValue::Text(value) => Value::String(value.into()),
        AttributeValue::Ints(values) => Value::Array(Array::I64(values)),
    }
}

/// A time before 1970 is given as 1970: no exchange has one.
fn time(ns: i64) -> SystemTime {
    let since = Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
    SystemTime::UNIX_EPOCH + since
}
