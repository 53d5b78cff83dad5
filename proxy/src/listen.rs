//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;

use skewtap_sockstamp::enable_receive_stamps;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

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

/// Opens a listening socket; with `stamps`, its connections inherit kernel receive stamps, where
/// the kernel has them.
///
/// # Errors
/// What the system calls say.
pub(crate) fn listen(address: SocketAddr, backlog: u16, stamps: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    if stamps && let Err(error) = enable_receive_stamps(socket.as_fd()) {
        tracing::debug!(error = %error, "no receive stamps on accepted connections");
    }
    bound_unsent(SockRef::from(&socket));
    socket.listen(backlog.into())?;
    Ok(socket.into())
}
