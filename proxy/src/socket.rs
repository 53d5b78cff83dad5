//! The socket of a leg: TCP, or a Unix socket towards a server.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::own_connections::OwnConnection;

/// A connected socket, which the runtime watches.
#[derive(Debug)]
pub(crate) enum Socket {
    /// TCP; from this proxy, where it must be known again, with what stands for it.
    Tcp(
        TcpStream,
        #[expect(dead_code, reason = "it counts as open as long as the socket does")]
        Option<OwnConnection>,
    ),
    /// A Unix socket. It has no kernel stamps and no figures.
    Unix(UnixStream),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream, None)
    }
}

impl Socket {
    /// Ready when a read may find something.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream, _) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Ready when a write may find room.
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream, _) => stream.poll_write_ready(cx),
            Self::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    /// Writes what there is room for.
    pub(crate) fn try_write_vectored(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream, _) => stream.try_write_vectored(bytes),
            Self::Unix(stream) => stream.try_write_vectored(bytes),
        }
    }

    /// Does `work` on the socket; when that would block, the readiness it ran under is over.
    pub(crate) fn try_io<T>(
        &self,
        interest: Interest,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self {
            Self::Tcp(stream, _) => stream.try_io(interest, work),
            Self::Unix(stream) => stream.try_io(interest, work),
        }
    }

    /// Looks at what has arrived without taking it; ready with false at the end of the stream.
    pub(crate) fn poll_peek(&self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            ready!(self.poll_read_ready(cx))?;
            let peeked = self.try_io(Interest::READABLE, || {
                SockRef::from(self).peek(&mut [MaybeUninit::uninit()])
            });
            match peeked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                peeked => return Poll::Ready(peeked.map(|count| count > 0)),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream, _) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
