//! The wire times of an HTTP message, found by its offsets in a TCP stream.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use skewtap_core::clock::{ProxyClock, Source, Stamp};

use crate::packet_index::PacketIndex;
use crate::tcp_stream::SeenAt;

/// How far a byte's passing of the tap may lie from its leaving or reaching the socket, in
/// nanoseconds.
///
/// On loopback and virtual devices the tap was seen up to 10 µs after the sender's TCP let go of
/// a segment and 1 to 5 µs before the receiver's TCP had it.
pub const TAP_DISTANCE_NS: i64 = 15_000;

/// Which way a message passes the machine with the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// It is received here: a part of it has arrived once every byte up to there has.
    Arriving,
    /// It is sent from here: a byte left when it was first sent, whatever became of it.
    Leaving,
}

/// A message whose times are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireMessage {
    /// Who sent it.
    pub sender: SocketAddr,
    /// Who it was sent to.
    pub receiver: SocketAddr,
    /// Any time at which their connection existed, in nanoseconds since the Unix epoch.
    pub at: i64,
    /// Which way it passed.
    pub travel: Travel,
    /// Offset of its first byte.
    pub start: u64,
    /// Offset just after its head.
    pub head_end: u64,
    /// Offset just after its last byte.
    pub end: u64,
}

/// The wire times of a message; `None` where no packet tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageTimes {
    /// First byte.
    pub first: Option<Stamp<ProxyClock>>,
    /// Last byte of the head.
    pub head: Option<Stamp<ProxyClock>>,
    /// Last byte.
    pub last: Option<Stamp<ProxyClock>>,
    /// When the receiver's acknowledgement of the last byte passed. If the capture lost packets
    /// since that byte, an earlier acknowledgement may be among them, and the stamp says so by
    /// its width.
    pub acked: Option<Stamp<ProxyClock>>,
    /// How many segments repeated bytes of the message.
    pub retransmissions: u64,
}

/// When a connection opened and closed on the wire; `None` where no packet tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTimes {
    /// The `SYN` of the end that connects.
    pub syn: Option<Stamp<ProxyClock>>,
    /// The `SYN` of the end that accepts; on its arrival the connection stands for the first end.
    pub syn_ack: Option<Stamp<ProxyClock>>,
    /// The acknowledgement of that; on its arrival the connection stands for the second end.
    pub ack: Option<Stamp<ProxyClock>>,
    /// The `FIN` of this machine.
    pub local_fin: Option<Stamp<ProxyClock>>,
    /// The `FIN` of the other end.
    pub peer_fin: Option<Stamp<ProxyClock>>,
    /// The first `RST` of either.
    pub rst: Option<Stamp<ProxyClock>>,
}

/// The wire times of `message`; `None` if its connection is not in the index.
#[must_use]
pub fn message_times(index: &PacketIndex, message: &WireMessage) -> Option<MessageTimes> {
    let stream = index
        .connection(message.sender, message.receiver, message.at)?
        .sent_by(message.sender)?;
    let up_to = |end: u64| match message.travel {
        Travel::Arriving => stream.all_seen(message.start..end),
        Travel::Leaving => stream.first_seen(end.checked_sub(1)?),
    };
    let last = message.end.checked_sub(1);
    let acked = last
        .and_then(|last| stream.acknowledged_at(last))
        .map(|at| {
            let sent = last.and_then(|last| stream.first_seen(last));
            let from = sent
                .map_or(message.at, |sent| sent.earliest)
                .min(at.earliest);
            if index.lost_between(from, at.latest) {
                SeenAt {
                    earliest: from,
                    latest: at.latest,
                }
            } else {
                at
            }
        });
    Some(MessageTimes {
        first: stream.first_seen(message.start).map(stamp),
        head: up_to(message.head_end).map(stamp),
        last: up_to(message.end).map(stamp),
        acked: acked.map(stamp),
        retransmissions: stream.retransmissions(message.start..message.end),
    })
}

/// When the connection between `local`, this machine, and `peer` that existed at `at`, in
/// nanoseconds since the Unix epoch, opened and closed; `None` if it is not in the index.
#[must_use]
pub fn connection_times(
    index: &PacketIndex,
    local: SocketAddr,
    peer: SocketAddr,
    at: i64,
) -> Option<ConnectionTimes> {
    let connection = index.connection(local, peer, at)?;
    let (ours, theirs) = (connection.sent_by(local)?, connection.sent_by(peer)?);
    let handshake = connection.handshake();
    let reset = [ours.rst_at(), theirs.rst_at()].into_iter().flatten().min();
    let exact = |time_ns: Option<i64>| time_ns.map(|time_ns| stamp(SeenAt::exactly(time_ns)));
    Some(ConnectionTimes {
        syn: exact(handshake.syn),
        syn_ack: exact(handshake.syn_ack),
        ack: exact(handshake.ack),
        local_fin: exact(ours.fin_at()),
        peer_fin: exact(theirs.fin_at()),
        rst: exact(reset),
    })
}

/// The stamp of something that passed the tap.
#[must_use]
pub fn stamp(at: SeenAt) -> Stamp<ProxyClock> {
    Stamp::between(
        at.earliest.saturating_sub(TAP_DISTANCE_NS),
        at.latest.saturating_add(TAP_DISTANCE_NS),
        Source::Packet,
    )
}
