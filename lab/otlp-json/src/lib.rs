//! Spans as the JSON that OTLP/HTTP carries, and the ids that tie them together.
//!
//! Written by hand, because the programs that use it must link next to nothing: one of them is a
//! client of 2018. It does no input or output and reads no clock.
#![forbid(unsafe_code)]

mod export;
mod ids;
mod json;

pub use export::{Kind, Reporter, Span, Value, export_request};
pub use ids::{SpanId, TraceContext, TraceId};
pub use json::quote;
