//! As much of protobuf as spans need: writing fields, and finding them again.

use std::ops::Range;

/// A field whose content is bytes, a text or a message.
pub(crate) fn bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// A field whose content is an integer.
pub(crate) fn integer(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3);
    varint(out, value);
}

/// A field of eight bytes.
pub(crate) fn fixed(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    out.push(low_bits(value));
}

fn low_bits(value: u64) -> u8 {
    u8::try_from(value & 0x7f).unwrap_or_default()
}

/// Calls back with the number and the place of each field in `within` of `message`. Stops at
/// what is not protobuf.
pub(crate) fn fields(
    message: &[u8],
    within: Range<usize>,
    mut found: impl FnMut(u64, Range<usize>),
) {
    let mut at = within.start;
    while at < within.end {
        let Some(tag) = read_varint(message, &mut at) else {
            return;
        };
        let length = match tag & 7 {
            0 => {
                let from = at;
                if read_varint(message, &mut at).is_none() {
                    return;
                }
                let length = at - from;
                at = from;
                length
            }
            1 => 8,
            2 => match read_varint(message, &mut at).map(usize::try_from) {
                Some(Ok(length)) => length,
                _ => return,
            },
            5 => 4,
            _ => return,
        };
        let Some(end) = at.checked_add(length).filter(|end| *end <= within.end) else {
            return;
        };
        found(tag >> 3, at..end);
        at = end;
    }
}

fn read_varint(message: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *message.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_where_they_were_written() {
        let mut message = Vec::new();
        integer(&mut message, 1, 300);
        fixed(&mut message, 7, 0x0102_0304_0506_0708);
        bytes(&mut message, 5, &[9; 200]);
        let mut found = Vec::new();
        fields(&message, 0..message.len(), |number, place| {
            found.push((number, message[place].to_vec()));
        });
        assert_eq!(found[0], (1, vec![0xac, 0x02]));
        assert_eq!(found[1], (7, vec![8, 7, 6, 5, 4, 3, 2, 1]));
        assert_eq!(found[2], (5, vec![9; 200]));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_cut_message_ends_the_search() {
        let mut message = Vec::new();
        bytes(&mut message, 5, &[9; 200]);
        for end in 0..message.len() {
            fields(&message[..end], 0..end, |_, _| panic!("found at {end}"));
        }
    }
}
