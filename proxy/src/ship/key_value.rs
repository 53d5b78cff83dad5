//! An attribute as OTLP has it. All sizes are known beforehand, so that nothing is written twice.

use skewtap_core::exchange_attributes::{AttributeValue, BorrowedValue};

use super::protobuf::{bytes, integer, integer_size, opening, size};

/// Writes a field that holds a `KeyValue`.
pub(super) fn key_value(out: &mut Vec<u8>, field: u8, key: &str, value: BorrowedValue<'_>) {
    let any = any_size(value);
    opening(out, field, size(key.len()) + size(any));
    bytes(out, 1, key.as_bytes());
    opening(out, 2, any);
    write_any(out, value);
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
