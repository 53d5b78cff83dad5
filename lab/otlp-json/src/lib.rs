//! Spans as the JSON that OTLP/HTTP carries, the ids that tie them together, and their times.
//!
//! Written by hand, because the programs that use it must link next to nothing: one of them is a
//! client of 2018. It does no input or output and reads no clock.
#![forbid(unsafe_code)]

mod clock;
mod export;
mod ids;
mod json;

pub use clock::shifted_unix_nanos;
pub use export::{Kind, Reporter, Span, Value, export_request};
pub use ids::{SpanId, TraceContext, TraceId};
pub use json::quote;
