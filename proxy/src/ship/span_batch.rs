//! Records in the form of one OTLP request.

use bytes::Bytes;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::exchange_attributes::{AttributeValue, DROPPED_KEY, ExchangeSpan, SCOPE, write};

use super::protobuf::{bytes, fixed32, fixed64, integer, message};

/// The name of the proxy as a service.
const SERVICE: &str = "skewtap-proxy";

/// `SPAN_KIND_INTERNAL`: neither end of a call, but what was seen in between.
const INTERNAL: u64 = 1;

/// Bits of a span's flags: sampled; it is known whether the parent is of another process; it is.
const SAMPLED: u32 = 0x01;
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;

/// Spans, encoded as they come.
#[derive(Debug)]
pub(super) struct SpanBatch {
    /// A `Resource`, as a field of a `ResourceSpans`.
    resource: Vec<u8>,
    /// Fields of a `ScopeSpans`, one a span.
    spans: Vec<u8>,
    count: usize,
}

impl SpanBatch {
    /// An empty batch of this process.
    pub(super) fn new() -> Self {
        Self {
            resource: resource(),
            spans: Vec::new(),
            count: 0,
        }
    }

    /// Adds the span of a record.
    pub(super) fn add(&mut self, record: &ExchangeRecord) {
        let (sampled, record) = (record.sampled, write(record));
        message(&mut self.spans, 2, |out| span(out, &record, sampled));
        self.count += 1;
    }

    /// Spans in it.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// An `ExportTraceServiceRequest` as a gRPC message: a byte that says it is not compressed,
    /// four that give its length, and itself. It tells that `dropped` records were dropped so far.
    pub(super) fn message(&self, dropped: u64) -> Bytes {
        let mut out = Vec::with_capacity(self.resource.len() + self.spans.len() + 128);
        out.extend_from_slice(&[0; 5]);
        message(&mut out, 1, |out| {
            out.extend_from_slice(&self.resource);
            message(out, 2, |out| {
                message(out, 1, |out| {
                    bytes(out, 1, SCOPE.as_bytes());
                    bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
                    attribute(out, 3, DROPPED_KEY, |out| integer(out, 3, dropped));
                });
                out.extend_from_slice(&self.spans);
            });
        });
        let length = u32::try_from(out.len().saturating_sub(5)).unwrap_or(u32::MAX);
        if let Some(place) = out.get_mut(1..5) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        out.into()
    }

    /// Makes it empty; its memory is kept for the next spans.
    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.count = 0;
    }
}

fn resource() -> Vec<u8> {
    let instance = RandomIdGenerator::default().new_trace_id().to_string();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.as_deref().map(str::trim);
    let mut out = Vec::new();
    message(&mut out, 1, |out| {
        text(out, 1, "service.name", SERVICE);
        text(out, 1, "service.instance.id", &instance);
        if let Some(host) = host {
            text(out, 1, "host.name", host);
        }
    });
    out
}

fn span(out: &mut Vec<u8>, record: &ExchangeSpan, sampled: bool) {
    bytes(out, 1, &record.trace_id.bytes());
    bytes(out, 2, &record.span_id.bytes());
    let mut flags = PARENT_IS_KNOWN;
    if let Some(parent) = record.parent_span_id {
        bytes(out, 4, &parent.bytes());
        flags |= PARENT_IS_REMOTE;
    }
    if sampled {
        flags |= SAMPLED;
    }
    bytes(out, 5, record.name.as_bytes());
    integer(out, 6, INTERNAL);
    // A time before 1970 is given as 1970: no exchange has one.
    fixed64(out, 7, u64::try_from(record.start_ns).unwrap_or(0));
    fixed64(out, 8, u64::try_from(record.end_ns).unwrap_or(0));
    for (key, value) in &record.attributes {
        attribute(out, 9, key, |out| any(out, value));
    }
    fixed32(out, 16, flags);
}

fn text(out: &mut Vec<u8>, field: u8, key: &str, value: &str) {
    attribute(out, field, key, |out| bytes(out, 1, value.as_bytes()));
}

/// A `KeyValue`, whose `AnyValue` `value` writes.
fn attribute(out: &mut Vec<u8>, field: u8, key: &str, value: impl FnOnce(&mut Vec<u8>)) {
    message(out, field, |out| {
        bytes(out, 1, key.as_bytes());
        message(out, 2, value);
    });
}

/// The field of an `AnyValue`.
fn any(out: &mut Vec<u8>, value: &AttributeValue) {
    match value {
        AttributeValue::Text(value) => bytes(out, 1, value.as_bytes()),
        AttributeValue::Bool(value) => integer(out, 2, u64::from(*value)),
        AttributeValue::Int(value) => integer(out, 3, value.cast_unsigned()),
        AttributeValue::Ints(values) => message(out, 5, |out| {
            for value in values {
                message(out, 1, |out| integer(out, 3, value.cast_unsigned()));
            }
        }),
    }
}

#[cfg(test)]
mod tests;
