//! One direction of a TCP connection: when each byte passed the tap, and when
//! the other side had acknowledged it.
//!
//! Bytes are named by their offset in the stream, counted from zero. To know
//! which sequence number is offset zero takes the `SYN` of that direction, or
//! one sequence number whose offset is known ([`TcpStream::align`]); before
//! that, every question is answered with `None`. Sequence numbers may wrap
//! around any number of times, as long as no segment is 2 GiB away from the
//! latest one.
//!
//! The order in which segments are added does not matter: of all times at
//! which a byte was seen the earliest counts.

mod ack_times;
mod retransmissions;
mod seen_bytes;
mod sequence;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::tcp_segment::TcpSegment;
use ack_times::AckTimes;
use retransmissions::Retransmissions;
use seen_bytes::SeenBytes;
use sequence::Sequence;

/// Two sightings of the same bytes no further apart than this, in nanoseconds, are one packet that
/// passed two taps; no sender repeats itself so soon.
pub const COPY_WINDOW_NS: i64 = 1_000_000;

/// When something passed the tap, in nanoseconds since the Unix epoch.
///
/// Both ends are equal unless detail was given up to save memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenAt {
    /// The earliest it can have been.
    pub earliest: i64,
    /// The latest it can have been.
    pub latest: i64,
}

impl SeenAt {
    /// At a time known exactly.
    #[must_use]
    pub fn exactly(time_ns: i64) -> Self {
        Self {
            earliest: time_ns,
            latest: time_ns,
        }
    }
}

/// How offsets are tied to sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// They are not: neither `SYN` nor a known pair was seen.
    Unknown,
    /// By the `SYN` of this direction.
    Syn,
    /// By a pair given to [`TcpStream::align`].
    Given,
}

/// What was given up to keep memory bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Times that were blurred: neighbours merged into one with an interval.
    pub blurred: u64,
    /// Times that were forgotten before they were asked for.
    pub forgotten: u64,
}

/// What one side sent, and what the other side acknowledged of it.
#[derive(Clone, Debug, Default)]
pub struct TcpStream {
    sequence: Sequence,
    /// Position of offset zero.
    origin: Option<Origin>,
    /// Of positions below this nothing is known any more.
    floor: Option<i64>,
    seen: SeenBytes,
    acks: AckTimes,
    retransmissions: Retransmissions,
    copies: u64,
    syn_at: Option<i64>,
    fin_at: Option<i64>,
    rst_at: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Origin {
    position: i64,
    /// The sequence number of the `SYN`, if that is where it comes from.
    syn: Option<u32>,
}

impl TcpStream {
    /// A stream of which nothing was seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a segment sent in this direction.
    pub fn sent(&mut self, segment: &TcpSegment) {
        if segment.rst {
            // Its numbers may be made up, by a host that never knew the connection.
            self.rst_at = earliest(self.rst_at, segment.time_ns);
            return;
        }
        let mut start = self.sequence.position(segment.seq);
        if segment.syn {
            start = start.saturating_add(1);
            self.syn_at = earliest(self.syn_at, segment.time_ns);
            if self.origin.is_none_or(|origin| origin.syn.is_none()) {
                self.origin = Some(Origin {
                    position: start,
                    syn: Some(segment.seq),
                });
            }
        }
        if segment.fin {
            self.fin_at = earliest(self.fin_at, segment.time_ns);
        }
        let end = start.saturating_add(i64::from(segment.payload_length));
        if start < end {
            self.bytes(start..end, segment.time_ns);
        }
    }

    /// Adds the other side's acknowledgement: it has every byte before sequence number `ack`.
    pub fn acknowledged(&mut self, ack: u32, time_ns: i64) {
        let position = self.sequence.position(ack);
        self.acks.insert(position, time_ns);
    }

    /// Ties `offset` to the byte with sequence number `seq`, for a connection whose `SYN` was not
    /// captured. A `SYN` is trusted more: where one was seen, nothing changes.
    pub fn align(&mut self, offset: u64, seq: u32) {
        if self.alignment() == Alignment::Syn {
            return;
        }
        let position = self.sequence.position(seq);
        self.origin = i64::try_from(offset)
            .ok()
            .and_then(|offset| position.checked_sub(offset))
            .map(|position| Origin {
                position,
                syn: None,
            });
    }

