//! Every connection of a capture, found by its two ends.

mod limits;
mod lossy_periods;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use crate::tcp_connection::{Ends, TcpConnection};
use crate::tcp_segment::TcpSegment;
pub use limits::IndexLimits;
use lossy_periods::LossyPeriods;

/// What an index has taken in and given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounts {
    /// Segments added.
    pub segments: u64,
    /// Connections held.
    pub connections: usize,
    /// Entries of memory in use.
    pub entries: usize,
    /// Connections forgotten because they were over or long silent.
    pub aged: u64,
    /// Connections forgotten to make room, though they might still have been asked for.
    pub evicted: u64,
}

/// The connections of a capture.
///
/// Nothing in it reads a clock: it ages by the times of the packets.
#[derive(Debug, Default)]
pub struct PacketIndex {
    limits: IndexLimits,
    /// The connections between two ends, oldest first; more than one when a port was used again.
    by_ends: HashMap<Ends, Vec<TcpConnection>>,
    /// Every connection once, with the time of its latest packet when it was put here.
    line: VecDeque<(Ends, i64)>,
    counts: IndexCounts,
    /// Time of the latest packet.
    now: i64,
    lossy: LossyPeriods,
}

impl PacketIndex {
    /// An empty index that keeps within `limits`.
    #[must_use]
    pub fn new(limits: IndexLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Adds a segment, in whatever order.
    pub fn add(&mut self, segment: &TcpSegment) {
        self.counts.segments += 1;
        self.now = self.now.max(segment.time_ns);
        let ends = Ends::between(segment.from, segment.to);
        let connections = self.by_ends.entry(ends).or_default();
        if connections
            .last()
            .is_none_or(|latest| latest.is_succeeded_by(segment))
        {
            connections.push(TcpConnection::begun_by(segment));
            self.line.push_back((ends, segment.time_ns));
            self.counts.connections += 1;
        }
        if let Some(connection) = connections.last_mut() {
            self.counts.entries -= connection.held();
            connection.add(segment);
            self.counts.entries += connection.held();
        }
        self.forget_aged();
        self.make_room();
    }

    /// Notes that packets may have been lost to the capture between two times, in nanoseconds
    /// since the Unix epoch.
    pub fn note_loss(&mut self, from_ns: i64, to_ns: i64) {
        self.lossy.note(from_ns, to_ns);
    }

    /// Whether packets may have been lost to the capture at some time from `from_ns` to `to_ns`.
    #[must_use]
    pub fn lost_between(&self, from_ns: i64, to_ns: i64) -> bool {
        self.lossy.touch(from_ns, to_ns)
    }

    /// The connection between two ends that was the latest to have begun by `at`, in nanoseconds
    /// since the Unix epoch.
    #[must_use]
    pub fn connection(&self, a: SocketAddr, b: SocketAddr, at: i64) -> Option<&TcpConnection> {
        let connections = self.by_ends.get(&Ends::between(a, b))?;
        let begun = |connection: &&TcpConnection| connection.first_at() <= at;
        connections.iter().rev().find(begun)
    }

    /// Ties the byte at `offset` that `sender` sent to sequence number `seq`, on a connection whose
    /// `SYN` was not captured.
    pub fn align(
        &mut self,
        sender: SocketAddr,
        receiver: SocketAddr,
        at: i64,
        offset: u64,
        seq: u32,
    ) {
        self.change(sender, receiver, at, |connection| {
            if let Some(stream) = connection.sent_by_mut(sender) {
                stream.align(offset, seq);
            }
        });
    }

    /// Forgets the bytes before `offset` that `sender` sent: they will not be asked for.
    pub fn forget_before(
        &mut self,
        sender: SocketAddr,
        receiver: SocketAddr,
        at: i64,
        offset: u64,
    ) {
        self.change(sender, receiver, at, |connection| {
            if let Some(stream) = connection.sent_by_mut(sender) {
                stream.forget_before(offset);
            }
        });
    }

    /// What has been taken in and given up.
    #[must_use]
    pub fn counts(&self) -> IndexCounts {
        self.counts
    }

    fn change(
        &mut self,
        a: SocketAddr,
        b: SocketAddr,
        at: i64,
        change: impl FnOnce(&mut TcpConnection),
    ) {
        let found = self.by_ends.get_mut(&Ends::between(a, b));
        let begun = |connection: &&mut TcpConnection| connection.first_at() <= at;
        if let Some(connection) = found.and_then(|all| all.iter_mut().rev().find(begun)) {
            self.counts.entries -= connection.held();
            change(connection);
            self.counts.entries += connection.held();
        }
    }

    /// Forgets connections at the head of the line that are over or silent for too long.
    fn forget_aged(&mut self) {
        while let Some((ends, looked_at)) = self.line.front().copied() {
            if self.now.saturating_sub(looked_at) <= self.limits.shortest_age() {
                return;
            }
            self.line.pop_front();
            let Some(oldest) = self.by_ends.get(&ends).and_then(|all| all.first()) else {
                continue;
            };
            let age = self.limits.age(oldest.is_over());
            if self.now.saturating_sub(oldest.last_at()) > age {
                self.remove_oldest(ends);
                self.counts.aged += 1;
            } else {
                // To be looked at again once it may have aged.
                self.line.push_back((ends, self.now));
            }
        }
    }

    /// Forgets the connections that have been silent for longest, until the rest fits.
    fn make_room(&mut self) {
        while self.counts.connections > self.limits.connections
            || self.counts.entries > self.limits.entries
        {
            let Some((ends, looked_at)) = self.line.pop_front() else {
                return;
            };
            match self.by_ends.get(&ends).and_then(|all| all.first()) {
                Some(oldest) if oldest.last_at() > looked_at => {
                    self.line.push_back((ends, oldest.last_at()));
                }
                Some(_) => {
                    self.remove_oldest(ends);
                    self.counts.evicted += 1;
                }
                None => {}
            }
        }
    }

    fn remove_oldest(&mut self, ends: Ends) {
        let Some(connections) = self.by_ends.get_mut(&ends) else {
            return;
        };
        if !connections.is_empty() {
            self.counts.entries -= connections.remove(0).held();
            self.counts.connections -= 1;
        }
        if connections.is_empty() {
            self.by_ends.remove(&ends);
        }
    }
}
