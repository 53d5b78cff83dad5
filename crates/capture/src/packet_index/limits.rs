//! How much an index may hold, and for how long.

/// The limits of a [`PacketIndex`](super::PacketIndex).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// Most connections.
    pub connections: usize,
    /// Most entries of memory over all connections; one is about 32 bytes.
    pub entries: usize,
    /// How long a connection without a packet is kept, in nanoseconds.
    pub silent_ns: i64,
    /// How long a connection is kept after the last packet once it is over, in nanoseconds.
    pub over_ns: i64,
}

impl Default for IndexLimits {
    /// 16,384 connections, about 32 MB, an hour of silence, a minute after the end.
    fn default() -> Self {
        Self {
            connections: 16 * 1024,
            entries: 1024 * 1024,
            silent_ns: 3_600_000_000_000,
            over_ns: 60_000_000_000,
        }
    }
}

impl IndexLimits {
    /// How long a connection is kept without a packet.
    pub(super) fn age(&self, is_over: bool) -> i64 {
        if is_over {
            self.over_ns
        } else {
            self.silent_ns
        }
    }

    /// How long every connection is kept.
    pub(super) fn shortest_age(&self) -> i64 {
        self.silent_ns.min(self.over_ns)
    }
}
