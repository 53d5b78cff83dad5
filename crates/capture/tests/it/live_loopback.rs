//! Live capture on the loopback device, against clock readings of the sender itself.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use skewtap_capture::http_boundary::{RequestBoundaries, RequestBoundary};
use skewtap_capture::live::{CaptureHandle, CaptureStats, LiveCapture, LiveError};
use skewtap_capture::packet_index::PacketIndex;
use skewtap_capture::tcp_segment::TcpSegment;
use skewtap_capture::wire_times::{Travel, WireMessage, connection_times, message_times};
use skewtap_core::clock::{ProxyClock, Source, Stamp};

/// Long enough that only a capture that hands nothing on runs into it.
const PATIENCE: Duration = Duration::from_secs(20);

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_nanos().try_into().unwrap()
}

/// Whether this test may capture packets. If not, its name goes to the file that
/// `SKEWTAP_NOT_RUN` names; without such a file, the test fails.
fn may_capture() -> bool {
    let held = capabilities(None).unwrap().effective;
    if held.contains(CapabilitySet::NET_RAW) {
        return true;
    }
    let list = std::env::var_os("SKEWTAP_NOT_RUN").expect("this test needs CAP_NET_RAW");
    let thread = thread::current();
    let line = format!("{} needs CAP_NET_RAW\n", thread.name().unwrap());
    let mut list = OpenOptions::new()
        .create(true)
        .append(true)
        .open(list)
        .unwrap();
    list.write_all(line.as_bytes()).unwrap();
    false
}

/// A capture in its own thread.
struct Tap {
    handle: CaptureHandle,
    segments: mpsc::Receiver<TcpSegment>,
    thread: JoinHandle<Result<CaptureStats, LiveError>>,
}

impl Tap {
    fn on(ports: &[u16]) -> Self {
        Self::run(LiveCapture::open(ports).unwrap())
    }

    fn run(capture: LiveCapture) -> Self {
        let (sender, segments) = mpsc::channel();
        Self {
            handle: capture.handle(),
            segments,
            thread: thread::spawn(move || capture.run(|segment| sender.send(segment).unwrap())),
        }
    }

    /// Waits until `enough` holds of the segments so far.
    fn until(&self, mut enough: impl FnMut(&[TcpSegment]) -> bool) -> Vec<TcpSegment> {
        let mut all = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while !enough(&all) {
            let left = deadline.saturating_duration_since(Instant::now());
            all.push(self.segments.recv_timeout(left).expect("more packets"));
        }
        all
    }

    fn stop(self) -> CaptureStats {
        self.handle.stop();
        self.thread.join().unwrap().unwrap()
    }
}

/// A connection over loopback: client, server, and the server's port.
fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    let (server, _) = listener.accept().unwrap();
    server.set_nodelay(true).unwrap();
    (client, server)
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Sends `bytes` from one end to the other, and gives the clock before they were written and
/// after they were read: in between, they must have passed the tap.
fn send(from: &mut TcpStream, to: &mut TcpStream, bytes: &[u8]) -> (i64, i64) {
    let before = now_ns();
    from.write_all(bytes).unwrap();
    let mut read = vec![0; bytes.len()];
    to.read_exact(&mut read).unwrap();
    (before, now_ns())
}

fn index_of(segments: &[TcpSegment]) -> PacketIndex {
    let mut index = PacketIndex::default();
    for segment in segments {
        index.add(segment);
    }
    index
}

/// That what a packet's stamp stands for can have happened within `bracket`.
#[track_caller]
fn agrees(stamp: Option<Stamp<ProxyClock>>, bracket: (i64, i64)) {
    let stamp = stamp.expect("the packet was seen");
    assert_eq!(stamp.source(), Source::Packet);
    assert!(stamp.hi() >= bracket.0, "{stamp:?} ends before {bracket:?}");
    assert!(
        stamp.lo() <= bracket.1,
        "{stamp:?} begins after {bracket:?}"
    );
}

fn fin_count(segments: &[TcpSegment]) -> usize {
    segments.iter().filter(|segment| segment.fin).count()
}

