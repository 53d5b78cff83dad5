//! From the raw stamps of an exchange to its record.

use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use skewtap_core::clock::{Source, Stamp};
use skewtap_core::endpoint::QueueWatch;
use skewtap_core::exchange::{
    ExchangeRecord, Leg, Outcome, SourceState, Sources, StreamShare, TcpFigures, UNIX_PREFIX,
};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::milestone::{Milestone, Milestones};
use skewtap_host::WatchResult;

use crate::capture_thread::SeenPackets;
use crate::journal::{
    Carried, Flow, LegAddresses, OpenExchange, ServerEnds, Side, StreamPart, TcpSpan, UpSide,
};
use crate::message_log::Message;
use crate::moment::{Arrival, Departure};
use crate::wire_join::{self, Told};

/// Longest text taken from a request, in bytes; the rest is cut off.
const LONGEST_TEXT: usize = 2_048;

/// Makes the record of a finished exchange. `activity` is the client's next sign of life, if it
/// proves that the client has read the response.
pub(crate) fn of(
    exchange: &OpenExchange,
    activity: Option<Arrival>,
    sources: &Sources,
    packets: Option<&SeenPackets>,
) -> Option<ExchangeRecord> {
    let mut milestones = own_stamps(exchange);
    arrival(&mut milestones, Milestone::ClientNextActivity, activity);
    let mut sources = sources.clone();
    if let Some(packets) = packets {
        let told = packets.look(|index| wire_join::add(index, exchange, &mut milestones));
        let end = exchange.response.and_then(|response| response.last);
        let told = match end {
            Some(end) if !packets.has_come_to(end.before_ns) => Told::Behind,
            _ => told,
        };
        sources.capture = capture_state(told, packets.state());
    }
    let [client, server] = [&exchange.client_watch, &exchange.server_watch]
        .map(|slot| slot.as_ref().and_then(|slot| slot.get()));
    watched(&mut milestones, client, server);
    let (trace_id, span_id, parent_span_id, sampled) = identity(exchange)?;
    let facts = &exchange.facts;
    let authority = facts.authority.as_ref();
    Some(ExchangeRecord {
        trace_id,
        span_id,
        parent_span_id,
        sampled,
        method: cut(facts.method.as_str()),
        scheme: scheme(exchange),
        authority: authority
            .map(|a| cut(&String::from_utf8_lossy(a.as_bytes())))
            .unwrap_or_default(),
        path: cut(facts.uri.path()),
        status: exchange.status,
        outcome: exchange.outcome.unwrap_or(Outcome::ClientGone),
        request_bytes: bytes(exchange, exchange.request.and_then(length), Side::Down),
        response_bytes: bytes(exchange, exchange.response.and_then(length), Side::Up),
        down: leg(
            over_tcp(exchange.down),
            exchange.down_earlier,
            exchange.down_tcp,
        ),
        up: exchange
            .up
            .as_ref()
            .map(|up| leg(server_ends(&up.ends), up.earlier, up.tcp)),
        down_stream: share(exchange.stream, exchange.request, exchange.response),
        up_stream: exchange
            .up
            .as_ref()
            .and_then(|up| share(up.stream, up.request, up.response)),
        milestones,
        client_queue: client.map_or(QueueWatch::NOT_WATCHED, |watch| watch.queue),
        client_process: client.and_then(|watch| watch.process.clone()),
        server_queue: server.map_or(QueueWatch::NOT_WATCHED, |watch| watch.queue),
        server_process: server.and_then(|watch| watch.process.clone()),
        sources,
        clock_step_ns: exchange.clock_step_ns,
    })
}

