//! One exchange while it is open, and the raw stamps it leaves behind.

use std::sync::{Arc, OnceLock};

use http::Version;
use skewtap_core::exchange::Outcome;
use skewtap_host::WatchResult;
use skewtap_sockstamp::TcpInfo;

use super::Side;
use super::clock_step::ClockDifference;
use super::leg::{ConnectTimes, DownLeg, LegAddresses, ServerEnds};
use super::request_facts::RequestFacts;
use super::stream_part::StreamPart;
use super::tunnel::{Flow, Tunnel};
use crate::message_log::Message;
use crate::moment::{Arrival, Departure};
use crate::trace_context::TraceContext;

/// Where the result of a watch is put when it is over.
pub(crate) type WatchSlot = Arc<OnceLock<WatchResult>>;

/// Counters of a connection at the start and at the end of an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpSpan {
    /// `None` at the start of the connection, when all are zero.
    pub(crate) before: Option<TcpInfo>,
    pub(crate) after: Option<TcpInfo>,
}

/// An exchange; once sealed, all that the proxy's own sockets tell of it.
#[derive(Debug)]
pub(crate) struct OpenExchange {
    pub(crate) id: u64,
    pub(crate) facts: RequestFacts,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) outcome: Option<Outcome>,
    /// What ended the exchange if it was not complete by then.
    fault: Option<Outcome>,
    pub(crate) status: Option<u16>,
    pub(crate) down: LegAddresses,
    pub(crate) down_earlier: i64,
    pub(crate) down_tcp: TcpSpan,
    /// When the client's connection was accepted, in the first exchange on it.
    pub(crate) accepted_ns: Option<i64>,
    /// When TLS was agreed on with the client, if it is round the connection.
    pub(crate) down_tls: Option<Arrival>,
    /// Which stream of the client's connection it took, if that carries several.
    pub(crate) stream: Option<StreamPart>,
    pub(crate) request: Option<Message<Arrival>>,
    pub(crate) sent_continue: Option<Message<Departure>>,
    pub(crate) response: Option<Message<Departure>>,
    pub(crate) up: Option<UpSide>,
    /// What went through after the messages, if the exchange becomes a tunnel.
    pub(crate) tunnel: Option<Box<Tunnel>>,
    /// What watching the client found, once it is over; `None` if the client was not watched.
    pub(crate) client_watch: Option<WatchSlot>,
    /// The same of the server.
    pub(crate) server_watch: Option<WatchSlot>,
    /// By how much the clock was stepped at the least; 0 until the exchange is sealed.
    pub(crate) clock_step_ns: i64,
    /// At the start.
    clock_difference: ClockDifference,
}

/// The part of an exchange that took place on the connection to the server.
#[derive(Debug)]
pub(crate) struct UpSide {
    pub(crate) ends: ServerEnds,
    pub(crate) earlier: i64,
    pub(crate) tcp: TcpSpan,
    /// How the connection came about, in the first exchange on it.
    pub(crate) connect: Option<ConnectTimes>,
    /// When TLS was agreed on with the server, if it is round the connection.
    pub(crate) tls: Option<Arrival>,
    /// Which stream of the connection it took, if that carries several.
    pub(crate) stream: Option<StreamPart>,
    pub(crate) request: Option<Message<Departure>>,
    pub(crate) got_continue: Option<Message<Arrival>>,
    pub(crate) response: Option<Message<Arrival>>,
    pub(crate) closed_ns: Option<i64>,
}

impl UpSide {
    pub(super) fn new(
        ends: ServerEnds,
        earlier: i64,
        connect: Option<ConnectTimes>,
        tls: Option<Arrival>,
        before: Option<TcpInfo>,
    ) -> Self {
        let tcp = TcpSpan {
            before,
            after: None,
        };
        Self {
            ends,
            earlier,
            tcp,
            connect,
            tls,
            stream: None,
            request: None,
            got_continue: None,
            response: None,
            closed_ns: None,
        }
    }
}

impl OpenExchange {
    /// Opens the exchange number `index` of a connection.
    pub(super) fn new<R, S>(
        id: u64,
        facts: RequestFacts,
        request: Option<Message<Arrival>>,
        down: &DownLeg<R, S>,
        index: u64,
    ) -> Self {
        Self {
            down_earlier: i64::try_from(index).unwrap_or(i64::MAX),
            down_tcp: TcpSpan {
                before: down.tcp,
                after: None,
            },
            accepted_ns: (index == 0).then_some(down.accepted_ns),
            down_tls: down.tls,
            request,
            ..Self::bare(id, facts, down.addresses)
        }
    }

    /// An exchange of which nothing is known but the request.
    pub(crate) fn bare(id: u64, facts: RequestFacts, down: LegAddresses) -> Self {
        Self {
            id,
            facts,
            trace: None,
            outcome: None,
            fault: None,
            status: None,
            down,
            down_earlier: 0,
            down_tcp: TcpSpan::default(),
            accepted_ns: None,
            down_tls: None,
            stream: None,
            request: None,
            sent_continue: None,
            response: None,
            up: None,
            tunnel: None,
            client_watch: None,
            server_watch: None,
            clock_step_ns: 0,
            clock_difference: ClockDifference::now(),
        }
    }

