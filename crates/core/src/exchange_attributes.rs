//! An [`ExchangeRecord`] as the attributes of an OpenTelemetry span, and back.
//!
//! The attributes hold the whole record, so an exchange survives any collector,
//! queue or vendor on its way. `http.*`, `url.*` and `network.*` follow the
//! OpenTelemetry semantic conventions; everything else is `skewtap.*`.
//! No OTLP library is named here: proxy and collector bring their own.

mod keys;
mod reader;
mod writer;

use std::collections::BTreeMap;

use crate::exchange::{ExchangeRecord, RECORD_VERSION};
use crate::ids::{SpanId, TraceId};

pub use reader::read;
pub use writer::Writer;

/// The instrumentation scope under which an exchange travels.
pub const SCOPE: &str = "skewtap";

/// The attribute that marks a span as an exchange and gives the version of its form.
pub const VERSION_KEY: &str = "skewtap.record.version";

/// The attribute of the scope that tells how many records a proxy has dropped since it started.
pub const DROPPED_KEY: &str = "skewtap.records.dropped";

/// What the name of an exchange's span begins with; the method follows.
pub const NAME_PREFIX: &str = "skewtap ";

/// The kinds of attribute value an exchange needs; `T` is a text, `I` a list of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeValue<T = String, I = Vec<i64>> {
    /// A truth value.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A text.
    Text(T),
    /// A list of 64-bit integers.
    Ints(I),
}

/// A value as [`Writer::write`] hands it out. The integers are the bounds of a stamp.
pub type BorrowedValue<'a> = AttributeValue<&'a str, [i64; 2]>;

impl From<BorrowedValue<'_>> for AttributeValue {
    fn from(value: BorrowedValue<'_>) -> Self {
        match value {
            AttributeValue::Bool(flag) => Self::Bool(flag),
            AttributeValue::Int(int) => Self::Int(int),
            AttributeValue::Text(text) => Self::Text(text.to_owned()),
            AttributeValue::Ints(bounds) => Self::Ints(bounds.to_vec()),
        }
    }
}

/// An exchange in the form of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeSpan {
    /// Trace the span belongs to.
    pub trace_id: TraceId,
    /// The span's own id.
    pub span_id: SpanId,
    /// The client's span, if the client sent a context.
    pub parent_span_id: Option<SpanId>,
    /// Name of the span, of low cardinality.
    pub name: String,
    /// Earliest stamp, in nanoseconds since the Unix epoch on the proxy's clock.
    pub start_ns: i64,
    /// Latest stamp, on the same clock.
    pub end_ns: i64,
    /// Everything else.
    pub attributes: BTreeMap<String, AttributeValue>,
}

/// Why a span's attributes are not an exchange that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A form this version does not know.
    #[error("record version {found}, this version reads {RECORD_VERSION}")]
    Version {
        /// The version found.
        found: i64,
    },
    /// An attribute that every exchange has is not there.
    #[error("{key} is missing")]
    Missing {
        /// The attribute.
        key: String,
    },
    /// An attribute holds something else than it should.
    #[error("{key} cannot be read: {why}")]
    Malformed {
        /// The attribute.
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Writes a record as a span. [`read`] gives the same record back.
#[must_use]
pub fn write<T: AsRef<str>>(record: &ExchangeRecord<T>) -> ExchangeSpan {
    let mut attributes = BTreeMap::new();
    Writer::default().write(record, &mut |key, value| {
        attributes.insert(key.to_owned(), value.into());
    });
    let (start_ns, end_ns) = record.milestones.bounds().unwrap_or_default();
    ExchangeSpan {
        trace_id: record.trace_id,
        span_id: record.span_id,
        parent_span_id: record.parent_span_id,
        name: format!("{NAME_PREFIX}{}", record.method.as_ref()),
        start_ns,
        end_ns,
        attributes,
    }
}
