//! As much of protobuf's wire format as an OTLP request needs.

/// Writes a field that holds an integer.
#[inline]
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
#[inline]
pub(super) fn bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    opening(out, field, content.len());
    out.extend_from_slice(content);
}

/// Writes what comes before the `length` bytes of a field that holds bytes, a text or a message.
#[inline]
pub(super) fn opening(out: &mut Vec<u8>, field: u8, length: usize) {
    tag(out, field, 2);
    varint(out, length as u64);
}

/// Writes a field that holds a message, whose fields `write` writes. It costs least if they take
/// 128 bytes to 16 KiB.
pub(super) fn message(out: &mut Vec<u8>, field: u8, write: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, 2);
    let at = out.len();
    // The length of a message of that size takes two bytes; any other is moved.
    out.extend_from_slice(&[0; 2]);
    let from = out.len();
    write(out);
    let mut length = Vec::with_capacity(10);
    varint(&mut length, out.len().saturating_sub(from) as u64);
    match out.get_mut(at..from) {
        Some(room) if room.len() == length.len() => room.copy_from_slice(&length),
        _ => drop(out.splice(at..from, length)),
    }
}

/// The size of a field that holds `length` bytes, a text or a message of that length.
pub(super) fn size(length: usize) -> usize {
    1 + integer_size(length as u64) + length
}

/// The size of an integer without its field.
pub(super) fn integer_size(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
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

/// Fields have numbers below 16 in a message whose size [`size`] tells, else below 2,048.
#[inline]
fn tag(out: &mut Vec<u8>, field: u8, kind: u8) {
    varint(out, u64::from(field) << 3 | u64::from(kind));
}

/// Writes an integer in groups of seven bits, the lowest first.
#[inline]
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    out.push(low_bits(value));
}

/// The encoding of an integer that takes nine bytes, as times in nanoseconds do from 1972 on.
#[inline]
pub(super) fn nine_bytes(value: u64) -> Option<[u8; 9]> {
    if !(1 << 56..1 << 63).contains(&value) {
        return None;
    }
    // The lowest eight groups, each in a byte: halves, quarters and then single groups are moved
    // apart.
    let halves = (value & 0x0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
    let quarters = (halves & 0x0000_3fff_0000_3fff) | (halves & 0x0fff_c000_0fff_c000) << 2;
    let groups = (quarters & 0x007f_007f_007f_007f) | (quarters & 0x3f80_3f80_3f80_3f80) << 1;
    // Each has the bit that says that another follows.
    let [a, b, c, d, e, f, g, h] = (groups | 0x8080_8080_8080_8080).to_le_bytes();
    Some([a, b, c, d, e, f, g, h, low_bits(value >> 56)])
}

fn low_bits(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low & 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_as_long_as_its_size_says_and_is_read_back() {
        let edges = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit]);
        for value in edges.chain([1_700_000_000_123_456_789, u64::MAX]) {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out.len(), integer_size(value), "{value}");
            assert_eq!(read_varint(&out), Some((value, &[][..])));
            let nine = nine_bytes(value);
            assert_eq!(nine.is_some(), out.len() == 9, "{value}");
            assert!(nine.is_none_or(|nine| out == nine), "{value}");
        }
    }

    #[test]
    fn integers_are_in_groups_of_seven_bits() {
        // Of protobuf's documentation, and a time whose groups count from 1 to 9.
        let time = (1..=9).rev().fold(0, |so_far, group| so_far << 7 | group);
        for (value, expected) in [
            (150, &[0x96, 0x01][..]),
            (
                time,
                &[0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x09],
            ),
        ] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn a_message_of_any_length_is_led_by_it() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
            let mut out = vec![7];
            message(&mut out, 3, |out| out.resize(out.len() + length, 9));
            assert_eq!(out.len(), 1 + size(length));
            let after_tag = out.strip_prefix(&[7, 0x1a]).unwrap();
            assert_eq!(
                read_varint(after_tag),
                Some((length as u64, &vec![9; length][..]))
            );
        }
    }
}
