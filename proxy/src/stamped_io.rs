//! A leg for an HTTP library that tells the journal of every read and write.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt::{ReadBufCursor, Write};

use crate::journal::{Journal, Leg, Multiplexed, Side};
use crate::moment::{Departure, Read};
use crate::transport::Transport;

/// What hyper writes by itself when it starts to read the body of a request that expects it.
/// The server decides whether `100 Continue` is sent, so this never reaches the client.
const INVENTED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Bytes that reads of all connections of a worker go through, one after the other.
pub(crate) type Scratch = Rc<RefCell<Box<[u8]>>>;

/// Who is told of what passes on a leg.
pub(crate) enum Witness {
    /// The journal of an HTTP/1 client, of one of its two legs.
    One(Rc<RefCell<Journal>>, Side),
    /// The journal of an HTTP/2 client, of one of its legs.
    Several(Rc<RefCell<Multiplexed>>, Leg),
}

impl Witness {
    fn read(&self, bytes: &[u8], read: Read, transport: &Transport) {
        let socket = transport.socket();
        match self {
            Self::One(journal, side) => journal.borrow_mut().read(*side, bytes, read, socket),
            Self::Several(journal, leg) => journal.borrow_mut().read(*leg, bytes, read, socket),
        }
    }

    fn wrote(&self, written: (&[IoSlice<'_>], usize), when: Departure, transport: &Transport) {
        match self {
            Self::One(journal, side) => {
                journal.borrow_mut().wrote(*side, written, when, transport);
            }
            Self::Several(journal, leg) => {
                journal.borrow_mut().wrote(*leg, written, when, transport);
            }
        }
    }

    fn failed(&self, error: io::Error) -> io::Error {
        match self {
            Self::One(journal, side) => journal.borrow_mut().failed(*side, &error),
            Self::Several(journal, leg) => journal.borrow_mut().failed(*leg),
        }
        error
    }

    fn closing(&self) {
        if let Self::One(journal, side) = self {
            journal.borrow_mut().closing(*side);
        }
    }

    /// Whether the body that an HTTP/1 client sends can be read in two ways.
    fn body_is_broken(&self) -> bool {
        self.of_client()
            .is_some_and(|journal| journal.borrow().body_is_broken())
    }

    /// Whether the socket is closed with the leg. That of an HTTP/1 client, and of its server, is
    /// closed once the other side has had its say.
    fn closes_by_itself(&self) -> bool {
        matches!(self, Self::Several(..))
    }

    /// The journal of an HTTP/1 client, on its own leg.
    fn of_client(&self) -> Option<&Rc<RefCell<Journal>>> {
        match self {
            Self::One(journal, Side::Down) => Some(journal),
            Self::One(_, Side::Up) | Self::Several(..) => None,
        }
    }
}

/// What an HTTP library reads from and writes to; one for each leg of a connection.
pub(crate) struct StampedIo {
    transport: Transport,
    witness: Witness,
    scratch: Scratch,
    /// Whether what the transport has taken in, but not sent, is an interim response.
    interim_under_way: bool,
}

impl StampedIo {
    pub(crate) fn new(transport: Transport, witness: Witness, scratch: Scratch) -> Self {
        Self {
            transport,
            witness,
            scratch,
            interim_under_way: false,
        }
    }

    /// Passes on the interim responses of the server that are due.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let others_turn = self.transport.is_sending() && !self.interim_under_way;
        let Some(journal) = self.witness.of_client().filter(|_| !others_turn) else {
            return Poll::Ready(Ok(()));
        };
        loop {
            let Some(due) = journal.borrow().interim_due() else {
                return Poll::Ready(Ok(()));
            };
            let sent = [IoSlice::new(&due)];
            let polled = self.transport.poll_send(cx, &sent);
            self.interim_under_way = polled.is_pending() && self.transport.is_sending();
            let (written, when) = ready!(polled).map_err(|error| self.witness.failed(error))?;
            let mut journal = journal.borrow_mut();
            journal.interim_sent(written);
            journal.wrote(Side::Down, (&sent, written), when, &self.transport);
            if journal.interim_is_empty() {
                // A final response may be waiting for its turn.
                cx.waker().wake_by_ref();
            }
        }
    }
}

impl hyper::rt::Read for StampedIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut scratch = self.scratch.borrow_mut();
        let room = scratch.len().min(buffer.remaining());
        let Some(space) = scratch.get_mut(..room) else {
            return Poll::Ready(Ok(()));
        };
        let received = ready!(self.transport.poll_receive(cx, space));
        let (count, read) = received.map_err(|error| self.witness.failed(error))?;
        let bytes = space.get(..count).unwrap_or_default();
        self.witness.read(bytes, read, &self.transport);
        if self.witness.body_is_broken() {
            // Another reader could go on and find a request in it.
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        buffer.put_slice(bytes);
        Poll::Ready(Ok(()))
    }
}

impl Write for StampedIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(cx))?;
        let invented = bytes
            .first()
            .is_some_and(|first| first.starts_with(INVENTED));
        let journal = self.witness.of_client().filter(|_| invented);
        if journal.is_some_and(|journal| journal.borrow().between_responses()) {
            return Poll::Ready(Ok(INVENTED.len()));
        }
        let sent = ready!(self.transport.poll_send(cx, bytes));
        let (written, when) = sent.map_err(|error| self.witness.failed(error))?;
        self.witness.wrote((bytes, written), when, &self.transport);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_interim(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_interim(cx))?;
        if self.witness.closes_by_itself() {
            return self.transport.poll_close(cx);
        }
        self.witness.closing();
        Poll::Ready(Ok(()))
    }
}