/// Requests one by one, the first in two pieces, then two in one write.
const PIECES: [&[u8]; 4] = [
    b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
    b"hello",
    b"GET /b HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET /c HTTP/1.1\r\n\r\nGET /d HTTP/1.1\r\n\r\n",
];

/// The pieces in which each request's first byte, end of head and last byte went.
const WENT: [[usize; 3]; 4] = [[0, 0, 1], [2, 2, 2], [3, 3, 3], [3, 3, 3]];

/// Offsets of the first byte, of the end of the head and of the end of each request.
fn offsets() -> Vec<[u64; 3]> {
    let mut offsets = Vec::new();
    let mut scanner = RequestBoundaries::new();
    for piece in PIECES {
        scanner.feed(piece, |boundary| match boundary {
            RequestBoundary::Head(head) => offsets.push([head.start, head.head_end, 0]),
            RequestBoundary::End { end, .. } => offsets.last_mut().unwrap()[2] = end,
        });
    }
    assert_eq!(offsets.len(), WENT.len());
    offsets
}

#[test]
fn needs_cap_net_raw_keep_alive_and_pipelined_requests_get_their_own_times() {
    if !may_capture() {
        return;
    }
    let (listener, port) = listener();
    let tap = Tap::on(&[port]);
    let opened = now_ns();
    let (mut client, mut server) = connection(&listener);
    let connected = now_ns();
    let (from, to) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
    // An answer to every piece, so that no two pieces share a segment.
    let brackets = PIECES.map(|piece| {
        let sent = send(&mut client, &mut server, piece);
        (sent, send(&mut server, &mut client, b"0123456789"))
    });
    drop((client, server));
    let segments = tap.until(|segments| fin_count(segments) == 2);
    let stats = tap.stop();
    let index = index_of(&segments);

    let times = |[start, head_end, end]: [u64; 3], (sender, receiver), travel| {
        let message = WireMessage {
            sender,
            receiver,
            at: connected,
            travel,
            start,
            head_end,
            end,
        };
        message_times(&index, &message).unwrap()
    };
    for (offsets, went) in offsets().iter().zip(WENT) {
        for travel in [Travel::Leaving, Travel::Arriving] {
            let times = times(*offsets, (from, to), travel);
            agrees(times.first, brackets[went[0]].0);
            agrees(times.head, brackets[went[1]].0);
            agrees(times.last, brackets[went[2]].0);
            // The answer, at the latest, acknowledges.
            let (sent, answered) = brackets[went[2]];
            agrees(times.acked, (sent.0, answered.1));
        }
    }
    for (start, (_, answered)) in (0..).step_by(10).zip(brackets) {
        let times = times([start, start + 4, start + 10], (to, from), Travel::Arriving);
        agrees(times.first, answered);
        agrees(times.last, answered);
    }
    let connection = connection_times(&index, to, from, connected).unwrap();
    for stamp in [connection.syn, connection.syn_ack, connection.ack] {
        agrees(stamp, (opened, connected));
    }
    assert_eq!(connection.rst, None);
    assert_eq!((stats.dropped, stats.unreadable), (0, 0));
    assert!(stats.segments >= segments.len() as u64);
}

#[test]
fn needs_cap_net_raw_a_loopback_packet_is_taken_once() {
    if !may_capture() {
        return;
    }
    let (listener, port) = listener();
    let tap = Tap::on(&[port]);
    let (mut client, mut server) = connection(&listener);
    for _ in 0..100 {
        send(&mut client, &mut server, b"x");
        send(&mut server, &mut client, b"y");
    }
    let client_address = client.local_addr().unwrap();
    drop((client, server));
    let segments = tap.until(|segments| fin_count(segments) == 2);
    let stats = tap.stop();
    let sent = segments
        .iter()
        .filter(|segment| segment.from == client_address && segment.payload_length == 1);
    assert_eq!(sent.count(), 100);
    // The kernel would count every packet twice if the copy going out were let through.
    assert!(
        stats.received < stats.segments + stats.segments / 2,
        "{stats:?}"
    );
}

