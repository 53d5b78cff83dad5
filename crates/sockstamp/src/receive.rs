//! Reading bytes together with the time they arrived.

#![expect(
    unsafe_code,
    reason = "no safe library reads into uninitialised bytes with control messages"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::control_message::receive_stamp;
use crate::received::Received;

/// Room for the stamp (a header and three times) and another message of the same size.
const CONTROL_BYTES: usize = 128;

/// The kernel wants its headers aligned as `usize`.
#[repr(C, align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

/// Reads what has arrived, without waiting, together with the kernel's stamp of it. The
/// first [`Received::bytes`] bytes of `buffer` are initialised on return.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when nothing has arrived yet, or whatever the socket has
/// to report.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> io::Result<Received> {
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: all fields of `msghdr` are integers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = ptr::null_mut();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: `message` points to `part` and `control`, which outlive the call, and `part` to
    // `buffer`, borrowed mutably for as long. The kernel writes within the lengths given, and
    // writing to uninitialised bytes is what `MaybeUninit` is for.
    let answer = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let Ok(bytes) = usize::try_from(answer) else {
        return Err(io::Error::last_os_error());
    };
    Ok(Received {
        bytes,
        // What the kernel did not write is still zero, which ends the walk.
        kernel_ns: receive_stamp(&control.0),
    })
}
