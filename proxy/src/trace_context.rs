//! The W3C trace context of a request: read, and added where there is none.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use skewtap_core::ids::{SpanId, TraceId};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Length of a `traceparent` of version 00, the part that later versions begin with.
const LENGTH: usize = 55;

/// What an exchange belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace_id: TraceId,
    /// The client's span if the client sent a context, the exchange's own if the proxy added it.
    pub(crate) span_id: SpanId,
    pub(crate) sampled: bool,
    /// Whether the proxy added it.
    pub(crate) added: bool,
}

impl TraceContext {
    /// Of an exchange that belongs to nothing else.
    pub(crate) fn new() -> Option<Self> {
        let random = RandomIdGenerator::default();
        Some(Self {
            trace_id: TraceId::from_bytes(&random.new_trace_id().to_bytes()).ok()?,
            span_id: SpanId::from_bytes(&random.new_span_id().to_bytes()).ok()?,
            sampled: true,
            added: true,
        })
    }
}

/// Reads the context of a request. Where there is none that is valid, a new one takes its
/// place; a valid one is left untouched.
pub(crate) fn read_or_add(headers: &mut HeaderMap) -> Option<TraceContext> {
    if let Some(found) = read(headers) {
        return Some(found);
    }
    let new = TraceContext::new()?;
    let text = format!("00-{}-{}-01", new.trace_id, new.span_id);
    headers.insert(
        TRACEPARENT,
        HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).ok()?,
    );
    Some(new)
}

fn read(headers: &HeaderMap) -> Option<TraceContext> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    parse(value.as_bytes())
}

/// Reads a `traceparent`; `None` if it is not valid.
pub(crate) fn parse(value: &[u8]) -> Option<TraceContext> {
    let (known, rest) = value.split_at_checked(LENGTH)?;
    let text = std::str::from_utf8(known).ok()?;
    let lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    if !known.iter().all(lower) {
        return None;
    }
    let mut parts = text.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let lengths = [version.len(), trace.len(), span.len(), flags.len()];
    if lengths != [2, 32, 16, 2] || version == "ff" {
        return None;
    }
    let ends_well = match version {
        "00" => rest.is_empty(),
        _ => rest.is_empty() || rest.starts_with(b"-"),
    };
    if !ends_well {
        return None;
    }
    Some(TraceContext {
        trace_id: trace.parse().ok()?,
        span_id: span.parse().ok()?,
        sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
        added: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    fn sampled(value: &str) -> Option<bool> {
        let found = parse(value.as_bytes())?;
        assert_eq!(found.trace_id.to_string(), TRACE);
        assert_eq!(found.span_id.to_string(), PARENT);
        Some(found.sampled)
    }

    #[test]
    fn contexts_are_read_as_the_specification_says() {
        for (value, expected) in [
            (format!("00-{TRACE}-{PARENT}-01"), Some(true)),
            (format!("00-{TRACE}-{PARENT}-03"), Some(true)),
            (format!("00-{TRACE}-{PARENT}-00"), Some(false)),
            (format!("01-{TRACE}-{PARENT}-01-what"), Some(true)),
            (format!("01-{TRACE}-{PARENT}-01"), Some(true)),
            (format!("01-{TRACE}-{PARENT}-01what"), None),
            (format!("00-{}-{PARENT}-01", TRACE.to_uppercase()), None),
            (format!("ff-{TRACE}-{PARENT}-01"), None),
            (format!("00-{}-{PARENT}-01", "0".repeat(32)), None),
            (format!("00-{TRACE}-{}-01", "0".repeat(16)), None),
            (format!("00-{TRACE}-{PARENT}-01-x"), None),
            (format!("00-{TRACE}-{PARENT}-0"), None),
            (format!("00-{TRACE}-{PARENT}-0g"), None),
            (format!("00{TRACE}--{PARENT}-01-"), None),
            (String::new(), None),
        ] {
            assert_eq!(sampled(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_valid_context_passes_untouched() {
        let value = format!("00-{TRACE}-{PARENT}-01");
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, value.parse().unwrap());
        let found = read_or_add(&mut headers).unwrap();
        assert!(!found.added);
        assert_eq!(headers[TRACEPARENT], value);
    }

    #[test]
    fn two_contexts_are_none_and_replaced_by_one() {
        let mut headers = HeaderMap::new();
        for flags in ["00", "01"] {
            let value = format!("00-{TRACE}-{PARENT}-{flags}");
            headers.append(TRACEPARENT, value.parse().unwrap());
        }
        let added = read_or_add(&mut headers).unwrap();
        assert!(added.added && added.sampled);
        assert_eq!(headers.get_all(TRACEPARENT).iter().count(), 1);
        let read_back = read(&headers).unwrap();
        assert_eq!(read_back.span_id, added.span_id);
        assert_eq!(read_back.trace_id, added.trace_id);
    }
}
