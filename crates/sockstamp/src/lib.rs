//! Kernel receive times and TCP facts of a socket, behind a safe API.
//!
//! This is the only crate of the project with `unsafe` code; each block says
//! why it holds. It depends on no other crate of the project, starts no thread
//! and knows no async runtime: every call takes a borrowed descriptor and
//! returns at once.
//!
//! What the kernel's receive stamps mean, measured on Linux:
//!
//! - The clock is `CLOCK_REALTIME`. No privilege is needed.
//! - A stamp says when the *last* byte of the buffer that a read touched
//!   arrived: unread segments are merged, and the merged buffer carries the
//!   newest stamp. The time of the first byte is right only for a reader that
//!   drains promptly.
//! - The end of a stream carries no stamp.
//! - Stamping is a switch for the whole kernel, thrown by the first socket that
//!   asks and taking effect a moment later. A [`Primer`] keeps it on.
//!
//! Transmit stamps are left out on purpose: a record on a socket's error queue
//! marks the socket as failed for epoll-based runtimes for good.
//!
//! Elsewhere than on 64-bit Linux the same functions answer
//! [`std::io::ErrorKind::Unsupported`].

mod clock;
pub use clock::{monotonic_ns, realtime_ns};

mod tcp_info;
pub use tcp_info::TcpInfo;

mod received;
pub use received::Received;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod control_message;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod original_destination;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod primer;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod receive;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod receive_into;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod socket_options;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub use {
    original_destination::original_destination,
    primer::Primer,
    receive::receive,
    receive_into::receive_into,
    socket_options::{enable_receive_stamps, tcp_info},
};

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
mod unsupported;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub use unsupported::{
    Primer, enable_receive_stamps, original_destination, receive, receive_into, tcp_info,
};
