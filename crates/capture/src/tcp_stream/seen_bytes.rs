//! When each byte of a stream first passed the tap.

use std::ops::Range;

use super::SeenAt;

/// Most ranges held for one direction.
pub(super) const RANGES_CAP: usize = 1024;

/// Ranges at either end that keep their exact times when the others are merged: the head of a
/// message is at its start, and its last byte at the end.
const KEPT_EXACT: usize = 128;

/// Ranges of bytes with the time at which they were first seen, in order, without overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenBytes {
    ranges: Vec<Seen>,
    /// What was below this is forgotten: a later sighting would not be the first.
    floor: Option<i64>,
    blurred: u64,
    forgotten: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    start: i64,
    end: i64,
    at: SeenAt,
}

impl SeenBytes {
    /// Adds a sighting of `bytes` and calls `on_overlap` with every part of
    /// them that was seen before and when.
    pub(super) fn insert(
        &mut self,
        bytes: Range<i64>,
        time_ns: i64,
        on_overlap: impl FnMut(Range<i64>, SeenAt),
    ) {
        let new = Seen {
            start: self
                .floor
                .map_or(bytes.start, |floor| floor.max(bytes.start)),
            end: bytes.end,
            at: SeenAt::exactly(time_ns),
        };
        if new.start >= new.end {
            return;
        }
        if self.ranges.last().is_none_or(|last| last.end <= new.start) {
            self.ranges.push(new);
        } else {
            self.insert_among(new, on_overlap);
        }
        if self.ranges.len() > RANGES_CAP {
            self.shrink();
        }
    }

    /// When the byte at `position` was first seen.
    pub(super) fn at(&self, position: i64) -> Option<SeenAt> {
        let first = self.ranges.partition_point(|range| range.end <= position);
        self.ranges
            .get(first)
            .filter(|range| range.start <= position)
            .map(|range| range.at)
    }

    /// When the last of `bytes` to be seen was first seen.
    pub(super) fn all(&self, bytes: Range<i64>) -> Option<SeenAt> {
        let first = self
            .ranges
            .partition_point(|range| range.end <= bytes.start);
        let mut reached = bytes.start;
        let mut all: Option<SeenAt> = None;
        for range in self.ranges.get(first..)? {
            if reached >= bytes.end {
                break;
            }
            if range.start > reached {
                return None;
            }
            reached = range.end;
            all = Some(all.map_or(range.at, |all| SeenAt {
                earliest: all.earliest.max(range.at.earliest),
                latest: all.latest.max(range.at.latest),
            }));
        }
        all.filter(|_| reached >= bytes.end)
    }

    pub(super) fn forget_before(&mut self, floor: i64) {
        let gone = self.ranges.partition_point(|range| range.end <= floor);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.start = first.start.max(floor);
        }
        self.floor = self.floor.max(Some(floor));
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn blurred(&self) -> u64 {
        self.blurred
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn insert_among(&mut self, new: Seen, mut on_overlap: impl FnMut(Range<i64>, SeenAt)) {
        let first = self.ranges.partition_point(|range| range.end <= new.start);
        let after = self.ranges.partition_point(|range| range.start < new.end);
        let mut pieces = Vec::new();
        let mut reached = new.start;
        for old in self.ranges.get(first..after).unwrap_or_default() {
            let overlap = old.start.max(new.start)..old.end.min(new.end);
            on_overlap(overlap.clone(), old.at);
            let earliest = SeenAt {
                earliest: old.at.earliest.min(new.at.earliest),
                latest: old.at.latest.min(new.at.latest),
            };
            push(&mut pieces, old.start..overlap.start, old.at);
            push(&mut pieces, reached..overlap.start, new.at);
            push(&mut pieces, overlap.clone(), earliest);
            push(&mut pieces, overlap.end..old.end, old.at);
            reached = overlap.end;
        }
        push(&mut pieces, reached..new.end, new.at);
        self.ranges.splice(first..after, pieces);
    }

    /// Merges neighbours in the middle, two by two; where holes leave too little to merge, forgets
    /// the first ones.
    fn shrink(&mut self) {
        let (from, to) = (KEPT_EXACT, self.ranges.len().saturating_sub(KEPT_EXACT));
        let mut kept: Vec<Seen> = Vec::with_capacity(self.ranges.len());
        let mut merged_last = false;
        for (index, range) in self.ranges.iter().enumerate() {
            let middle = from < index && index < to && !merged_last;
            match kept.last_mut() {
                Some(last) if middle && last.end == range.start => {
                    last.end = range.end;
                    last.at.earliest = last.at.earliest.min(range.at.earliest);
                    last.at.latest = last.at.latest.max(range.at.latest);
                    self.blurred += 2;
                    merged_last = true;
                }
                _ => {
                    kept.push(*range);
                    merged_last = false;
                }
            }
        }
        if kept.len() > RANGES_CAP - KEPT_EXACT {
            let excess = kept.len() - RANGES_CAP / 2;
            let gone = kept.drain(..excess).next_back();
            self.floor = self.floor.max(gone.map(|range| range.end));
            self.forgotten += excess as u64;
        }
        self.ranges = kept;
    }
}

/// Adds a piece unless it is empty, to its left neighbour if both were seen at the same time.
fn push(pieces: &mut Vec<Seen>, bytes: Range<i64>, at: SeenAt) {
    if bytes.is_empty() {
        return;
    }
    match pieces.last_mut() {
        Some(last) if last.end == bytes.start && last.at == at => last.end = bytes.end,
        _ => pieces.push(Seen {
            start: bytes.start,
            end: bytes.end,
            at,
        }),
    }
}
