//! As much of protobuf's wire format as an OTLP request needs.

/// Writes a field that holds an integer.
pub(super) fn integer(out: &mut Vec<u8>, field: u8, value: u64) {
    tag(out, field, 0);
    varint(out, value);
}

/// Writes a field of eight bytes.
pub(super) fn fixed64(out: &mut Vec<u8>, field: u8, value: u64) {
    tag(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a field of four bytes.
pub(super) fn fixed32(out: &mut Vec<u8>, field: u8, value: u32) {
    tag(out, field, 5);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a field that holds bytes or a text.
pub(super) fn bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    tag(out, field, 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// Writes a field that holds a message, whose fields `write` writes.
pub(super) fn message(out: &mut Vec<u8>, field: u8, write: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, 2);
    let at = out.len();
    // The length of a short message takes one byte; a long one is moved up to make room.
    out.push(0);
    write(out);
    let length = out.len().saturating_sub(at + 1);
    if let (Ok(length @ ..0x80), Some(place)) = (u8::try_from(length), out.get_mut(at)) {
        *place = length;
        return;
    }
    let mut encoded = Vec::with_capacity(10);
    varint(&mut encoded, length as u64);
    out.splice(at..=at, encoded);
}

/// Reads the integer at the start of `bytes`; gives it and what follows it.
pub(super) fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(at).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(at + 1..)?));
        }
    }
    None
}

/// Fields have numbers below 2,048.
fn tag(out: &mut Vec<u8>, field: u8, kind: u8) {
    varint(out, u64::from(field) << 3 | u64::from(kind));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    out.push(low_bits(value));
}

fn low_bits(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low & 0x7f
}
