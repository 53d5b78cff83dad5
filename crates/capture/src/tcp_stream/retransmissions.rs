//! Bytes that were sent again.

use std::ops::Range;

use super::COPY_WINDOW_NS;

/// Most retransmissions held for one direction.
pub(super) const RETRANSMISSIONS_CAP: usize = 256;

/// Repeated sightings of bytes, by time.
#[derive(Clone, Debug, Default)]
pub(super) struct Retransmissions {
    again: Vec<Again>,
    forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
struct Again {
    time_ns: i64,
    start: i64,
    end: i64,
}

impl Retransmissions {
    /// Notes that `bytes` passed the tap once more. Parts of one segment, and copies of it, count
    /// once.
    pub(super) fn note(&mut self, bytes: Range<i64>, time_ns: i64) {
        let near = self.again.iter_mut().find(|again| {
            let apart = again.time_ns.abs_diff(time_ns);
            let overlaps = again.start < bytes.end && bytes.start < again.end;
            apart == 0 || (overlaps && apart <= COPY_WINDOW_NS.unsigned_abs())
        });
        if let Some(again) = near {
            again.start = again.start.min(bytes.start);
            again.end = again.end.max(bytes.end);
            again.time_ns = again.time_ns.min(time_ns);
            return;
        }
        if self.again.len() >= RETRANSMISSIONS_CAP {
            self.again.remove(0);
            self.forgotten += 1;
        }
        let again = Again {
            time_ns,
            start: bytes.start,
            end: bytes.end,
        };
        self.again.push(again);
    }

    /// How many touched any of `bytes`.
    pub(super) fn within(&self, bytes: Range<i64>) -> u64 {
        let touching = |again: &&Again| again.start < bytes.end && bytes.start < again.end;
        self.again.iter().filter(touching).count() as u64
    }

    pub(super) fn forget_before(&mut self, floor: i64) {
        self.again.retain(|again| again.end > floor);
    }

    pub(super) fn len(&self) -> usize {
        self.again.len()
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
