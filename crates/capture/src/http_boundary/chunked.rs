//! The chunked coding: sizes, data skipped by count, trailers.

use super::LostTrack;

/// Follows one chunked body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chunked {
    /// In a size line, before any `;`.
    Size { size: u64, state: SizeState },
    /// In the rest of a size line, which is ignored.
    Extension { size: u64 },
    /// After the carriage return of a size line.
    SizeLineEnd { size: u64 },
    /// In data.
    Data { left: u64 },
    /// After data, before the carriage return.
    DataEnd,
    /// After data and the carriage return.
    DataLineEnd,
    /// At the start of a trailer line, or of the empty line that ends the body.
    TrailerStart,
    /// In a trailer line.
    Trailer,
    /// After a carriage return in a trailer line.
    TrailerLineEnd,
    /// After the carriage return of what should be the empty line.
    LastLineEnd,
}

/// Where in a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeState {
    /// Before the first digit.
    Empty,
    /// After a digit.
    Digits,
    /// After white space that follows the digits.
    Space,
}

impl Chunked {
    /// At the first byte of the body.
    pub(super) const START: Self = Self::Size {
        size: 0,
        state: SizeState::Empty,
    };

    /// Takes bytes off the front of `input`, up to the end of the body at most; whether that was
    /// reached.
    pub(super) fn advance(&mut self, input: &mut &[u8]) -> Result<bool, LostTrack> {
        loop {
            if let Self::Data { left } = self {
                if !skip(left, input) {
                    return Ok(false);
                }
                *self = Self::DataEnd;
            }
            let Some((byte, rest)) = input.split_first() else {
                return Ok(false);
            };
            *input = rest;
            match self.after(*byte)? {
                Some(next) => *self = next,
                None => return Ok(true),
            }
        }
    }

    /// The state after a byte that is not data; `None` at the end of the body.
    fn after(self, byte: u8) -> Result<Option<Self>, LostTrack> {
        Ok(Some(match (self, byte) {
            (Self::Size { size, state }, _) => in_size(size, state, byte)?,
            (Self::Extension { size }, b'\r') => Self::SizeLineEnd { size },
            (Self::Extension { .. }, b'\n') => return Err(LostTrack::Chunk),
            (Self::Extension { size }, _) => Self::Extension { size },
            (Self::SizeLineEnd { size: 0 }, b'\n') => Self::TrailerStart,
            (Self::SizeLineEnd { size }, b'\n') => Self::Data { left: size },
            (Self::DataEnd, b'\r') => Self::DataLineEnd,
            (Self::DataLineEnd, b'\n') => Self::START,
            (Self::TrailerStart, b'\r') => Self::LastLineEnd,
            (Self::LastLineEnd, b'\n') => return Ok(None),
            (Self::Trailer, b'\r') => Self::TrailerLineEnd,
            (Self::TrailerLineEnd, b'\n') => Self::TrailerStart,
            (Self::TrailerStart | Self::Trailer, b'\n') => return Err(LostTrack::Chunk),
            (Self::TrailerStart | Self::Trailer, _) => Self::Trailer,
            (
                Self::SizeLineEnd { .. }
                | Self::DataEnd
                | Self::DataLineEnd
                | Self::TrailerLineEnd
                | Self::LastLineEnd
                | Self::Data { .. },
                _,
            ) => return Err(LostTrack::Chunk),
        }))
    }
}

/// Takes up to `left` bytes off `input` unseen; whether none are left.
pub(super) fn skip(left: &mut u64, input: &mut &[u8]) -> bool {
    let take = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
    *input = input.get(take..).unwrap_or_default();
    *left -= take as u64;
    *left == 0
}

fn in_size(size: u64, state: SizeState, byte: u8) -> Result<Chunked, LostTrack> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ if state == SizeState::Empty => return Err(LostTrack::Chunk),
        b'\r' => return Ok(Chunked::SizeLineEnd { size }),
        b';' => return Ok(Chunked::Extension { size }),
        b' ' | b'\t' => {
            return Ok(Chunked::Size {
                size,
                state: SizeState::Space,
            });
        }
        _ => return Err(LostTrack::Chunk),
    };
    if state == SizeState::Space {
        return Err(LostTrack::Chunk);
    }
    let size = size
        .checked_mul(16)
        .and_then(|size| size.checked_add(u64::from(digit)))
        .ok_or(LostTrack::Chunk)?;
    Ok(Chunked::Size {
        size,
        state: SizeState::Digits,
    })
}
