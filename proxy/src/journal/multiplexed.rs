//! Everything known of one client's HTTP/2 connection and the connections to servers behind it.
//!
//! As in the journal of an HTTP/1 connection, sockets report their reads and writes here. Each
//! exchange is known by its stream, whose number the HTTP library tells with every request. The
//! exchanges are independent of one another, so the client's next byte proves nothing of what
//! it has read before.

mod passing;

use std::collections::HashMap;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use skewtap_core::exchange::Outcome;

use super::leg::{Connected, DownLeg, HttpVersion, LegAddresses, UpLeg};
use super::open_exchange::OpenExchange;
use super::request_facts::RequestFacts;
use super::stream_part::StreamPart;
use super::watches::Watches;
use crate::metrics::Dropped;
use crate::moment::{Arrival, Departure, Read};
use crate::note::Note;
use crate::stream_log::{StreamLog, Track};
use crate::trace_context::TraceContext;
use crate::transport::Transport;
use crate::worker::Worker;

/// Which of the connections that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    /// From the client.
    Client,
    /// To a server, by the number that [`Multiplexed::connected`] gave.
    Server(u64),
}

/// The journal of a client's HTTP/2 connection.
#[derive(Debug)]
pub(crate) struct Multiplexed {
    worker: Rc<Worker>,
    down: DownLeg<StreamLog<Arrival>, StreamLog<Departure>>,
    servers: HashMap<u64, Server>,
    next_server: u64,
    /// Exchanges that are not over, by the client's stream.
    open: HashMap<u32, Open>,
    /// Exchanges so far.
    begun: u64,
    /// Streams that the client took back.
    taken_back: u64,
    /// The client sends no more.
    down_ended: bool,
}

/// A connection to a server.
#[derive(Debug)]
struct Server {
    leg: UpLeg,
    /// The client's stream whose exchange is under way, where there is one at a time.
    current: Option<u32>,
    /// The client's stream by the server's, where there are several.
    streams: HashMap<u32, u32>,
}

#[derive(Debug)]
struct Open {
    exchange: Box<OpenExchange>,
    watches: Watches,
    server: Option<u64>,
    /// Whoever served it has nothing more to send.
    served: bool,
    /// One side took it back.
    reset: bool,
}

impl Multiplexed {
    /// A journal of a connection accepted at `accepted_ns`; `tls` is the read that ended its
    /// handshake, if TLS is round it.
    pub(crate) fn new(
        worker: Rc<Worker>,
        addresses: LegAddresses,
        accepted_ns: i64,
        tls: Option<Read>,
    ) -> Self {
        let logs = (StreamLog::of_client(), StreamLog::of_responses());
        Self {
            worker,
            down: DownLeg::new(addresses, accepted_ns, tls, logs),
            servers: HashMap::new(),
            next_server: 0,
            open: HashMap::new(),
            begun: 0,
            taken_back: 0,
            down_ended: false,
        }
    }

    /// Opens the exchange of the request on `stream`.
    pub(crate) fn begin(&mut self, stream: u32, facts: RequestFacts) {
        let id = self.worker.next_exchange_id();
        let mut exchange = OpenExchange::new(id, facts, None, &self.down, self.begun);
        self.begun += 1;
        exchange.stream = Some(StreamPart::new(stream));
        let reset = self.down.requests.get(stream).is_some_and(Track::was_reset);
        self.down.responses.expect(stream);
        let open = Open {
            exchange: Box::new(exchange),
            watches: Watches::default(),
            server: None,
            served: false,
            reset,
        };
        self.open.insert(stream, open);
        let lost = self.down.requests.take_lost();
        self.worker.metrics.messages_lost(lost);
    }

    /// Notes the identifiers that the exchange belongs to.
    pub(crate) fn note_trace(&mut self, stream: u32, trace: TraceContext) {
        self.with(stream, |open| open.exchange.trace = Some(trace));
    }

    /// Notes a connection to a server; gives the number that it is known by.
    pub(crate) fn connected(&mut self, connected: Connected, version: HttpVersion) -> u64 {
        let number = self.next_server;
        self.next_server += 1;
        let server = Server {
            leg: UpLeg::new(connected, version),
            current: None,
            streams: HashMap::new(),
        };
        self.servers.insert(number, server);
        number
    }

    /// Ties the exchange to a connection to a server, and to its stream there, if it has any.
    pub(crate) fn sent_up(&mut self, stream: u32, number: u64, up_stream: Option<u32>) {
        let found = (self.open.get_mut(&stream), self.servers.get_mut(&number));
        let (Some(open), Some(server)) = found else {
            return;
        };
        open.exchange.up = Some(server.leg.begin(up_stream));
        open.server = Some(number);
        match up_stream {
            Some(up_stream) => {
                server.streams.insert(up_stream, stream);
            }
            None => server.current = Some(stream),
        }
    }