    /// The last byte of the request came.
    pub(super) fn request_ended(&mut self, end: u64, last: Arrival) {
        if let Some(request) = &mut self.request {
            (request.end, request.last) = (Some(end), Some(last));
        }
    }

    /// Whether the whole request has come, or its end cannot be known.
    pub(super) fn request_is_complete(&self) -> bool {
        self.request.is_none_or(|request| request.last.is_some())
    }

    /// The request's head left for the server.
    pub(super) fn ask_began(&mut self, message: Message<Departure>) {
        if let Some(up) = &mut self.up {
            up.request = Some(message);
        }
    }

    /// The last byte of the request left for the server.
    pub(super) fn ask_ended(&mut self, end: u64, last: Departure) {
        if let Some(request) = self.up.as_mut().and_then(|up| up.request.as_mut()) {
            (request.end, request.last) = (Some(end), Some(last));
        }
    }

    /// An interim response came from the server.
    pub(super) fn interim_arrived(&mut self, message: Message<Arrival>, status: u16) {
        if let (Some(up), 100) = (&mut self.up, status) {
            up.got_continue.get_or_insert(message);
        }
    }

    /// Whether the client's version of HTTP has interim responses.
    pub(super) fn takes_interim(&self) -> bool {
        self.facts.version >= Version::HTTP_11
    }

    /// An interim response left for the client.
    pub(super) fn interim_sent(&mut self, message: Message<Departure>, status: u16) {
        if status == 100 {
            self.sent_continue.get_or_insert(message);
        }
    }

    /// The head of the final response came from the server.
    pub(super) fn answer_began(&mut self, message: Message<Arrival>, status: u16) {
        if status == 101 {
            self.tunnel.get_or_insert_default();
        }
        if let Some(up) = &mut self.up {
            up.response = Some(message);
        }
    }

    /// The last byte of the response came from the server.
    pub(super) fn answer_ended(&mut self, end: u64, last: Arrival, figures: Option<TcpInfo>) {
        if let Some(up) = &mut self.up {
            up.tcp.after = figures;
            if let Some(response) = &mut up.response {
                (response.end, response.last) = (Some(end), Some(last));
            }
        }
    }

    /// Whether the server's whole response has come.
    pub(super) fn response_has_arrived(&self) -> bool {
        let response = self.up.as_ref().and_then(|up| up.response);
        response.is_some_and(|response| response.last.is_some())
    }

    /// The server closed its side of the connection.
    pub(super) fn server_closed(&mut self, seen_ns: i64) {
        if let Some(up) = &mut self.up {
            up.closed_ns.get_or_insert(seen_ns);
        }
    }

    /// Whether all of the request left for the server.
    pub(super) fn request_was_passed_on(&self) -> bool {
        let request = self.up.as_ref().and_then(|up| up.request);
        request.is_some_and(|request| request.last.is_some())
    }

    /// Something went wrong that ends the exchange, unless something else did before or all
    /// of the server's response has come.
    pub(super) fn fault(&mut self, fault: Outcome) {
        if !self.response_has_arrived() {
            self.fault.get_or_insert(fault);
        }
    }

    /// The proxy itself ends it before it is over.
    pub(super) fn cut_off(&mut self) {
        if self.tunnel.is_some() {
            self.outcome.get_or_insert(Outcome::ProxyStopped);
        } else {
            self.fault(Outcome::ProxyStopped);
        }
    }

    /// What came from one side through the tunnel.
    pub(super) fn flow(&mut self, side: Side) -> Option<&mut Flow> {
        let tunnel = self.tunnel.as_mut()?;
        Some(match side {
            Side::Down => &mut tunnel.down,
            Side::Up => &mut tunnel.up,
        })
    }

    /// Whether it is a connection that began as a tunnel.
    pub(crate) fn is_carried(&self) -> bool {
        let tunnel = self.tunnel.as_ref();
        tunnel.is_some_and(|tunnel| tunnel.carried.is_some())
    }

    /// Settles how the exchange ended.
    pub(super) fn settle(&mut self) {
        let cut_short = || self.fault.unwrap_or(Outcome::ClientGone);
        let all_tunnel = self.is_carried();
        let outcome = if all_tunnel || (self.response_was_written() && self.tunnel.is_some()) {
            Outcome::Upgraded
        } else if self.response_was_written() {
            Outcome::Complete
        } else {
            cut_short()
        };
        self.outcome.get_or_insert(outcome);
    }

    /// The head of the final response left for the client.
    pub(super) fn response_began(&mut self, message: Message<Departure>, status: u16) {
        (self.response, self.status) = (Some(message), Some(status));
    }

    /// The last byte of the response left for the client.
    pub(super) fn response_ended(&mut self, end: u64, last: Departure) {
        if let Some(response) = &mut self.response {
            (response.end, response.last) = (Some(end), Some(last));
        }
    }

    /// Whether the whole response left for the client.
    pub(super) fn response_was_written(&self) -> bool {
        self.response_left().is_some()
    }

    /// When the last byte of the response left for the client.
    pub(super) fn response_left(&self) -> Option<Departure> {
        self.response.and_then(|response| response.last)
    }

    /// Takes the last readings; nothing is added later.
    pub(super) fn seal(&mut self, figures: Option<TcpInfo>) {
        self.down_tcp.after = figures;
        self.clock_step_ns = ClockDifference::now().least_step_since(self.clock_difference);
    }
}
