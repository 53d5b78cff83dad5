//! Keeping the kernel's global stamping switch on.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::receive::receive;
use crate::socket_options::enable_receive_stamps;

/// How often, and at what distance, a datagram is sent to see whether it is stamped. The
/// switch is thrown within a few milliseconds; a second is ample on a loaded machine.
const TRIES: u32 = 1_000;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// Keeps the kernel stamping arrivals for as long as it lives.
///
/// Stamping is one switch for the whole kernel. The first socket that asks throws it, but the
/// kernel does so a moment later, so the first bytes would come without a stamp; the last such
/// socket to close turns it off. A primer is such a socket, held from start-up to the end.
#[derive(Debug)]
pub struct Primer {
    _socket: UdpSocket,
}

impl Primer {
    /// Throws the switch and waits until the kernel is seen to stamp, mostly for a few
    /// milliseconds and never for more than about a second. The proof is a datagram sent over
    /// loopback to itself.
    ///
    /// # Errors
    /// What the system calls say, or [`io::ErrorKind::TimedOut`] when stamps never came.
    pub fn new() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        enable_receive_stamps(socket.as_fd())?;
        for _ in 0..TRIES {
            socket.send(&[0])?;
            let mut byte = [MaybeUninit::uninit(); 1];
            match receive(socket.as_fd(), &mut byte) {
                Ok(received) if received.kernel_ns.is_some() => {
                    return Ok(Self { _socket: socket });
                }
                Ok(_) => std::thread::sleep(BETWEEN_TRIES),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the kernel accepted the request for receive stamps but gave none",
        ))
    }
}
