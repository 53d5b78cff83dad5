//! The raw stamps of an exchange as milestones.

use skewtap_core::clock::{Source, Stamp};
use skewtap_core::milestone::{Milestone, Milestones};
use skewtap_host::WatchResult;

use crate::journal::{Flow, OpenExchange, UpSide};
use crate::message_log::Message;
use crate::moment::{Arrival, Departure};

/// Room for the stamps of most exchanges.
const STAMPS: usize = 32;

/// Notes what the watches over both ends found.
pub(super) fn of_watches(
    milestones: &mut Milestones,
    client: Option<&WatchResult>,
    server: Option<&WatchResult>,
) {
    let found = [
        (
            Milestone::ClientPickedUp,
            client.and_then(|watch| watch.picked_up),
        ),
        (
            Milestone::ServerPickedUp,
            server.and_then(|watch| watch.picked_up),
        ),
        (
            Milestone::ServerAccepted,
            server.and_then(|watch| watch.accepted),
        ),
    ];
    for (milestone, stamp) in found {
        if let Some(stamp) = stamp {
            milestones.note(milestone, stamp);
        }
    }
}

/// The stamps taken on both legs. They are noted in their order, as far as it is known beforehand.
pub(super) fn of_own_sockets(exchange: &OpenExchange) -> Milestones {
    let mut milestones = Milestones::with_capacity(STAMPS);
    if let Some(ns) = exchange.accepted_ns {
        milestones.note(Milestone::DownConnected, Stamp::at(ns, Source::User));
        arrival(&mut milestones, Milestone::DownTlsDone, exchange.down_tls);
    }
    arrivals(
        &mut milestones,
        exchange.request,
        [
            Milestone::DownRequestFirst,
            Milestone::DownRequestHead,
            Milestone::DownRequestLast,
        ],
    );
    if let Some(up) = &exchange.up {
        up_stamps(&mut milestones, up);
    }
    if let Some(interim) = exchange.sent_continue {
        milestones.note(Milestone::DownContinue, interim.head.stamp());
    }
    departures(
        &mut milestones,
        exchange.response,
        [
            Milestone::DownResponseFirst,
            Milestone::DownResponseHead,
            Milestone::DownResponseLast,
        ],
    );
    if let Some(tunnel) = &exchange.tunnel {
        let down = [Milestone::DownTunnelFirst, Milestone::DownTunnelLast];
        let up = [Milestone::UpTunnelFirst, Milestone::UpTunnelLast];
        flow_stamps(&mut milestones, tunnel.down, down);
        flow_stamps(&mut milestones, tunnel.up, up);
    }
    milestones
}

fn up_stamps(milestones: &mut Milestones, up: &UpSide) {
    if let Some(connect) = up.connect {
        milestones.note(Milestone::UpConnectStart, connect.start.stamp());
        let connected = Stamp::at(connect.connected_ns, Source::User);
        milestones.note(Milestone::UpConnected, connected);
        arrival(milestones, Milestone::UpTlsDone, up.tls);
    }
    departures(
        milestones,
        up.request,
        [
            Milestone::UpRequestFirst,
            Milestone::UpRequestHead,
            Milestone::UpRequestLast,
        ],
    );
    let interim = up.got_continue.map(|interim| interim.head);
    arrival(milestones, Milestone::UpContinue, interim);
    arrivals(
        milestones,
        up.response,
        [
            Milestone::UpResponseFirst,
            Milestone::UpResponseHead,
            Milestone::UpResponseLast,
        ],
    );
    if let Some(ns) = up.closed_ns {
        milestones.note(Milestone::UpFin, Stamp::at(ns, Source::User));
    }
}

fn flow_stamps(milestones: &mut Milestones, flow: Flow, names: [Milestone; 2]) {
    let (first, last) = flow.times.unzip();
    for (milestone, at) in names.into_iter().zip([first, last]) {
        arrival(milestones, milestone, at);
    }
}

/// Notes when a byte arrived, by each source that tells.
pub(super) fn arrival(milestones: &mut Milestones, milestone: Milestone, at: Option<Arrival>) {
    for stamp in at.into_iter().flat_map(Arrival::stamps) {
        milestones.note(milestone, stamp);
    }
}

fn arrivals(milestones: &mut Milestones, message: Option<Message<Arrival>>, names: [Milestone; 3]) {
    let Some(message) = message else { return };
    let times = [Some(message.first), Some(message.head), message.last];
    for (milestone, at) in names.into_iter().zip(times) {
        arrival(milestones, milestone, at);
    }
}

fn departures(
    milestones: &mut Milestones,
    message: Option<Message<Departure>>,
    names: [Milestone; 3],
) {
    let Some(message) = message else { return };
    let times = [Some(message.first), Some(message.head), message.last];
    for (milestone, departure) in names.into_iter().zip(times) {
        if let Some(departure) = departure {
            milestones.note(milestone, departure.stamp());
        }
    }
}
