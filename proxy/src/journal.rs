//! Everything known of one client connection and its connection to the server.
//!
//! The sockets of both legs report their reads and writes here, the service
//! stack reports which request is being served, and together they make up the
//! exchanges. All of it runs in the connection's own task.

mod client_side;
mod clock_step;
mod ending;
mod interim;
mod leg;
mod multiplexed;
mod open_exchange;
mod server_side;
mod stream_part;
mod tunnel;
mod waiting;
mod watches;

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use bytes::Bytes;
use skewtap_core::exchange::Outcome;

use crate::message_log::{Passed, RequestLog, ResponseLog};
use crate::metrics::Dropped;
use crate::moment::{Arrival, Departure, Read};
use crate::note::Note;
use crate::strict_head::HeadFault;
use crate::transport::Transport;
use crate::worker::Worker;

pub(crate) use ending::is_reset;
use interim::InterimQueue;
pub(crate) use leg::{ConnectTimes, Connected, HttpVersion, LegAddresses, ServerEnds};
use leg::{DownLeg, UpLeg};
pub(crate) use multiplexed::{Leg, Multiplexed};
#[cfg(test)]
pub(crate) use open_exchange::WatchSlot;
pub(crate) use open_exchange::{OpenExchange, RequestFacts, TcpSpan, UpSide};
pub(crate) use stream_part::StreamPart;
pub(crate) use tunnel::Flow;
use waiting::Waiting;
use watches::Watches;

/// Which of the two connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Between client and proxy.
    Down,
    /// Between proxy and server.
    Up,
}

impl Side {
    /// The other connection.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

/// The journal of one client connection.
#[derive(Debug)]
pub(crate) struct Journal {
    worker: Rc<Worker>,
    down: DownLeg,
    waiting: Waiting<Arrival>,
    up: Option<UpLeg>,
    /// Exchanges that are not over, oldest first; more than one only while the end of a response
    /// waits to be written and the next request has been read already.
    open: VecDeque<Box<OpenExchange>>,
    /// Requests given to the service stack so far.
    served: u64,
    interim: InterimQueue,
    watches: Watches,
    /// The latest finished exchange, until the client shows another sign of life.
    listening_for: Option<(u64, Departure)>,
    /// The client sent a request before it had the response to the one before.
    pipelines: bool,
    /// The first head that can be read in two ways, by the number of its request.
    head_fault: Option<(u64, HeadFault)>,
    /// The client sends no more.
    down_ended: bool,
    /// The server sends no more.
    up_ended: bool,
    /// Which side broke its connection with a reset, if one did.
    reset_by: Option<Side>,
    /// The latest answer was the proxy's own.
    own_answer: bool,
    /// Counts what came from the server, so that the connection's task sees when to look again.
    up_reads: u64,
}

impl Journal {
    /// A journal of a connection accepted at `accepted_ns`; `tls` is the read that ended its
    /// handshake, if TLS is round it.
    pub(crate) fn new(
        worker: Rc<Worker>,
        addresses: LegAddresses,
        accepted_ns: i64,
        tls: Option<Read>,
    ) -> Self {
        Self {
            worker,
            down: DownLeg::new(
                addresses,
                accepted_ns,
                tls,
                (RequestLog::new(), ResponseLog::new()),
            ),
            waiting: Waiting::new(),
            up: None,
            open: VecDeque::new(),
            served: 0,
            interim: InterimQueue::default(),
            watches: Watches::default(),
            listening_for: None,
            pipelines: false,
            head_fault: None,
            down_ended: false,
            up_ended: false,
            reset_by: None,
            own_answer: false,
            up_reads: 0,
        }
    }

    /// Opens the exchange of the next request.
    pub(crate) fn begin(&mut self, facts: RequestFacts) {
        self.finish_oldest_if_over();
        self.own_answer = false;
        let index = self.served;
        self.served += 1;
        let exchange = OpenExchange::new(
            self.worker.next_exchange_id(),
            facts,
            self.waiting.take(index),
            &self.down,
            index,
        );
        self.open.push_back(Box::new(exchange));
    }

