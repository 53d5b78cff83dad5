//! An attribute as OTLP has it. All sizes are known beforehand, so that nothing is written twice.

use skewtap_core::exchange_attributes::{AttributeValue, BorrowedValue};

use super::protobuf::{bytes, integer, integer_size, nine_bytes, opening, size};

/// Writes a field that holds a `KeyValue`.
pub(super) fn key_value(out: &mut Vec<u8>, field: u8, key: &str, value: BorrowedValue<'_>) {
    if let AttributeValue::Ints(ints) = value
        && let [Some(lo), Some(hi)] = ints.map(|int| nine_bytes(int.cast_unsigned()))
    {
        return times(out, field, key, lo, hi);
    }
    let any = any_size(value);
    opening(out, field, size(key.len()) + size(any));
    bytes(out, 1, key.as_bytes());
    opening(out, 2, any);
    write_any(out, value);
}

/// The same for the bounds of a stamp. Half of all attributes are such, and of these all is known
/// but the key and the bytes of the times.
fn times(out: &mut Vec<u8>, field: u8, key: &str, lo: [u8; 9], hi: [u8; 9]) {
    /// An `AnyValue` that is an integer of nine bytes.
    const INT: [u8; 3] = [0x0a, 10, 0x18];
    /// An `AnyValue` that is an `ArrayValue` of two of these.
    const LIST: [u8; 4] = [0x12, 26, 0x2a, 24];
    const AFTER_KEY: usize = LIST.len() + 2 * (INT.len() + 9);
    opening(out, field, size(key.len()) + AFTER_KEY);
    bytes(out, 1, key.as_bytes());
    out.extend_from_slice(&LIST);
    out.extend_from_slice(&INT);
    out.extend_from_slice(&lo);
    out.extend_from_slice(&INT);
    out.extend_from_slice(&hi);
}

/// The size of an `AnyValue`.
fn any_size(value: BorrowedValue<'_>) -> usize {
    match value {
        AttributeValue::Text(text) => size(text.len()),
        AttributeValue::Bool(_) => int_size(1),
        AttributeValue::Int(int) => int_size(int),
        AttributeValue::Ints(ints) => size(list_size(ints)),
    }
}

/// The size of an `AnyValue` that is an integer.
fn int_size(int: i64) -> usize {
    1 + integer_size(int.cast_unsigned())
}

/// The size of an `ArrayValue`.
fn list_size(ints: [i64; 2]) -> usize {
    ints.map(|int| size(int_size(int))).iter().sum()
}

fn write_any(out: &mut Vec<u8>, value: BorrowedValue<'_>) {
    match value {
        AttributeValue::Text(text) => bytes(out, 1, text.as_bytes()),
        AttributeValue::Bool(flag) => integer(out, 2, u64::from(flag)),
        AttributeValue::Int(int) => integer(out, 3, int.cast_unsigned()),
        AttributeValue::Ints(ints) => {
            opening(out, 5, list_size(ints));
            for int in ints {
                opening(out, 1, int_size(int));
                integer(out, 3, int.cast_unsigned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
    use opentelemetry_proto::tonic::resource::v1::Resource;
    use prost::Message as _;

    use super::*;

    fn text(text: &str) -> (BorrowedValue<'_>, Value) {
        let read = Value::StringValue(text.to_owned());
        (AttributeValue::Text(text), read)
    }

    #[test]
    fn every_kind_of_value_is_what_otlp_libraries_read() {
        const NOW: i64 = 1_700_000_000_123_456_789;
        let list = |ints: [i64; 2]| {
            let values = ints.map(|int| AnyValue {
                value: Some(Value::IntValue(int)),
            });
            let values = values.to_vec();
            (
                AttributeValue::Ints(ints),
                Value::ArrayValue(ArrayValue { values }),
            )
        };
        let long = "long".repeat(100);
        let int = |int| (AttributeValue::Int(int), Value::IntValue(int));
        for (value, expected) in [
            list([NOW, NOW + 1]),
            list([-1, NOW]),
            list([0, i64::MAX]),
            list([i64::MIN, 127]),
            text(""),
            text(&long),
            int(0),
            int(i64::MIN),
            (AttributeValue::Bool(true), Value::BoolValue(true)),
            (AttributeValue::Bool(false), Value::BoolValue(false)),
        ] {
            let mut out = Vec::new();
            key_value(&mut out, 1, "key", value);
            // Field 1 of a `Resource` is such an attribute, too.
            let read = Resource::decode(&out[..]).unwrap();
            let [KeyValue { key, value, .. }] = &read.attributes[..] else {
                panic!("{read:?}");
            };
            assert_eq!(key, "key");
            assert_eq!(value.as_ref().unwrap().value.as_ref(), Some(&expected));
        }
    }
}
