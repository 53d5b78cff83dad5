//! Listening sockets.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::task::Poll;

use skewtap_sockstamp::enable_receive_stamps;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::TcpStream;

/// Most bytes that a socket takes beyond what its peer's window lets it send.
const UNSENT_BYTES: u32 = 128 * 1024;

/// Has a socket refuse bytes that it could not send at once, so that a peer that does not read is
/// soon seen by whoever writes to it through the proxy; what is under way does not count. Accepted
/// connections inherit it.
pub(crate) fn bound_unsent(socket: SockRef<'_>) {
    #[cfg(target_os = "linux")]
    if let Err(error) = socket.set_tcp_notsent_lowat(UNSENT_BYTES) {
        tracing::debug!(error = %error, "unsent bytes are bounded by the system alone");
    }
    #[cfg(not(target_os = "linux"))]
    let _bounded_by_the_system_alone = (socket, UNSENT_BYTES);
}

/// How a listening socket is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening {
    /// Longest queue of connections that wait to be accepted.
    pub(crate) backlog: u16,
    /// Whether its connections inherit kernel receive stamps, where the kernel has them.
    pub(crate) stamps: bool,
    /// Whether an IPv6 address takes no IPv4; all of IPv6 takes it otherwise, whatever the system's
    /// usual way is.
    pub(crate) only_v6: bool,
}

/// Opens a listening socket.
///
/// # Errors
/// What the system calls say.
pub(crate) fn listen(address: SocketAddr, how: Listening) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(how.only_v6)?;
    }
    socket.bind(&address.into())?;
    if how.stamps
        && let Err(error) = enable_receive_stamps(socket.as_fd())
    {
        tracing::debug!(error = %error, "no receive stamps on accepted connections");
    }
    bound_unsent(SockRef::from(&socket));
    socket.listen(how.backlog.into())?;
    Ok(socket.into())
}

/// Listening sockets that are accepted from in turn.
#[derive(Debug)]
pub(crate) struct Listeners {
    all: Vec<tokio::net::TcpListener>,
    /// The one to be asked first.
    next: usize,
}

impl Listeners {
    /// Hands sockets to the runtime.
    ///
    /// # Errors
    /// The runtime cannot watch them.
    pub(crate) fn new(listeners: Vec<TcpListener>) -> io::Result<Self> {
        let all = listeners.into_iter().map(tokio::net::TcpListener::from_std);
        Ok(Self {
            all: all.collect::<io::Result<_>>()?,
            next: 0,
        })
    }

    /// The next connection of any of them.
    ///
    /// # Errors
    /// What `accept` says.
    pub(crate) async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|cx| {
            let (before, after) = self.all.split_at(self.next.min(self.all.len()));
            let in_turn = after.iter().chain(before).zip(1..);
            for (listener, turn) in in_turn {
                if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                    self.next = (self.next + turn) % self.all.len();
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}
