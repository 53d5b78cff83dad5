//! Bytes that were sent again.

use std::collections::BTreeSet;
use std::ops::Range;

use super::COPY_WINDOW_NS;

/// Most pieces held for one direction.
pub(super) const PIECES_CAP: usize = 256;

/// Repeated sightings of bytes: the pieces of each segment that had been seen before.
#[derive(Clone, Debug, Default)]
pub(super) struct Retransmissions {
    pieces: Vec<Piece>,
    forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    time_ns: i64,
    start: i64,
    end: i64,
}

impl Piece {
    fn overlaps(&self, bytes: &Range<i64>) -> bool {
        self.start < bytes.end && bytes.start < self.end
    }
}

impl Retransmissions {
    /// Notes that `bytes` passed the tap once more. Bytes of one time are of one segment.
    pub(super) fn note(&mut self, bytes: Range<i64>, time_ns: i64) {
        let copied = self.pieces.iter().any(|piece| {
            let apart = piece.time_ns.abs_diff(time_ns);
            0 < apart && apart <= COPY_WINDOW_NS.unsigned_abs() && piece.overlaps(&bytes)
        });
        if copied {
            return;
        }
        if self.pieces.len() >= PIECES_CAP {
            self.pieces.remove(0);
            self.forgotten += 1;
        }
        self.pieces.push(Piece {
            time_ns,
            start: bytes.start,
            end: bytes.end,
        });
    }

    /// How many segments repeated any of `bytes`.
    pub(super) fn within(&self, bytes: &Range<i64>) -> u64 {
        let touching = self.pieces.iter().filter(|piece| piece.overlaps(bytes));
        let segments: BTreeSet<i64> = touching.map(|piece| piece.time_ns).collect();
        segments.len() as u64
    }

    pub(super) fn forget_before(&mut self, floor: i64) {
        self.pieces.retain(|piece| piece.end > floor);
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
