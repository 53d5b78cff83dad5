//! Ids of the spans that are written back: the same span gets the same id each time, so a later
//! word on it takes the place of the earlier one.

use skewtap_core::ids::{SpanId, TraceId};

/// The id of span number `ordinal` of the name `role`, under the span `parent` of `trace`.
pub(super) fn derive(trace: TraceId, parent: SpanId, role: &str, ordinal: usize) -> SpanId {
    let mut hash = Fnv::new();
    hash.write(&trace.bytes());
    hash.write(&parent.bytes());
    hash.write(role.as_bytes());
    // A byte that no UTF-8 has, so that no role runs over into the number.
    hash.write(&[0xff]);
    hash.write(&ordinal.to_be_bytes());
    // Of all ids the one of zeros alone is invalid.
    SpanId::from_bytes(&hash.0.to_be_bytes()).unwrap_or(parent)
}

/// FNV-1a of 64 bits: a hash whose values never change, which the standard library has none of.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // Vectors of the authors of FNV.
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut fnv = Fnv::new();
            fnv.write(text.as_bytes());
            assert_eq!(fnv.0, hash, "{text}");
        }
    }

    #[test]
    fn what_differs_has_another_id() {
        let mut ids = BTreeSet::new();
        for trace in 1..10_u128 {
            for parent in 1..10_u64 {
                for role in ["wire waiting", "verdict", "client unread"] {
                    for ordinal in 0..10 {
                        let trace = TraceId::from_bytes(&trace.to_be_bytes()).unwrap();
                        let parent = SpanId::from_bytes(&parent.to_be_bytes()).unwrap();
                        ids.insert(derive(trace, parent, role, ordinal));
                    }
                }
            }
        }
        assert_eq!(ids.len(), 9 * 9 * 3 * 10);
    }
}
