//! Listening sockets.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::task::Poll;

use skewtap_sockstamp::enable_receive_stamps;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;

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
