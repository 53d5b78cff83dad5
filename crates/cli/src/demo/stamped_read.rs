//! Reads from a socket together with the time at which its kernel had received the bytes.

use std::io::{self, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, SystemTime};

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeSpec;

/// What one read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// How many bytes; 0 at the end of the stream.
    pub(super) bytes: usize,
    /// When the last of them had arrived; `None` at the end of the stream.
    pub(super) arrived: Option<SystemTime>,
}

/// Has the kernel note when bytes arrive, from now on.
///
/// # Errors
/// The kernel refuses.
pub(super) fn ask_for_stamps(socket: &TcpStream) -> io::Result<()> {
    Ok(setsockopt(socket, ReceiveTimestampns, &true)?)
}

/// Reads what is there.
///
/// # Errors
/// Those of the socket.
pub(super) fn read(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<Read> {
    let mut parts = [IoSliceMut::new(buffer)];
    let mut control = cmsg_space!(TimeSpec);
    let message = recvmsg::<()>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut control),
        MsgFlags::empty(),
    )?;
    let arrived = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(since_epoch) => {
            Some(SystemTime::UNIX_EPOCH + Duration::from(since_epoch))
        }
        _ => None,
    });
    Ok(Read {
        bytes: message.bytes,
        arrived,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn the_stamp_is_of_the_arrival_and_not_of_the_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        ask_for_stamps(&client).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        // The kernel may begin to stamp a moment after it was asked to.
        let mut buffer = [0; 8];
        while {
            server.write_all(b"x").unwrap();
            read(&client, &mut buffer).unwrap().arrived.is_none()
        } {}

        let before = SystemTime::now();
        server.write_all(b"abc").unwrap();
        let written = SystemTime::now();
        thread::sleep(Duration::from_millis(200));
        let got = read(&client, &mut buffer).unwrap();
        assert_eq!(got.bytes, 3);
        let arrived = got.arrived.unwrap();
        // On loopback the bytes have arrived before the write is over, give or take a
        // softirq that another processor runs.
        assert!(arrived >= before);
        assert!(arrived <= written + Duration::from_millis(100));
        drop(server);
        assert_eq!(read(&client, &mut buffer).unwrap().bytes, 0);
    }
}
