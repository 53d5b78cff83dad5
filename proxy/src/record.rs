//! From the raw stamps of an exchange to its record.

mod address_text;
mod stamps;

use std::borrow::Cow;

use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use skewtap_core::endpoint::QueueWatch;
use skewtap_core::exchange::{
    ExchangeRecord, Leg, Outcome, SourceState, Sources, StreamShare, TcpFigures, UNIX_PREFIX,
};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::milestone::{Milestone, Milestones};

use crate::capture_thread::SeenPackets;
use crate::journal::{Flow, OpenExchange, ServerEnds, StreamPart, TcpSpan};
use crate::message_log::Message;
use crate::moment::Arrival;
use crate::wire_join::{self, Told};

use address_text::LegTexts;

/// Longest text taken from a request, in bytes; the rest is cut off.
const LONGEST_TEXT: usize = 2_048;

/// A record that borrows from its exchange and its recorder.
pub(crate) type Record<'a> = ExchangeRecord<Cow<'a, str>>;

/// Makes records, one after the other.
#[derive(Debug)]
pub(crate) struct Recorder {
    sources: Sources,
    packets: Option<SeenPackets>,
    down: LegTexts,
    up: LegTexts,
}

impl Recorder {
    pub(crate) fn new(sources: Sources, packets: Option<SeenPackets>) -> Self {
        Self {
            sources,
            packets,
            down: LegTexts::default(),
            up: LegTexts::default(),
        }
    }

    /// Makes the record of a finished exchange. `activity` is the client's next sign of life, if
    /// it proves that the client has read the response.
    pub(crate) fn record<'a>(
        &'a mut self,
        exchange: &'a OpenExchange,
        activity: Option<Arrival>,
    ) -> Option<Record<'a>> {
        let mut milestones = stamps::of_own_sockets(exchange);
        stamps::arrival(&mut milestones, Milestone::ClientNextActivity, activity);
        let sources = self.at_work(exchange, &mut milestones);
        let [client, server] = [&exchange.client_watch, &exchange.server_watch]
            .map(|slot| slot.as_ref().and_then(|slot| slot.get()));
        stamps::of_watches(&mut milestones, client, server);
        let (trace_id, span_id, parent_span_id, sampled) = identity(exchange)?;
        let facts = &exchange.facts;
        let authority = facts.authority.as_ref();
        let tunnel = exchange.tunnel.as_deref().copied().unwrap_or_default();
        let (down, up) = (exchange.down, exchange.up.as_ref());
        Some(ExchangeRecord {
            trace_id,
            span_id,
            parent_span_id,
            sampled,
            method: Cow::Borrowed(cut(facts.method.as_str())),
            scheme: Cow::Borrowed(scheme(exchange)),
            authority: authority
                .map(|authority| lossy(authority.as_bytes()))
                .unwrap_or_default(),
            path: Cow::Borrowed(cut(facts.uri.path())),
            status: exchange.status,
            outcome: exchange.outcome.unwrap_or(Outcome::ClientGone),
            request_bytes: with_tunnel(exchange.request.and_then(length), tunnel.down),
            response_bytes: with_tunnel(exchange.response.and_then(length), tunnel.up),
            down: leg(
                self.down.of(down).map(Cow::Borrowed),
                exchange.down_earlier,
                exchange.down_tcp,
            ),
            up: up.map(|up| leg(server_ends(&mut self.up, &up.ends), up.earlier, up.tcp)),
            down_stream: share(exchange.stream, exchange.request, exchange.response),
            up_stream: up.and_then(|up| share(up.stream, up.request, up.response)),
            milestones,
            client_queue: client.map_or(QueueWatch::NOT_WATCHED, |watch| watch.queue),
            client_process: client.and_then(|watch| watch.process.clone()),
            server_queue: server.map_or(QueueWatch::NOT_WATCHED, |watch| watch.queue),
            server_process: server.and_then(|watch| watch.process.clone()),
            sources,
            clock_step_ns: exchange.clock_step_ns,
        })
    }

    /// Adds what packets tell, and says which sources were at work.
    fn at_work(&self, exchange: &OpenExchange, milestones: &mut Milestones) -> Sources {
        let mut sources = self.sources.clone();
        let Some(packets) = &self.packets else {
            return sources;
        };
        let told = packets.look(|index| wire_join::add(index, exchange, milestones));
        let end = exchange.response.and_then(|response| response.last);
        let told = match end {
            Some(end) if !packets.has_come_to(end.before_ns) => Told::Behind,
            _ => told,
        };
        sources.capture = capture_state(told, packets.state());
        sources
    }
}

/// What the client asked for: by the URL it gave whole, else by what it asked over.
fn scheme(exchange: &OpenExchange) -> &str {
    let over = if exchange.down_tls.is_some() {
        "https"
    } else {
        "http"
    };
    exchange.facts.uri.scheme_str().unwrap_or(over)
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

/// The ends of the connection to the server.
fn server_ends<'a>(texts: &'a mut LegTexts, ends: &ServerEnds) -> [Cow<'a, str>; 2] {
    match ends {
        ServerEnds::Tcp(ends) => texts.of(*ends).map(Cow::Borrowed),
        ServerEnds::Unix(path) => {
            let path = path.to_string_lossy();
            ["", cut(&path)].map(|path| Cow::Owned(format!("{UNIX_PREFIX}{path}")))
        }
    }
}

fn leg<T>([local, peer]: [T; 2], earlier_exchanges: i64, tcp: TcpSpan) -> Leg<T> {
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

fn with_tunnel(message: Option<i64>, flow: Flow) -> Option<i64> {
    let inside = i64::try_from(flow.bytes).unwrap_or(i64::MAX);
    message.map(|message| message.saturating_add(inside))
}

/// What a client sent, as text.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(cut(text)),
        Err(_) => Cow::Owned(cut(&String::from_utf8_lossy(bytes)).to_owned()),
    }
}

fn cut(text: &str) -> &str {
    let end = text.floor_char_boundary(LONGEST_TEXT.min(text.len()));
    text.get(..end).unwrap_or_default()
}