    /// Takes the status of a response that came on the server's stream, be it interim or final.
    pub(crate) fn answered(&mut self, stream: u32, status: u16) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        let server = open.server.and_then(|number| self.servers.get(&number));
        if let Some(server) = server {
            let leg = &server.leg;
            leg.responds(&mut open.exchange, &mut open.watches, status);
        }
    }

    /// Takes the status of the response that goes to the client next.
    pub(crate) fn responds(&mut self, stream: u32, status: u16) {
        self.with(stream, |open| {
            if let Some(part) = &mut open.exchange.stream {
                part.responds(status);
            }
        });
    }

    /// Notes that the proxy answers by itself.
    pub(crate) fn answered_here(&mut self, stream: u32, outcome: Outcome) {
        self.with(stream, |open| open.exchange.outcome = Some(outcome));
    }

    /// Notes what ends the exchange, if nothing did before.
    pub(crate) fn fault(&mut self, stream: u32, fault: Outcome) {
        self.gather(stream);
        self.with(stream, |open| open.exchange.fault(fault));
    }

    /// Notes that nothing more will be sent for the exchange than what is on its way.
    pub(crate) fn served(&mut self, stream: u32) {
        self.with(stream, |open| open.served = true);
        self.finish_if_over(stream);
    }

    /// Takes a read.
    pub(crate) fn read(&mut self, leg: Leg, bytes: &[u8], read: Read, socket: BorrowedFd<'_>) {
        match leg {
            Leg::Client => self.read_down(bytes, read, socket),
            Leg::Server(number) => self.read_up(number, bytes, read, socket),
        }
        if let Some(kernel_ns) = read.kernel_ns {
            let delay_ns = read.after_ns.saturating_sub(kernel_ns);
            self.worker.metrics.scheduling_delay(delay_ns);
        }
    }

    /// Takes a write: the first `written` of `bytes` left.
    pub(crate) fn wrote(
        &mut self,
        leg: Leg,
        (bytes, written): (&[IoSlice<'_>], usize),
        when: Departure,
        transport: &Transport,
    ) {
        let ciphertext = transport.sent_as_ciphertext();
        match leg {
            Leg::Client => self.down.ciphertext = ciphertext,
            Leg::Server(number) => {
                if let Some(server) = self.servers.get_mut(&number) {
                    server.leg.ciphertext = ciphertext;
                }
            }
        }
        let mut left = written;
        for piece in bytes {
            let part = piece.get(..left.min(piece.len())).unwrap_or_default();
            left -= part.len();
            match leg {
                Leg::Client => self.wrote_down(part, when, transport.socket()),
                Leg::Server(number) => self.wrote_up(number, part, when),
            }
        }
    }

    /// Takes a socket's failure.
    pub(crate) fn failed(&mut self, leg: Leg) {
        match leg {
            Leg::Client => self.client_left(),
            Leg::Server(number) => {
                for stream in self.streams_of(number) {
                    self.fault(stream, Outcome::UpstreamBroken);
                }
            }
        }
    }

    /// Takes the end of a connection to a server.
    pub(crate) fn server_gone(&mut self, number: u64) {
        for stream in self.streams_of(number) {
            self.gather(stream);
        }
        self.servers.remove(&number);
    }

    /// The client's address.
    pub(crate) fn client(&self) -> SocketAddr {
        self.down.addresses.peer
    }

    /// How many exchanges there have been.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// How many streams the client has taken back.
    pub(crate) fn taken_back(&self) -> u64 {
        self.taken_back
    }

    /// Whether no exchange is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the client is in the middle of sending a header block.
    pub(crate) fn head_is_open(&self) -> bool {
        self.down.requests.head_is_open()
    }

    /// Closes whatever is still open when the connection ends.
    pub(crate) fn close(&mut self) {
        let mut left: Vec<u32> = self.open.keys().copied().collect();
        left.sort_unstable();
        for stream in left {
            if self.worker.cuts_off() {
                self.with(stream, |open| open.exchange.cut_off());
            }
            self.finish(stream);
        }
    }

    fn client_left(&mut self) {
        self.down_ended = true;
        let open: Vec<u32> = self.open.keys().copied().collect();
        for stream in open {
            self.fault(stream, Outcome::ClientGone);
        }
    }

    fn streams_of(&self, number: u64) -> Vec<u32> {
        let on_it =
            |(stream, open): (&u32, &Open)| (open.server == Some(number)).then_some(*stream);
        self.open.iter().filter_map(on_it).collect()
    }

    fn with(&mut self, stream: u32, change: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.get_mut(&stream) {
            change(open);
        }
    }

    /// Takes over what the logs have of the exchange.
    fn gather(&mut self, stream: u32) {
        let Some(open) = self.open.get_mut(&stream) else {
            return;
        };
        open.exchange
            .gather(&self.down.requests, &self.down.responses);
        let server = open.server.and_then(|number| self.servers.get(&number));
        if let (Some(side), Some(server)) = (&mut open.exchange.up, server) {
            side.gather(&server.leg);
        }
    }

    /// Finishes the exchange if nothing more can come of it.
    fn finish_if_over(&mut self, stream: u32) {
        self.gather(stream);
        let over =
            |open: &Open| open.served && (open.reset || open.exchange.response_was_written());
        if self.open.get(&stream).is_some_and(over) {
            self.finish(stream);
        }
    }

    fn finish(&mut self, stream: u32) {
        self.gather(stream);
        let Some(mut open) = self.open.remove(&stream) else {
            return;
        };
        let exchange = &mut open.exchange;
        self.down.requests.forget(stream);
        self.down.responses.forget(stream);
        if let Some(part) = &mut exchange.stream {
            part.ends(&self.down.requests, &self.down.responses);
        }
        if let Some(server) = open.server.and_then(|number| self.servers.get_mut(&number)) {
            server.current = server.current.filter(|current| *current != stream);
            let part = exchange.up.as_mut().and_then(|side| side.stream.as_mut());
            if let Some(part) = part {
                server.streams.remove(&part.id);
                server.leg.forget(part);
            }
        }
        exchange.settle();
        exchange.seal(self.down.tcp);
        let outcome = exchange.outcome.unwrap_or(Outcome::ClientGone);
        self.worker.metrics.exchange(outcome);
        let id = exchange.id;
        if !self.worker.notes.send(Note::Finished(open.exchange)) {
            self.worker.metrics.dropped(Dropped::FinisherFull, 1);
        }
        // The watch goes on by itself; nothing else will tell that the response was read.
        let watch = open.watches.take_client();
        let at = None;
        self.worker.notes.send(Note::Activity { id, at, watch });
    }
}
