//! The socket of one leg: stamped reads and writes.
//!
//! Kernel receive stamps are taken by reads and the clock around writes. Stamps of what is
//! sent are never asked of the kernel: they would leave the socket marked as failed for good.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use skewtap_sockstamp::{Received, realtime_ns, receive_into, tcp_info};
use socket2::SockRef;
use tokio::io::{Interest, ReadBuf};

use crate::journal::HttpVersion;
use crate::moment::{Departure, Read};
use crate::socket::Socket;
use crate::tls::TlsSession;

/// One leg's socket; clones stand for the same one.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    socket: Rc<Socket>,
    tls: Option<Rc<RefCell<TlsSession>>>,
}

impl Transport {
    /// The bare socket.
    pub(crate) fn plain(socket: impl Into<Socket>) -> Self {
        Self {
            socket: Rc::new(socket.into()),
            tls: None,
        }
    }

    /// Puts TLS round it and shakes hands; gives the read that brought the peer's last handshake
    /// message.
    ///
    /// # Errors
    /// What kept the peers from agreeing.
    pub(crate) async fn secure(&mut self, session: TlsSession) -> io::Result<Read> {
        let mut session = session;
        let read = poll_fn(|cx| session.poll_handshake(cx, &self.socket)).await?;
        self.tls = Some(Rc::new(RefCell::new(session)));
        Ok(read)
    }

    /// Whether it has taken bytes in which a pending [`Transport::poll_send`] was given.
    pub(crate) fn is_sending(&self) -> bool {
        let tls = self.tls.as_ref();
        tls.is_some_and(|tls| tls.borrow().is_sending())
    }

    /// Bytes of ciphertext sent so far; `None` without TLS.
    pub(crate) fn sent_as_ciphertext(&self) -> Option<u64> {
        self.tls.as_ref().map(|tls| tls.borrow().sent())
    }

    /// The socket underneath.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The version of HTTP that the TLS handshake settled; `None` without TLS.
    pub(crate) fn agreed_on(&self) -> Option<HttpVersion> {
        self.tls.as_ref().map(|tls| tls.borrow().agreed_on())
    }

    /// Looks at the first bytes that wait in the bare socket, without taking them; none at the
    /// end of the stream.
    pub(crate) fn poll_peek<'a>(
        &self,
        cx: &mut Context<'_>,
        space: &'a mut [u8],
    ) -> Poll<io::Result<&'a [u8]>> {
        let count = ready!(self.socket.poll_peek(cx, &mut ReadBuf::new(space)))?;
        Poll::Ready(Ok(space.get(..count).unwrap_or_default()))
    }

    /// Ready when bytes, the end or a failure may have come.
    pub(crate) fn poll_sign(&self, cx: &mut Context<'_>) -> Poll<()> {
        // A failure is told to whoever reads next.
        self.socket.poll_read_ready(cx).map(|_| ())
    }

    /// Makes the next look wait until more bytes have come than there are.
    pub(crate) fn wait_for_more(&self) {
        let nothing_new = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        // Only marks the socket as not ready; what comes later marks it again.
        let (Ok(()) | Err(_)) = self.socket.try_io(Interest::READABLE, nothing_new);
    }

    /// Reads what has arrived: how many bytes, 0 at the end of the stream, and when.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        space: &mut [u8],
    ) -> Poll<io::Result<(usize, Read)>> {
        match &self.tls {
            None => receive(&self.socket, cx, space),
            Some(tls) => tls.borrow_mut().poll_receive(cx, &self.socket, space),
        }
    }

    /// Writes `bytes` as the kernel takes them: how many, and when. What was not taken, also
    /// while it is pending, must be given again with nothing before it.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<(usize, Departure)>> {
        match &self.tls {
            None => send(&self.socket, cx, bytes),
            Some(tls) => tls.borrow_mut().poll_send(cx, &self.socket, bytes),
        }
    }

    /// Closes the sending half.
    pub(crate) fn poll_close(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(tls) = &self.tls {
            ready!(tls.borrow_mut().poll_close(cx, &self.socket))?;
        }
        Poll::Ready(
            match SockRef::from(&*self.socket).shutdown(Shutdown::Write) {
                Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
                _ => Ok(()),
            },
        )
    }

    /// Looks for the end of what the peer sends while nobody reads: ready when it has come, with
    /// an error when the connection broke.
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<io::Result<Read>> {
        if let Some(tls) = &self.tls {
            return tls.borrow_mut().poll_end(cx, &self.socket);
        }
        let before_ns = realtime_ns();
        match ready!(self.socket.poll_peek(cx, &mut ReadBuf::new(&mut [0]))) {
            Ok(0) => Poll::Ready(Ok(Read {
                kernel_ns: None,
                before_ns,
                after_ns: realtime_ns(),
                drained: true,
                together: false,
            })),
            Ok(_) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Whether the connection broke; tells it once.
    pub(crate) fn has_failed(&self) -> bool {
        let socket = SockRef::from(&*self.socket);
        matches!(socket.take_error(), Ok(Some(_)) | Err(_))
    }

    /// How many bytes sent on the socket its peer's kernel has acknowledged, where the kernel says.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        tcp_info(self.socket()).ok().map(|info| info.bytes_acked)
    }

    /// Makes the close of the socket a reset.
    pub(crate) fn reset_on_close(&self) {
        let linger = SockRef::from(&*self.socket).set_linger(Some(std::time::Duration::ZERO));
        if let Err(error) = linger {
            tracing::debug!(error = %error, "reset not passed on");
        }
    }
}

/// Reads what has arrived on a bare socket: how many bytes, 0 at the end, and when.
pub(crate) fn receive(
    socket: &Socket,
    cx: &mut Context<'_>,
    space: &mut [u8],
) -> Poll<io::Result<(usize, Read)>> {
    loop {
        ready!(socket.poll_read_ready(cx))?;
        let before_ns = realtime_ns();
        let Some(received) = receive_clearing(socket, space)? else {
            continue;
        };
        let read = Read {
            kernel_ns: received.kernel_ns,
            before_ns,
            after_ns: realtime_ns(),
            drained: received.bytes < space.len(),
            together: false,
        };
        return Poll::Ready(Ok((received.bytes, read)));
    }
}

fn send(
    socket: &Socket,
    cx: &mut Context<'_>,
    bytes: &[IoSlice<'_>],
) -> Poll<io::Result<(usize, Departure)>> {
    loop {
        ready!(socket.poll_write_ready(cx))?;
        let before_ns = realtime_ns();
        match socket.try_write_vectored(bytes) {
            Ok(written) => {
                let after_ns = realtime_ns();
                let when = Departure {
                    before_ns,
                    after_ns,
                };
                return Poll::Ready(Ok((written, when)));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
}

/// Reads what has arrived, or `None` if there was nothing after all.
///
/// A read that did not fill `space` took everything, so the socket is marked as not ready at
/// once, with the same readiness it was read under; that saves the read that finds nothing.
fn receive_clearing(socket: &Socket, space: &mut [u8]) -> io::Result<Option<Received>> {
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
fn read_plainly(socket: &Socket, space: &mut [u8]) -> io::Result<Received> {
    let bytes = (&*SockRef::from(socket)).read(space)?;
    Ok(Received {
        bytes,
        kernel_ns: None,
    })
}
