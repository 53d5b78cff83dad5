//! Adds the times of an exchange's packets.

use std::net::SocketAddr;

use skewtap_capture::packet_index::PacketIndex;
use skewtap_capture::wire_times::{
    MessageTimes, Travel, WireMessage, connection_times, message_times,
};
use skewtap_core::clock::{ProxyClock, Stamp};
use skewtap_core::milestone::{Milestone, Milestones};

use crate::journal::{LegAddresses, OpenExchange, UpSide};
use crate::message_log::Message;

/// How much the packets told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// At least one stamp, and no loss is known.
    Some,
    /// No stamp.
    Nothing,
    /// Packets may have been lost during the exchange.
    Lossy,
    /// Packets of the exchange may wait to be looked at.
    Behind,
}

/// Adds the stamps of the packets of `exchange`, then lets the index forget what came before it.
pub(crate) fn add(
    index: &mut PacketIndex,
    exchange: &OpenExchange,
    milestones: &mut Milestones,
) -> Told {
    let before = milestones.iter().count();
    let mut note = |milestone, stamp: Option<Stamp<ProxyClock>>| {
        if let Some(stamp) = stamp {
            milestones.note(milestone, stamp);
        }
    };
    down(index, exchange, &mut note);
    up(index, exchange, &mut note);
    let from = milestones.iter().map(|(_, stamp)| stamp.lo()).min();
    let to = milestones.iter().map(|(_, stamp)| stamp.hi()).max();
    forget(index, exchange);
    if from
        .zip(to)
        .is_some_and(|(from, to)| index.lost_between(from, to))
    {
        Told::Lossy
    } else if milestones.iter().count() > before {
        Told::Some
    } else {
        Told::Nothing
    }
}

type Note<'a> = dyn FnMut(Milestone, Option<Stamp<ProxyClock>>) + 'a;

fn down(index: &PacketIndex, exchange: &OpenExchange, note: &mut Note<'_>) {
    let ends = canonical(exchange.down);
    if let Some(accepted_ns) = exchange.accepted_ns {
        let times = connection_times(index, ends.local, ends.peer, accepted_ns);
        note(Milestone::DownConnected, times.and_then(|times| times.ack));
    }
    if exchange.down_tls.is_some() {
        // Where messages lie in the ciphertext is not known.
        return;
    }
    if let Some(request) = &exchange.request {
        let at = request.first.user_ns;
        let times = times_of(index, arriving(ends, request, at));
        note(Milestone::DownRequestFirst, times.first);
        note(Milestone::DownRequestHead, times.head);
        note(
            Milestone::DownRequestLast,
            times.last.filter(|_| request.end.is_some()),
        );
    }
    if let Some(interim) = &exchange.sent_continue {
        let at = interim.first.after_ns;
        note(
            Milestone::DownContinue,
            times_of(index, leaving(ends, interim, at)).last,
        );
    }
    if let Some(response) = &exchange.response {
        let times = times_of(index, leaving(ends, response, response.first.after_ns));
        let complete = |stamp: Option<_>| stamp.filter(|_| response.end.is_some());
        note(Milestone::DownResponseFirst, times.first);
        note(Milestone::DownResponseHead, times.head);
        note(Milestone::DownResponseLast, complete(times.last));
        note(Milestone::ClientAcked, complete(times.acked));
    }
}

fn up(index: &PacketIndex, exchange: &OpenExchange, note: &mut Note<'_>) {
    let Some((up, ends)) = up_over_tcp(exchange) else {
        return;
    };
    if let Some(connect) = &up.connect {
        let times = connection_times(index, ends.local, ends.peer, connect.connected_ns);
        note(Milestone::UpConnectStart, times.and_then(|times| times.syn));
        note(
            Milestone::UpConnected,
            times.and_then(|times| times.syn_ack),
        );
    }
    if let Some(closed_ns) = up.closed_ns {
        let times = connection_times(index, ends.local, ends.peer, closed_ns);
        note(Milestone::UpFin, times.and_then(|times| times.peer_fin));
    }
    if up.tls.is_none() {
        up_messages(index, up, ends, note);
    }
}

fn up_messages(index: &PacketIndex, up: &UpSide, ends: LegAddresses, note: &mut Note<'_>) {
    if let Some(request) = &up.request {
        let times = times_of(index, leaving(ends, request, request.first.after_ns));
        note(Milestone::UpRequestFirst, times.first);
        note(Milestone::UpRequestHead, times.head);
        note(
            Milestone::UpRequestLast,
            times.last.filter(|_| request.end.is_some()),
        );
    }
    if let Some(interim) = &up.got_continue {
        let at = interim.first.user_ns;
        note(
            Milestone::UpContinue,
            times_of(index, arriving(ends, interim, at)).last,
        );
    }
    if let Some(response) = &up.response {
        let at = response.first.user_ns;
        let times = times_of(index, arriving(ends, response, at));
        note(Milestone::UpResponseFirst, times.first);
        note(Milestone::UpResponseHead, times.head);
        note(
            Milestone::UpResponseLast,
            times.last.filter(|_| response.end.is_some()),
        );
    }
}

fn times_of(index: &PacketIndex, message: WireMessage) -> MessageTimes {
    message_times(index, &message).unwrap_or_default()
}

fn arriving<T>(ends: LegAddresses, message: &Message<T>, at: i64) -> WireMessage {
    WireMessage {
        sender: ends.peer,
        receiver: ends.local,
        at,
        travel: Travel::Arriving,
        start: message.start,
        head_end: message.head_end,
        end: message.end.unwrap_or(message.head_end),
    }
}

fn leaving<T>(ends: LegAddresses, message: &Message<T>, at: i64) -> WireMessage {
    WireMessage {
        sender: ends.local,
        receiver: ends.peer,
        travel: Travel::Leaving,
        ..arriving(ends, message, at)
    }
}

fn forget(index: &mut PacketIndex, exchange: &OpenExchange) {
    let ends = canonical(exchange.down);
    let floors = exchange.stream.map(|part| part.floor);
    if let Some(request) = &exchange.request {
        let before = floors.map_or(request.start, |(requests, _)| requests);
        index.forget_before(ends.peer, ends.local, request.first.user_ns, before);
    }
    if let Some(response) = &exchange.response {
        let before = floors.map_or(response.start, |(_, responses)| responses);
        index.forget_before(ends.local, ends.peer, response.first.after_ns, before);
    }
    let Some((up, ends)) = up_over_tcp(exchange) else {
        return;
    };
    let floors = up.stream.map(|part| part.floor);
    if let Some(request) = &up.request {
        let before = floors.map_or(request.start, |(requests, _)| requests);
        index.forget_before(ends.local, ends.peer, request.first.after_ns, before);
    }
    if let Some(response) = &up.response {
        let before = floors.map_or(response.start, |(_, responses)| responses);
        index.forget_before(ends.peer, ends.local, response.first.user_ns, before);
    }
}

fn up_over_tcp(exchange: &OpenExchange) -> Option<(&UpSide, LegAddresses)> {
    let up = exchange.up.as_ref()?;
    Some((up, canonical(up.ends.over_tcp()?)))
}

/// Addresses as packets have them: IPv4 without its IPv6 clothes.
fn canonical(ends: LegAddresses) -> LegAddresses {
    let bare = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    LegAddresses::new(bare(ends.local), bare(ends.peer))
}
