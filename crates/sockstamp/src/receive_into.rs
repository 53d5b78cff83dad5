//! Reading into bytes that are initialised already.

#![expect(
    unsafe_code,
    reason = "no safe conversion lets uninitialised bytes be asked for where initialised ones are"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use crate::receive::receive;
use crate::received::Received;

/// Reads as [`receive`] does, for callers that may not handle uninitialised memory. Only the
/// first [`Received::bytes`] bytes of `buffer` are changed.
///
/// # Errors
/// As [`receive`].
pub fn receive_into(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let start = buffer.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: the pointer and the length are those of a slice borrowed mutably for as long, and
    // `MaybeUninit<u8>` has the layout of `u8`. No byte becomes uninitialised: the slice goes to
    // `receive` alone, which hands it to the kernel, and the kernel only writes data.
    let space = unsafe { std::slice::from_raw_parts_mut(start, buffer.len()) };
    receive(fd, space)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;
    use crate::{Primer, clock::realtime_ns, enable_receive_stamps};

    #[test]
    fn bytes_and_stamp_arrive_and_the_rest_is_untouched() {
        let _primer = Primer::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (reader, _) = listener.accept().unwrap();
        enable_receive_stamps(reader.as_fd()).unwrap();
        let before = realtime_ns();
        sender.write_all(b"hello").unwrap();
        reader.peek(&mut [0]).unwrap();
        let mut buffer = [b'.'; 8];
        let received = receive_into(reader.as_fd(), &mut buffer).unwrap();
        let after = realtime_ns();
        assert_eq!(&buffer, b"hello...");
        assert_eq!(received.bytes, 5);
        let stamp = received.kernel_ns.unwrap();
        assert!(before <= stamp && stamp <= after);
    }
}
