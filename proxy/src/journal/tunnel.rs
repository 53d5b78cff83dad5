//! What went through a tunnel, without a look inside.

use std::os::fd::BorrowedFd;

use http::Method;
use skewtap_core::exchange::Outcome;
use skewtap_sockstamp::{realtime_ns, tcp_info};

use super::leg::ReadBytes;
use super::{Journal, RequestFacts, Side};
use crate::moment::{Arrival, Read};
use crate::trace_context::TraceContext;

/// What came from one side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flow {
    /// How many bytes.
    pub(crate) bytes: u64,
    /// When the first and the last of them came.
    pub(crate) times: Option<(Arrival, Arrival)>,
    /// How many had been read before the tunnel stood.
    early: u64,
}

impl Flow {
    /// Takes `count` bytes, of which the first came at `first`.
    pub(super) fn add(&mut self, count: usize, first: impl FnOnce() -> Arrival, last: Arrival) {
        self.bytes = self.bytes.saturating_add(count as u64);
        let earlier = self.times.map(|(first, _)| first);
        self.times = Some((earlier.unwrap_or_else(first), last));
    }
}

/// What a connection is that begins as a tunnel, without a request for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// TLS, with the name of the server that the client asked for, if it told.
    Tls(Option<String>),
    /// Nobody knows.
    Unknown,
}

/// Both directions of a tunnel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tunnel {
    /// What it began with, if no request asked for it.
    pub(crate) carried: Option<Carried>,
    /// From the client.
    pub(crate) down: Flow,
    /// From the server.
    pub(crate) up: Flow,
}

impl Journal {
    /// Notes that the exchange now being served becomes a tunnel once it has its response.
    pub(crate) fn tunnel_is_made(&mut self) {
        if let Some(exchange) = self.open.back_mut() {
            exchange.tunnel.get_or_insert_default();
        }
    }

    /// Opens the exchange of a connection that is all tunnel.
    pub(crate) fn carries(&mut self, what: Carried) {
        let meant = self.down.addresses.meant;
        let authority = match &what {
            Carried::Tls(Some(name)) => format!("{name}:{}", meant.port()),
            Carried::Tls(None) | Carried::Unknown => meant.to_string(),
        };
        self.begin(RequestFacts::of_tunnel(&authority));
        if let Some(exchange) = self.open.back_mut() {
            exchange.trace = TraceContext::new();
            exchange.tunnel.get_or_insert_default().carried = Some(what);
        }
    }

    /// Whether the exchange now being served becomes, or is, a tunnel.
    pub(crate) fn is_tunnel(&self) -> bool {
        let newest = self.open.back();
        newest.is_some_and(|open| open.tunnel.is_some())
    }

    /// Bytes sent to the client so far, as HTTP counts them.
    pub(crate) fn sent_to_client(&self) -> u64 {
        self.down.responses.offset()
    }

    /// Whether TLS is round the client's connection.
    pub(crate) fn client_speaks_tls(&self) -> bool {
        self.down.tls.is_some()
    }

    /// Whether the request now being served asks for a tunnel by its method.
    pub(crate) fn serves_connect(&self) -> bool {
        let newest = self.open.back();
        newest.is_some_and(|open| open.facts.method == Method::CONNECT)
    }

    /// Takes so many bytes that came from the client and from the server before the tunnel stood.
    pub(crate) fn tunnelled_early(&mut self, (down, up): (usize, usize)) {
        self.early(Side::Down, down);
        self.early(Side::Up, up);
    }

    fn early(&mut self, side: Side, count: usize) {
        let now_ns = realtime_ns();
        let Some(exchange) = self.open.back_mut() else {
            return;
        };
        let up = exchange.up.as_ref().and_then(|up| up.response);
        let not_before_ns = match side {
            Side::Down => exchange.request.map(|request| request.first.not_before_ns),
            Side::Up => up.map(|response| response.first.not_before_ns),
        };
        let at = Arrival {
            kernel: None,
            user_ns: now_ns,
            not_before_ns: not_before_ns.unwrap_or(now_ns),
        };
        if let (Some(flow), 1..) = (exchange.flow(side), count) {
            flow.add(count, || at, at);
            flow.early = flow.bytes;
        }
    }

    /// Takes a read of `count` bytes from inside the tunnel, 0 at the end of what one side sends.
    pub(crate) fn tunnelled(
        &mut self,
        side: Side,
        count: usize,
        read: Read,
        socket: BorrowedFd<'_>,
    ) {
        let Self { down, up, open, .. } = self;
        let Some(exchange) = open.back_mut() else {
            return;
        };
        let (bounds, offset, tcp) = match (side, up) {
            (Side::Down, _) => (&mut down.bounds, down.requests.offset(), &mut down.tcp),
            (Side::Up, Some(up)) => {
                let received = up.received();
                (&mut up.bounds, received, &mut up.tcp)
            }
            (Side::Up, None) => return,
        };
        if count == 0 {
            if side == Side::Up {
                exchange.server_closed(read.after_ns);
            }
            *tcp = tcp_info(socket).ok().or(*tcp);
            return;
        }
        let Some(flow) = exchange.flow(side) else {
            return;
        };
        let start = offset.saturating_add(flow.bytes - flow.early);
        let this_read = ReadBytes::new(*bounds, read, (start, count), socket);
        flow.add(count, || this_read.first(), this_read.latest());
        *bounds = this_read.done().0;
    }

    /// Takes the break of one side's connection under a tunnel.
    pub(crate) fn tunnel_broke(&mut self, side: Side) {
        self.answered_here(match side {
            Side::Down => Outcome::ClientGone,
            Side::Up => Outcome::UpstreamBroken,
        });
    }
}
