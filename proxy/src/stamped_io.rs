//! A leg for hyper that tells the journal of every read and write.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt::{ReadBufCursor, Write};

use crate::journal::{Journal, Side};
use crate::transport::Transport;

/// What hyper writes by itself when it starts to read the body of a request that expects it.
/// The server decides whether `100 Continue` is sent, so this never reaches the client.
const INVENTED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Bytes that reads of all connections of a worker go through, one after the other.
pub(crate) type Scratch = Rc<RefCell<Box<[u8]>>>;

/// What hyper reads from and writes to; one for each leg of a connection.
pub(crate) struct StampedIo {
    transport: Transport,
    side: Side,
    journal: Rc<RefCell<Journal>>,
    scratch: Scratch,
    /// Whether what the transport has taken in, but not sent, is an interim response.
    interim_under_way: bool,
}

impl StampedIo {
    pub(crate) fn new(
        transport: Transport,
        side: Side,
        journal: Rc<RefCell<Journal>>,
        scratch: Scratch,
    ) -> Self {
        Self {
            transport,
            side,
            journal,
            scratch,
            interim_under_way: false,
        }
    }

    fn failed(&self, error: io::Error) -> io::Error {
        self.journal.borrow_mut().failed(self.side, &error);
        error
    }

    /// Passes on the interim responses of the server that are due.
    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let others_turn = self.transport.is_sending() && !self.interim_under_way;
        if self.side == Side::Up || others_turn {
            return Poll::Ready(Ok(()));
        }
        loop {
            let Some(due) = self.journal.borrow().interim_due() else {
                return Poll::Ready(Ok(()));
            };
            let sent = [IoSlice::new(&due)];
            let polled = self.transport.poll_send(cx, &sent);
            self.interim_under_way = polled.is_pending() && self.transport.is_sending();
            let (written, when) = ready!(polled).map_err(|error| self.failed(error))?;
            let mut journal = self.journal.borrow_mut();
            journal.interim_sent(written);
            journal.wrote(self.side, (&sent, written), when, &self.transport);
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
        let (count, read) =
            ready!(self.transport.poll_receive(cx, space)).map_err(|error| self.failed(error))?;
        let bytes = space.get(..count).unwrap_or_default();
        let mut journal = self.journal.borrow_mut();
        journal.read(self.side, bytes, read, self.transport.socket());
        if self.side == Side::Down && journal.body_is_broken() {
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
        if invented && self.side == Side::Down && self.journal.borrow().between_responses() {
            return Poll::Ready(Ok(INVENTED.len()));
        }
        let (written, when) =
            ready!(self.transport.poll_send(cx, bytes)).map_err(|error| self.failed(error))?;
        let mut journal = self.journal.borrow_mut();
        journal.wrote(self.side, (bytes, written), when, &self.transport);
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
        // The socket itself is closed once the other side has had its say.
        self.journal.borrow_mut().closing(self.side);
        Poll::Ready(Ok(()))
    }
}