    /// How offsets are tied to sequence numbers.
    #[must_use]
    pub fn alignment(&self) -> Alignment {
        match self.origin {
            None => Alignment::Unknown,
            Some(Origin { syn: Some(_), .. }) => Alignment::Syn,
            Some(Origin { syn: None, .. }) => Alignment::Given,
        }
    }

    /// When the byte at `offset` first passed the tap; `None` if it never did, whether or not it
    /// was acknowledged.
    #[must_use]
    pub fn first_seen(&self, offset: u64) -> Option<SeenAt> {
        self.seen.at(self.position(offset)?)
    }

    /// When the last of the bytes in `offsets` first passed the tap, in whatever order they came;
    /// `None` if one of them never did, or if there are none.
    #[must_use]
    pub fn all_seen(&self, offsets: Range<u64>) -> Option<SeenAt> {
        self.seen
            .all(self.position(offsets.start)?..self.position(offsets.end)?)
    }

    /// When an acknowledgement first covered the byte at `offset`.
    #[must_use]
    pub fn acknowledged_at(&self, offset: u64) -> Option<SeenAt> {
        self.acks.covering(self.position(offset)?)
    }

    /// When an acknowledgement first covered this direction's `SYN`.
    #[must_use]
    pub fn syn_acknowledged_at(&self) -> Option<SeenAt> {
        let syn = self.origin.filter(|origin| origin.syn.is_some())?;
        self.acks.covering(syn.position.checked_sub(1)?)
    }

    /// How many segments repeated any of the bytes in `offsets`.
    #[must_use]
    pub fn retransmissions(&self, offsets: Range<u64>) -> u64 {
        match (self.position(offsets.start), self.position(offsets.end)) {
            (Some(start), Some(end)) => self.retransmissions.within(&(start..end)),
            _ => 0,
        }
    }

    /// When the `SYN` first passed the tap, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn syn_at(&self) -> Option<i64> {
        self.syn_at
    }

    /// Sequence number of the `SYN`.
    #[must_use]
    pub fn initial_sequence(&self) -> Option<u32> {
        self.origin.and_then(|origin| origin.syn)
    }

    /// When a `FIN` first passed the tap, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn fin_at(&self) -> Option<i64> {
        self.fin_at
    }

    /// When a `RST` first passed the tap, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn rst_at(&self) -> Option<i64> {
        self.rst_at
    }

    /// Forgets everything about bytes before `offset`; does nothing while the alignment is
    /// unknown.
    pub fn forget_before(&mut self, offset: u64) {
        let Some(floor) = self.position(offset) else {
            return;
        };
        self.floor = self.floor.max(Some(floor));
        self.seen.forget_before(floor);
        self.acks.forget_before(floor);
        self.retransmissions.forget_before(floor);
    }

    /// Entries of memory in use.
    #[must_use]
    pub fn held(&self) -> usize {
        self.seen.len() + self.acks.len() + self.retransmissions.len()
    }

    /// What was given up to keep memory bounded.
    #[must_use]
    pub fn losses(&self) -> Losses {
        Losses {
            blurred: self.seen.blurred() + self.acks.blurred(),
            forgotten: self.seen.forgotten() + self.retransmissions.forgotten(),
        }
    }

    /// Segments with payload that were seen more than once within [`COPY_WINDOW_NS`].
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.copies
    }

    fn position(&self, offset: u64) -> Option<i64> {
        let position = self
            .origin?
            .position
            .checked_add(i64::try_from(offset).ok()?)?;
        (self.floor.is_none_or(|floor| position >= floor)).then_some(position)
    }

    fn bytes(&mut self, bytes: Range<i64>, time_ns: i64) {
        let mut copy = false;
        self.seen.insert(bytes, time_ns, |overlap, seen| {
            let earlier_by = seen.earliest.saturating_sub(time_ns);
            let later_by = time_ns.saturating_sub(seen.latest);
            if later_by > COPY_WINDOW_NS {
                self.retransmissions.note(overlap, time_ns);
            } else if earlier_by > COPY_WINDOW_NS {
                self.retransmissions.note(overlap, seen.earliest);
            } else {
                copy = true;
            }
        });
        self.copies += u64::from(copy);
    }
}

fn earliest(known: Option<i64>, time_ns: i64) -> Option<i64> {
    Some(known.map_or(time_ns, |known| known.min(time_ns)))
}
