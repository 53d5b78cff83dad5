//! Switching receive stamps on, and asking for TCP facts.

#![expect(unsafe_code, reason = "socket options without a safe library")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::tcp_info::TcpInfo;

/// As many bytes of the kernel's `tcp_info` as are asked for; a newer kernel has more.
const KERNEL_BYTES: usize = 256;

/// Asks the kernel to stamp what arrives on a socket. On a listener the setting passes on to
/// the sockets accepted from it, so that their first bytes are covered.
///
/// # Errors
/// What `setsockopt` says: the descriptor is no socket, or the kernel knows no stamps.
pub fn enable_receive_stamps(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the pointer and the length describe `flags`, which outlives the call;
    // the kernel only reads it.
    let answer = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            length_of(size_of_val(&flags)),
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Asks for the kernel's figures of a TCP connection; costs about a third of a microsecond.
///
/// # Errors
/// What `getsockopt` says (the descriptor is no TCP socket), or
/// [`io::ErrorKind::Unsupported`] when the kernel is too old to know every figure.
pub fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut bytes = [0_u8; KERNEL_BYTES];
    let mut length = length_of(bytes.len());
    // SAFETY: `bytes` is writable for `length` bytes, and the kernel writes no more
    // than that; any byte is a valid `u8`.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let written = usize::try_from(length).unwrap_or(0);
    bytes
        .get(..written)
        .and_then(TcpInfo::from_kernel_bytes)
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                format!("this kernel's TCP_INFO has only {written} bytes"),
            )
        })
}

/// Lengths passed here are constants below a kilobyte, so nothing is lost.
fn length_of(bytes: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(bytes).unwrap_or(0)
}
