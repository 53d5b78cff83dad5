//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;

use skewtap_sockstamp::enable_receive_stamps;
use socket2::{Domain, Protocol, Socket, Type};

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
    socket.listen(backlog.into())?;
    Ok(socket.into())
}