#[test]
fn needs_cap_net_raw_what_the_kernel_drops_is_counted_and_has_no_time() {
    if !may_capture() {
        return;
    }
    // Each round is two packets at least, more in all than the kernel's buffer has room for.
    const ROUNDS: u64 = 25_000;
    let (listener, port) = listener();
    let capture = LiveCapture::open(&[port]).unwrap();
    let opened = now_ns();
    let (mut client, mut server) = connection(&listener);
    let (from, to) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
    let started = now_ns();
    for _ in 0..ROUNDS {
        send(&mut client, &mut server, b"x");
        send(&mut server, &mut client, b"y");
    }
    let ended = now_ns();

    let tap = Tap::run(capture);
    // The flood is over, so what the kernel has counted is all there will be.
    let kept = tap.until(|segments| {
        let stats = tap.handle.stats();
        stats.received > 0 && segments.len() as u64 >= stats.received - stats.dropped
    });
    let stats = tap.stop();
    assert!(stats.dropped > 0, "{stats:?}");

    let index = index_of(&kept);
    let connection = index.connection(from, to, started).unwrap();
    let stream = connection.sent_by(from).unwrap();
    assert!((opened..=started).contains(&stream.syn_at().unwrap()));
    let mut unseen = 0;
    for offset in 0..ROUNDS {
        match stream.first_seen(offset) {
            Some(seen) => assert!(started <= seen.earliest && seen.latest <= ended),
            None => unseen += 1,
        }
    }
    assert!(unseen > 0);
    assert_eq!(stream.all_seen(0..ROUNDS), None);
}

#[test]
fn needs_cap_net_raw_a_port_can_be_added_while_running() {
    if !may_capture() {
        return;
    }
    let (first, port) = listener();
    let (second, other_port) = listener();
    let tap = Tap::on(&[port]);
    let to_port = |segments: &[TcpSegment], port| {
        let of = |segment: &&TcpSegment| segment.to.port() == port;
        segments.iter().filter(of).count()
    };
    drop(connection(&second));
    drop(connection(&first));
    let before = tap.until(|segments| fin_count(segments) == 2);
    assert_eq!(to_port(&before, other_port), 0, "not asked for yet");

    tap.handle.add_port(other_port).unwrap();
    tap.handle.add_port(other_port).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while tap.handle.stats().filter_changes == 0 {
        assert!(Instant::now() < deadline, "the filter was never replaced");
        thread::yield_now();
    }
    drop(connection(&second));
    let after = tap.until(|segments| fin_count(segments) == 2);
    assert!(to_port(&after, other_port) > 0);
    drop(connection(&first));
    tap.until(|segments| to_port(segments, port) > 0);
    assert_eq!(tap.stop().filter_changes, 1);
}

#[test]
fn needs_cap_net_raw_stopping_ends_a_capture_without_traffic() {
    if !may_capture() {
        return;
    }
    let (_listener, port) = listener();
    let tap = Tap::on(&[port]);
    assert_eq!(tap.stop().segments, 0);
    let capture = LiveCapture::open(&[port]).unwrap();
    capture.handle().stop();
    capture.run(|segment| panic!("{segment:?}")).unwrap();
}

#[test]
fn needs_cap_net_raw_a_device_that_is_not_there_is_named() {
    if !may_capture() {
        return;
    }
    let error = LiveCapture::open_on("nosuchdevice0", &[80]).err().unwrap();
    assert!(matches!(&error, LiveError::NoSuchDevice { device } if device == "nosuchdevice0"));
    assert!(error.to_string().contains("nosuchdevice0"));
}

#[test]
fn without_cap_net_raw_the_error_says_what_it_takes() {
    let error = thread::spawn(|| {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::NET_RAW);
        set_capabilities(None, sets).unwrap();
        LiveCapture::open(&[80]).err().unwrap()
    });
    let error = error.join().unwrap();
    assert!(matches!(error, LiveError::NotPermitted { .. }), "{error}");
    assert!(error.to_string().contains("CAP_NET_RAW"));
}

#[test]
fn the_number_of_ports_is_bounded() {
    let all: Vec<u16> = (1..=1000).collect();
    for (ports, given) in [(&all[..0], 0), (&all[..], 1000)] {
        let error = LiveCapture::open(ports).err().unwrap();
        assert!(matches!(error, LiveError::Ports { given: said } if said == given));
    }
}
