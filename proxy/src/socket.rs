//! The socket of a leg: TCP, or a Unix socket towards a server.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll};

use tokio::io::{Interest, ReadBuf, Ready};
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
    /// Waits for what is of interest, and gives what there is of it.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream, _) => stream.ready(interest).await,
            Self::Unix(stream) => stream.ready(interest).await,
        }
    }

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

    /// Looks at what has arrived without taking it: how many bytes, none at the end of the stream.
    /// Of clients only, so a Unix socket does not know how.
    pub(crate) fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream, _) => stream.poll_peek(cx, space),
            Self::Unix(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
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
