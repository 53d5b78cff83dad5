//! Records as OTLP spans, encoded as they come.

use bytes::Bytes;
use skewtap_core::exchange_attributes::{NAME_PREFIX, Writer};

use super::key_value::key_value;
use super::protobuf::{bytes, fixed32, fixed64, integer, message, opening};
use crate::record::Record;

/// `SPAN_KIND_INTERNAL`: neither end of a call, but what was seen in between.
const INTERNAL: u64 = 1;

/// Bits of a span's flags: sampled; it is known whether the parent is of another process; it is.
const SAMPLED: u32 = 0x01;
const PARENT_IS_KNOWN: u32 = 0x100;
const PARENT_IS_REMOTE: u32 = 0x200;

/// Most memory that a batch which was sent is kept for, in bytes.
const MOST_KEPT: usize = 4 << 20;

/// Spans: fields of a `ScopeSpans`.
#[derive(Debug, Default)]
pub(super) struct SpanBatch {
    spans: Vec<u8>,
    count: usize,
}

impl SpanBatch {
    /// Adds the span of a record.
    pub(super) fn add(&mut self, record: &Record<'_>, writer: &mut Writer) {
        message(&mut self.spans, 2, |out| span(out, record, writer));
        self.count += 1;
    }

    /// Spans in it.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The spans as they are sent.
    pub(super) fn into_bytes(self) -> Bytes {
        self.spans.into()
    }

    /// An empty batch, in the memory of one that was sent if nobody else has it.
    pub(super) fn in_place_of(mut sent: Bytes) -> Option<Self> {
        let suits = sent.len() <= MOST_KEPT && sent.is_unique();
        // What is cut off is not moved.
        sent.truncate(0);
        suits.then(|| Self {
            spans: sent.into(),
            count: 0,
        })
    }
}

fn span(out: &mut Vec<u8>, record: &Record<'_>, writer: &mut Writer) {
    bytes(out, 1, &record.trace_id.bytes());
    bytes(out, 2, &record.span_id.bytes());
    let mut flags = PARENT_IS_KNOWN;
    if let Some(parent) = record.parent_span_id {
        bytes(out, 4, &parent.bytes());
        flags |= PARENT_IS_REMOTE;
    }
    if record.sampled {
        flags |= SAMPLED;
    }
    opening(
        out,
        5,
        NAME_PREFIX.len().saturating_add(record.method.len()),
    );
    out.extend_from_slice(NAME_PREFIX.as_bytes());
    out.extend_from_slice(record.method.as_bytes());
    integer(out, 6, INTERNAL);
    let (start, end) = record.milestones.bounds().unwrap_or_default();
    // A time before 1970 is given as 1970: no exchange has one.
    fixed64(out, 7, u64::try_from(start).unwrap_or(0));
    fixed64(out, 8, u64::try_from(end).unwrap_or(0));
    writer.write(record, &mut |key, value| {
        key_value(out, 9, key, value);
    });
    fixed32(out, 16, flags);
}

#[cfg(test)]
pub(super) mod tests;
