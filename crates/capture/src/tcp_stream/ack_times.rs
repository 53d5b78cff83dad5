//! When each byte of a stream was first acknowledged.

use super::SeenAt;

/// Most acknowledgements held for one direction.
pub(super) const ACKS_CAP: usize = 1024;

/// Acknowledgements at either end that keep their exact times when the others are merged.
const KEPT_EXACT: usize = 128;

/// Acknowledgements that covered bytes for the first time: each reaches further and comes later
/// than the one before.
#[derive(Clone, Debug, Default)]
pub(super) struct AckTimes {
    acks: Vec<Ack>,
    blurred: u64,
}

/// Bytes below `reach`, as far as no earlier entry covers them, were first acknowledged at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ack {
    reach: i64,
    at: SeenAt,
}

impl AckTimes {
    pub(super) fn insert(&mut self, reach: i64, time_ns: i64) {
        let new = Ack {
            reach,
            at: SeenAt::exactly(time_ns),
        };
        match self.acks.last() {
            Some(last) if last.reach == reach && last.at.latest <= time_ns => return,
            Some(last) if last.reach >= reach || last.at.latest >= time_ns => {
                self.insert_among(new);
            }
            _ => self.acks.push(new),
        }
        if self.acks.len() > ACKS_CAP {
            self.shrink();
        }
    }

    /// When the byte at `position` was first covered.
    pub(super) fn covering(&self, position: i64) -> Option<SeenAt> {
        let first = self.acks.partition_point(|ack| ack.reach <= position);
        self.acks.get(first).map(|ack| ack.at)
    }

    pub(super) fn forget_before(&mut self, floor: i64) {
        let gone = self.acks.partition_point(|ack| ack.reach <= floor);
        self.acks.drain(..gone);
    }

    pub(super) fn len(&self) -> usize {
        self.acks.len()
    }

    pub(super) fn blurred(&self) -> u64 {
        self.blurred
    }

    /// Adds an acknowledgement that was captured out of order.
    fn insert_among(&mut self, mut new: Ack) {
        let at = self.acks.partition_point(|ack| ack.reach < new.reach);
        if let Some(further) = self.acks.get(at) {
            if further.at.latest <= new.at.latest {
                return;
            }
            new.at.earliest = new.at.earliest.min(further.at.earliest);
        }
        // What reaches no further and came no earlier says nothing new; what is blurred across
        // the new time came by then.
        let shorter = self.acks.get(..at).unwrap_or_default();
        let from = shorter.partition_point(|ack| ack.at.earliest < new.at.latest);
        for ack in self.acks.get_mut(..from).unwrap_or_default() {
            ack.at.latest = ack.at.latest.min(new.at.latest);
        }
        let equal = self.acks.get(at).is_some_and(|ack| ack.reach == new.reach);
        self.acks.splice(from..at + usize::from(equal), [new]);
    }

    /// Merges neighbours in the middle, two by two.
    fn shrink(&mut self) {
        let (from, to) = (KEPT_EXACT, self.acks.len().saturating_sub(KEPT_EXACT));
        let mut kept: Vec<Ack> = Vec::with_capacity(self.acks.len());
        let mut merged_last = false;
        for (index, ack) in self.acks.iter().enumerate() {
            let middle = from < index && index < to && !merged_last;
            match kept.last_mut() {
                Some(last) if middle => {
                    last.reach = ack.reach;
                    last.at.latest = ack.at.latest;
                    self.blurred += 2;
                    merged_last = true;
                }
                _ => {
                    kept.push(*ack);
                    merged_last = false;
                }
            }
        }
        self.acks = kept;
    }
}
