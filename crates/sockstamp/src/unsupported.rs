//! The same API where the kernel gives no such stamps.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use crate::{Received, TcpInfo};

/// Would keep the kernel stamping arrivals; here it cannot be made.
#[derive(Debug)]
pub struct Primer {
    _never: std::convert::Infallible,
}

impl Primer {
    /// Says that stamps are not available.
    ///
    /// # Errors
    /// Always [`io::ErrorKind::Unsupported`].
    pub fn new() -> io::Result<Self> {
        Err(not_here())
    }
}

/// Says that stamps are not available.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn enable_receive_stamps(_fd: BorrowedFd<'_>) -> io::Result<()> {
    Err(not_here())
}

/// Says that stamped reads are not available; read the socket the ordinary way.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn receive(_fd: BorrowedFd<'_>, _buffer: &mut [MaybeUninit<u8>]) -> io::Result<Received> {
    Err(not_here())
}

/// Says that stamped reads are not available; read the socket the ordinary way.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn receive_into(_fd: BorrowedFd<'_>, _buffer: &mut [u8]) -> io::Result<Received> {
    Err(not_here())
}

/// Says that TCP facts are not available.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn tcp_info(_fd: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    Err(not_here())
}

/// Says that nothing is known of redirected connections.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn original_destination(_fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    Err(not_here())
}

fn not_here() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "kernel stamps and facts of connections are not available on this system, only on 64-bit Linux",
    )
}