    /// What makes the request now being served ambiguous, if anything does.
    pub(crate) fn head_fault(&self) -> Option<HeadFault> {
        let newest = self.open.back()?;
        match self.head_fault {
            Some((index, fault)) if index < self.served => Some(fault),
            _ => {
                let disputed = newest.request.is_none() && self.down.requests.is_lost();
                disputed.then_some(HeadFault::Disputed)
            }
        }
    }

    /// Whether what the client sends as the body of a request is not as its head announced it.
    pub(crate) fn body_is_broken(&self) -> bool {
        self.down.requests.body_is_broken()
    }

    /// The client's address.
    pub(crate) fn client(&self) -> SocketAddr {
        self.down.addresses.peer
    }

    /// Notes that the proxy answers the exchange now being served by itself.
    pub(crate) fn answered_here(&mut self, outcome: Outcome) {
        self.own_answer = true;
        let client_left = self.down_ended && outcome == Outcome::UpstreamBroken;
        if let Some(exchange) = self.open.back_mut() {
            // A server that closes after the client did is not to blame.
            exchange.outcome = Some(if client_left {
                Outcome::ClientGone
            } else {
                outcome
            });
        }
    }

    /// Notes the identifiers that the exchange now being served belongs to.
    pub(crate) fn note_trace(&mut self, trace: crate::trace_context::TraceContext) {
        if let Some(exchange) = self.open.back_mut() {
            exchange.trace = Some(trace);
        }
    }

    /// Notes a new connection to the server in place of the one before.
    pub(crate) fn connected(&mut self, connected: Connected, version: HttpVersion) {
        self.up = Some(UpLeg::new(connected, version));
        (self.up_ended, self.reset_by) = (false, None);
    }

    /// Ties the exchange now being served to the connection to the server.
    pub(crate) fn sent_up(&mut self) {
        if let (Some(exchange), Some(up)) = (self.open.back_mut(), &mut self.up) {
            exchange.up = Some(up.begin(None));
        }
    }

    /// Takes a read.
    pub(crate) fn read(&mut self, side: Side, bytes: &[u8], read: Read, socket: BorrowedFd<'_>) {
        match side {
            Side::Down => self.read_down(bytes, read, socket),
            Side::Up => self.read_up(bytes, read, socket),
        }
        if let Some(kernel_ns) = read.kernel_ns {
            self.worker
                .metrics
                .scheduling_delay(read.after_ns.saturating_sub(kernel_ns));
        }
    }

