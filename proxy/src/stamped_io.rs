//! A socket that tells the journal of every read and write.

use std::cell::RefCell;
use std::io::{self, IoSlice, Read as _};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::rt::{ReadBufCursor, Write};
use skewtap_sockstamp::{Received, realtime_ns, receive_into};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::journal::{Journal, Side};
use crate::moment::{Departure, Read};

/// What hyper writes by itself when it starts to read the body of a request that expects it.
/// The server decides whether `100 Continue` is sent, so this never reaches the client.
const INVENTED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Bytes that reads of all connections of a worker go through, one after the other.
pub(crate) type Scratch = Rc<RefCell<Box<[u8]>>>;

/// A socket for hyper; one for each leg of a connection.
///
/// Kernel receive stamps are taken by reads and the clock around writes. Stamps of what is
/// sent are never asked of the kernel: they would leave the socket marked as failed for good.
pub(crate) struct StampedIo {
    socket: Rc<TcpStream>,
    side: Side,
    journal: Rc<RefCell<Journal>>,
    scratch: Scratch,
}

impl StampedIo {
    pub(crate) fn new(
        socket: Rc<TcpStream>,
        side: Side,
        journal: Rc<RefCell<Journal>>,
        scratch: Scratch,
    ) -> Self {
        Self {
            socket,
            side,
            journal,
            scratch,
        }
    }

    /// Writes `bytes` as the kernel takes them: how many, and when.
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<(usize, Departure)>> {
        loop {
            ready!(self.socket.poll_write_ready(cx))?;
            let before_ns = realtime_ns();
            match self.socket.try_write_vectored(bytes) {
                Ok(written) => {
                    let after_ns = realtime_ns();
                    let when = Departure {
                        before_ns,
                        after_ns,
                    };
                    return Poll::Ready(Ok((written, when)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(self.failed(error))),
            }
        }
    }

    fn failed(&self, error: io::Error) -> io::Error {
        self.journal.borrow_mut().failed(self.side);
        error
    }

    /// Passes on the interim responses of the server that are due.
    fn poll_interim(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.side == Side::Up {
            return Poll::Ready(Ok(()));
        }
        loop {
            let Some(due) = self.journal.borrow().interim_due() else {
                return Poll::Ready(Ok(()));
            };
            let (written, when) = ready!(self.poll_send(cx, &[IoSlice::new(&due)]))?;
            let mut journal = self.journal.borrow_mut();
            journal.interim_sent(written);
            let sent = [IoSlice::new(&due)];
            journal.wrote(self.side, &sent, written, when, self.socket.as_fd());
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
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            let before_ns = realtime_ns();
            let received = match receive_clearing(&self.socket, space) {
                Ok(Some(received)) => received,
                Ok(None) => continue,
                Err(error) => return Poll::Ready(Err(self.failed(error))),
            };
            let read = Read {
                kernel_ns: received.kernel_ns,
                before_ns,
                after_ns: realtime_ns(),
                drained: received.bytes < room,
            };
            let bytes = space.get(..received.bytes).unwrap_or_default();
            self.journal
                .borrow_mut()
                .read(self.side, bytes, read, self.socket.as_fd());
            buffer.put_slice(bytes);
            return Poll::Ready(Ok(()));
        }
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
        self: Pin<&mut Self>,
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
        let (written, when) = ready!(self.poll_send(cx, bytes))?;
        let socket = self.socket.as_fd();
        self.journal
            .borrow_mut()
            .wrote(self.side, bytes, written, when, socket);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_interim(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_interim(cx))?;
        self.journal.borrow_mut().closing(self.side);
        match SockRef::from(&*self.socket).shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// Reads what has arrived, or `None` if there was nothing after all.
///
/// A read that did not fill `space` took everything, so the socket is marked as not ready at
/// once, with the same readiness it was read under; that saves the read that finds nothing.
fn receive_clearing(socket: &TcpStream, space: &mut [u8]) -> io::Result<Option<Received>> {
    let room = space.len();
    let mut received = None;
    let outcome = socket.try_io(Interest::READABLE, || {
        let got = match receive_into(socket.as_fd(), space) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                read_plainly(socket, space)?
            }
            other => other?,
        };
        let drained = got.bytes > 0 && got.bytes < room;
        received = Some(got);
        if drained {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    });
    match (received, outcome) {
        (Some(received), _) => Ok(Some(received)),
        (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        (None, _) => Ok(None),
    }
}

/// A read where the system gives no stamps.
fn read_plainly(socket: &TcpStream, space: &mut [u8]) -> io::Result<Received> {
    let bytes = (&*SockRef::from(socket)).read(space)?;
    Ok(Received {
        bytes,
        kernel_ns: None,
    })
}
