//! Real sockets over loopback: what the kernel's stamps and figures say, against what is known.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(unsafe_code, reason = "one test looks into the bytes read")]

use std::io::{ErrorKind, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use skewtap_sockstamp::{
    Primer, Received, enable_receive_stamps, monotonic_ns, realtime_ns, receive, tcp_info,
};

/// Both ends of a connection; the listener had stamps switched on, the accepted end inherits.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    enable_receive_stamps(listener.as_fd()).unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    sender.set_nodelay(true).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    (sender, receiver)
}

/// Reads once, after waiting until there is something to read.
fn read_when_ready(socket: &TcpStream, at_most: usize) -> Received {
    socket.peek(&mut [0]).unwrap();
    let mut buffer = vec![MaybeUninit::uninit(); at_most];
    receive(socket.as_fd(), &mut buffer).unwrap()
}

/// Waits until the receiver's kernel holds `bytes` bytes in all.
fn wait_until_arrived(receiver: &TcpStream, bytes: u64) {
    let deadline = monotonic_ns() + 10_000_000_000;
    while tcp_info(receiver.as_fd()).unwrap().bytes_received < bytes {
        assert!(monotonic_ns() < deadline, "{bytes} bytes never arrived");
        std::thread::yield_now();
    }
}

#[test]
fn a_stamp_lies_between_the_write_and_the_read() {
    let _primer = Primer::new().unwrap();
    let (mut sender, receiver) = connection();
    for _ in 0..100 {
        let before = realtime_ns();
        sender.write_all(&[7; 200]).unwrap();
        let received = read_when_ready(&receiver, 1_000);
        let after = realtime_ns();
        let stamp = received.kernel_ns.unwrap();
        assert_eq!(received.bytes, 200);
        assert!(
            before <= stamp && stamp <= after,
            "{before} {stamp} {after}"
        );
    }
}

#[test]
fn the_bytes_read_are_the_bytes_sent() {
    let (mut sender, receiver) = connection();
    sender.write_all(b"hello").unwrap();
    receiver.peek(&mut [0]).unwrap();
    let mut buffer = [0_u8; 8];
    let mut uninitialised = buffer.map(MaybeUninit::new);
    let received = receive(receiver.as_fd(), &mut uninitialised).unwrap();
    for (byte, read) in buffer.iter_mut().zip(uninitialised) {
        // SAFETY: every element was initialised above.
        *byte = unsafe { read.assume_init() };
    }
    assert_eq!(&buffer[..received.bytes], b"hello");
}

#[test]
fn a_socket_that_did_not_ask_gets_no_stamp() {
    let _primer = Primer::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    sender.write_all(&[7]).unwrap();
    assert_eq!(read_when_ready(&receiver, 10).kernel_ns, None);
}

#[test]
fn with_a_primer_bytes_that_came_before_the_request_are_stamped_too() {
    let _primer = Primer::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    let before = realtime_ns();
    sender.write_all(&[7]).unwrap();
    receiver.peek(&mut [0]).unwrap();
    let arrived = realtime_ns();
    enable_receive_stamps(receiver.as_fd()).unwrap();
    let stamp = read_when_ready(&receiver, 10).kernel_ns.unwrap();
    assert!(before <= stamp && stamp <= arrived);
}

#[test]
fn nothing_to_read_is_would_block_and_the_end_of_stream_has_no_stamp() {
    let _primer = Primer::new().unwrap();
    let (sender, receiver) = connection();
    let mut buffer = [MaybeUninit::uninit(); 16];
    let nothing = receive(receiver.as_fd(), &mut buffer).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    drop(sender);
    let end = read_when_ready(&receiver, 16);
    assert_eq!((end.bytes, end.kernel_ns), (0, None));
}

/// The kernel merges what lies unread, and the merged buffer has the newest stamp: reading the
/// first byte late tells when the last one came.
#[test]
fn bytes_read_late_carry_the_stamp_of_the_last_that_came() {
    let _primer = Primer::new().unwrap();
    let (mut sender, receiver) = connection();
    let mut last_write = 0;
    for sent in 1..=5_u64 {
        last_write = realtime_ns();
        sender.write_all(&[7; 300]).unwrap();
        wait_until_arrived(&receiver, 300 * sent);
        std::thread::sleep(Duration::from_millis(2));
    }
    let first = read_when_ready(&receiver, 100);
    assert_eq!(first.bytes, 100);
    assert!(first.kernel_ns.unwrap() >= last_write);
    assert_eq!(tcp_info(receiver.as_fd()).unwrap().data_segments_in, 5);
}

#[test]
fn the_figures_count_what_was_sent() {
    let (mut sender, receiver) = connection();
    sender.write_all(&[7; 1_000]).unwrap();
    wait_until_arrived(&receiver, 1_000);
    let figures = tcp_info(receiver.as_fd()).unwrap();
    assert_eq!(figures.bytes_received, 1_000);
    assert_eq!(figures.total_retransmits, 0);
    let sent = tcp_info(sender.as_fd()).unwrap();
    assert_eq!(sent.data_segments_out, 1);
    assert!(sent.min_rtt_ns.unwrap() >= 0);
}

/// The receiver sleeps on a response larger than all buffers: its window holds the sender back.
#[test]
fn a_reader_that_does_not_drain_shows_as_time_limited_by_the_window() {
    let (mut sender, mut receiver) = connection();
    let asleep = Duration::from_millis(300);
    let reader = std::thread::spawn(move || {
        std::thread::sleep(asleep);
        std::io::copy(&mut receiver, &mut std::io::sink()).unwrap()
    });
    let bytes = vec![7; 16 << 20];
    sender.write_all(&bytes).unwrap();
    let limited = tcp_info(sender.as_fd()).unwrap().window_limited_ns;
    drop(sender);
    assert_eq!(reader.join().unwrap(), 16 << 20);
    assert!(limited >= 100_000_000, "limited for {limited} ns only");
}

#[test]
fn what_is_no_tcp_socket_is_an_error() {
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(tcp_info(datagrams.as_fd()).is_err());
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(enable_receive_stamps(file.as_fd()).is_err());
    assert!(receive(file.as_fd(), &mut [MaybeUninit::uninit()]).is_err());
}
