//! Trace and span ids, and the W3C `traceparent` header that carries them.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

/// The id that all spans of one trace share: 16 bytes, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

/// The id of one span: 8 bytes, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId([u8; 8]);

/// Which span a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The caller's span.
    pub span_id: SpanId,
}

impl TraceId {
    /// A new id, from the keys that the standard library seeds its hash maps with.
    #[must_use]
    pub fn random() -> Self {
        let high = u128::from(random_nonzero());
        Self((high << 64 | u128::from(random_nonzero())).to_be_bytes())
    }
}

impl SpanId {
    /// A new id, from the keys that the standard library seeds its hash maps with.
    #[must_use]
    pub fn random() -> Self {
        Self(random_nonzero().to_be_bytes())
    }
}

impl TraceContext {
    /// The start of a new trace.
    #[must_use]
    pub fn new_trace() -> Self {
        Self {
            trace_id: TraceId::random(),
            span_id: SpanId::random(),
        }
    }

    /// The value of a `traceparent` header, marked as sampled.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace_id, self.span_id)
    }

    /// Reads the value of a `traceparent` header; `None` if it is not a valid one.
    #[must_use]
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut fields = traceparent.trim().split('-');
        let version = from_hex::<1>(fields.next()?)?;
        let trace_id = from_hex::<16>(fields.next()?)?;
        let span_id = from_hex::<8>(fields.next()?)?;
        from_hex::<1>(fields.next()?)?;
        let extra = fields.next().is_some();
        let valid = version != [0xff]
            && !(version == [0] && extra)
            && trace_id != [0; 16]
            && span_id != [0; 8];
        valid.then_some(Self {
            trace_id: TraceId(trace_id),
            span_id: SpanId(span_id),
        })
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn random_nonzero() -> u64 {
    // Each `RandomState` has other keys, so hashing nothing gives another number each time.
    RandomState::new().hash_one(()).max(1)
}

/// Exactly `N` bytes from lower-case digits, the only ones the header may have.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair
            .iter()
            .try_fold(0, |so_far, digit| Some(so_far << 4 | hex_value(*digit)?))?;
    }
    Some(bytes)
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_header_is_read_and_written_alike() {
        let context = TraceContext::parse(HEADER).unwrap();
        assert_eq!(
            context.trace_id.to_string(),
            "4bf92f3577b34da6a3ce929d0e0e4736"
        );
        assert_eq!(context.span_id.to_string(), "00f067aa0ba902b7");
        assert_eq!(context.traceparent(), HEADER);
    }

    #[test]
    fn a_later_version_may_have_more_fields() {
        assert!(TraceContext::parse(&HEADER.replacen("00", "01", 1)).is_some());
        assert!(TraceContext::parse(&format!("{}-new", HEADER.replacen("00", "01", 1))).is_some());
    }

    #[test]
    fn what_the_specification_calls_invalid_is_refused() {
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn new_ids_differ() {
        let ids: std::collections::HashSet<String> = (0..1000)
            .map(|_| TraceContext::new_trace().traceparent())
            .collect();
        assert_eq!(ids.len(), 1000);
    }
}