    /// Takes a write: the first `written` of `bytes` left.
    pub(crate) fn wrote(
        &mut self,
        side: Side,
        (bytes, written): (&[IoSlice<'_>], usize),
        when: Departure,
        transport: &Transport,
    ) {
        match (side, &mut self.up) {
            (Side::Down, _) => self.down.ciphertext = transport.sent_as_ciphertext(),
            (Side::Up, Some(up)) => up.ciphertext = transport.sent_as_ciphertext(),
            (Side::Up, None) => {}
        }
        let mut left = written;
        for piece in bytes {
            let part = piece.get(..left.min(piece.len())).unwrap_or_default();
            left -= part.len();
            match side {
                Side::Down => self.wrote_down(part, when, transport.socket()),
                Side::Up => self.wrote_up(part, when),
            }
        }
    }

    /// Takes the proxy's own close of its sending half.
    pub(crate) fn closing(&mut self, side: Side) {
        if side == Side::Down {
            let mut ended = None;
            self.down
                .responses
                .end_of_stream(|passed| ended = Some(passed));
            if let Some(Passed::End { end, last, .. }) = ended {
                self.response_ended(end, last);
            }
        }
    }

    /// The interim response bytes to be written now, if any are due.
    pub(crate) fn interim_due(&self) -> Option<Bytes> {
        self.interim.due(self.down.responses.between_messages())
    }

    /// Notes that the first `count` bytes of those due were written.
    pub(crate) fn interim_sent(&mut self, count: usize) {
        self.interim.sent(count);
    }

    /// Whether no interim response waits to be written.
    pub(crate) fn interim_is_empty(&self) -> bool {
        self.interim.is_empty()
    }

    /// Whether the client has been sent whole responses only.
    pub(crate) fn between_responses(&self) -> bool {
        self.down.responses.between_messages()
    }

    /// How many requests there have been.
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// Whether no exchange is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether nothing of any message is under way on either leg, and how many requests there have
    /// been.
    pub(crate) fn rests(&self) -> (bool, u64) {
        let rests = self.open.is_empty()
            && self.waiting.is_empty()
            && self.interim.is_empty()
            && self.down.requests.between_messages()
            && self.down.responses.between_messages();
        (rests, self.served)
    }

    /// Whether the client is in the middle of sending a request's head.
    pub(crate) fn head_is_open(&self) -> bool {
        self.down.requests.head_is_open()
    }

    /// Whether the client has sent the whole request and now waits.
    pub(crate) fn client_waits(&self) -> bool {
        let newest = self.open.back();
        !self.down_ended && newest.is_some_and(|open| open.request_is_complete())
    }

    /// How many reads from the server there were.
    pub(crate) fn up_reads(&self) -> u64 {
        self.up_reads
    }

    /// Takes the end of what the client sends, seen at `read`.
    pub(crate) fn client_ended(&mut self, read: Read) {
        self.client_left();
        self.heard_from_client(self.down.bounds.end_of_stream(read));
    }

    /// Takes a socket's failure.
    pub(crate) fn failed(&mut self, side: Side, error: &io::Error) {
        if is_reset(error) {
            self.reset_by.get_or_insert(side);
        }
        match side {
            Side::Down => self.client_left(),
            Side::Up => self.fault(Outcome::UpstreamBroken),
        }
    }

    /// Whether the client closed its sending half and the server has all that came before.
    pub(crate) fn half_close_is_due(&self) -> bool {
        // On a stream its end has said that already, and the connection lives by both halves.
        let on_stream =
            |open: &OpenExchange| open.up.as_ref().is_some_and(|up| up.stream.is_some());
        let due = |open: &OpenExchange| open.request_was_passed_on() && !on_stream(open);
        self.down_ended && self.open.back().is_some_and(|open| due(open))
    }

    /// Takes the end of the connection to the server.
    pub(crate) fn server_gone(&mut self) {
        self.up = None;
        self.finish_if_over();
    }

    /// Whether the server has still to be sent what the client sent of its request.
    pub(crate) fn owes_server(&self) -> bool {
        let whole_here = |open: &OpenExchange| {
            open.up.is_some() && open.request_is_complete() && !open.request_was_passed_on()
        };
        self.up.is_some() && self.open.back().is_some_and(|open| whole_here(open))
    }

    /// Notes what ends the exchange being served, if nothing did before.
    fn fault(&mut self, fault: Outcome) {
        if let Some(exchange) = self.open.back_mut() {
            exchange.fault(fault);
        }
    }

    /// Finishes the oldest exchange if both its messages went by whole. The last one of a client
    /// that has closed its half stays open until it is known whether the client is still there.
    fn finish_if_over(&mut self) {
        if !self.down_ended || self.open.len() > 1 {
            self.finish_oldest_if_over();
        }
    }

    fn finish_oldest_if_over(&mut self) {
        let oldest = self.open.front();
        if !oldest.is_some_and(|open| open.response_was_written() && open.request_is_complete())
            || (self.open.len() == 1 && (self.owes_server() || self.is_tunnel()))
        {
            return;
        }
        let Some(mut exchange) = self.open.pop_front() else {
            return;
        };
        exchange.settle();
        if let (Some(last), false) = (exchange.response_left(), self.pipelines) {
            self.listening_for = Some((exchange.id, last));
        }
        self.hand_over(exchange);
    }

    fn hand_over(&mut self, mut exchange: Box<OpenExchange>) {
        exchange.seal(self.down.tcp);
        self.worker
            .metrics
            .exchange(exchange.outcome.unwrap_or(Outcome::ClientGone));
        self.tell(Note::Finished(exchange));
    }

    fn no_activity(&mut self, id: u64) {
        let watch = self.watches.take_client();
        let at = None;
        self.tell(Note::Activity { id, at, watch });
    }

    fn tell(&self, note: Note) {
        let is_exchange = matches!(note, Note::Finished(_));
        if !self.worker.notes.send(note) && is_exchange {
            self.worker.metrics.dropped(Dropped::FinisherFull, 1);
        }
    }
}