fn watched(
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

fn own_stamps(exchange: &OpenExchange) -> Milestones {
    let mut milestones = Milestones::default();
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
    if let Some(up) = &exchange.up {
        up_stamps(&mut milestones, up);
    }
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

fn arrival(milestones: &mut Milestones, milestone: Milestone, at: Option<Arrival>) {
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

/// What the client asked for: by the URL it gave whole, else by what it asked over; what a tunnel
/// that it did not ask for has inside.
fn scheme(exchange: &OpenExchange) -> String {
    let tunnel = exchange.tunnel.as_deref();
    let over = match tunnel.and_then(|tunnel| tunnel.carried.as_ref()) {
        Some(Carried::Tls(_)) => "tls",
        Some(Carried::Unknown) => "tcp",
        None if exchange.down_tls.is_some() => "https",
        None => "http",
    };
    exchange.facts.uri.scheme_str().unwrap_or(over).to_owned()
}

fn capture_state(told: Told, state: SourceState) -> SourceState {
    match (state, told) {
        (SourceState::Used, Told::Some) => SourceState::Used,
        (SourceState::Used, Told::Nothing) => {
            SourceState::Unavailable("no packet of this exchange was seen".to_owned())
        }
        (SourceState::Used, Told::Behind) => SourceState::Unavailable(
            "the capture had not come to the end of this exchange".to_owned(),
        ),
        (SourceState::Used, Told::Lossy) => SourceState::Unavailable(
            "packets may have been lost to the capture during this exchange".to_owned(),
        ),
        (other, _) => other,
    }
}

/// Trace, own span, parent span, and whether it is sampled.
fn identity(exchange: &OpenExchange) -> Option<(TraceId, SpanId, Option<SpanId>, bool)> {
    let trace = exchange.trace?;
    if trace.added {
        return Some((trace.trace_id, trace.span_id, None, trace.sampled));
    }
    let own = RandomIdGenerator::default().new_span_id();
    let own = SpanId::from_bytes(&own.to_bytes()).ok()?;
    Some((trace.trace_id, own, Some(trace.span_id), trace.sampled))
}

fn over_tcp(ends: LegAddresses) -> [String; 2] {
    [ends.local, ends.peer].map(|end| end.to_string())
}

fn server_ends(ends: &ServerEnds) -> [String; 2] {
    match ends {
        ServerEnds::Tcp(ends) => over_tcp(*ends),
        ServerEnds::Unix(path) => {
            let path = cut(&path.to_string_lossy());
            [String::new(), path].map(|path| format!("{UNIX_PREFIX}{path}"))
        }
    }
}

fn leg([local, peer]: [String; 2], earlier_exchanges: i64, tcp: TcpSpan) -> Leg {
    Leg {
        local,
        peer,
        earlier_exchanges,
        tcp: tcp.after.and_then(|after| {
            let before_retransmits = tcp.before.map_or(0, |before| before.total_retransmits);
            let before_limited = tcp.before.map_or(0, |before| before.window_limited_ns);
            Some(TcpFigures {
                min_rtt_ns: after.min_rtt_ns?,
                retransmits: i64::from(after.total_retransmits.wrapping_sub(before_retransmits)),
                window_limited_ns: after.window_limited_ns.saturating_sub(before_limited),
            })
        }),
    }
}

fn length<T>(message: Message<T>) -> Option<i64> {
    let bytes = match message.interleaved {
        Some(interleaved) => interleaved.own,
        None => message.end?.checked_sub(message.start)?,
    };
    i64::try_from(bytes).ok()
}

fn share<Q, S>(
    stream: Option<StreamPart>,
    request: Option<Message<Q>>,
    response: Option<Message<S>>,
) -> Option<StreamShare> {
    Some(StreamShare {
        id: i64::from(stream?.id),
        request_behind_bytes: request.and_then(behind),
        response_behind_bytes: response.and_then(behind),
    })
}

fn behind<T>(message: Message<T>) -> Option<i64> {
    i64::try_from(message.interleaved?.others).ok()
}

/// Bytes of a message and of what came after it from the same side through a tunnel.
fn bytes(exchange: &OpenExchange, message: Option<i64>, from: Side) -> Option<i64> {
    let message = message.or(exchange.is_carried().then_some(0))?;
    let tunnel = exchange.tunnel.as_deref();
    let inside = tunnel.map_or(0, |tunnel| match from {
        Side::Down => tunnel.down.bytes,
        Side::Up => tunnel.up.bytes,
    });
    Some(message.saturating_add(i64::try_from(inside).unwrap_or(i64::MAX)))
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_TEXT.min(text.len()));
    text.get(..end).unwrap_or_default().to_owned()
}
