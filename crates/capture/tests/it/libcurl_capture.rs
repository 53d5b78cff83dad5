//! A real exchange of an old libcurl that sleeps without watching its socket: the reply lies in
//! its kernel for 0.7 s before it closes the connection.

use skewtap_capture::frame::Frame;
use skewtap_capture::http_boundary::{
    RequestBoundaries, RequestBoundary, ResponseBoundaries, ResponseBoundary, Tracking,
};
use skewtap_capture::packet_index::PacketIndex;
use skewtap_capture::pcap_file::PcapFile;
use skewtap_capture::tcp_segment::TcpSegment;
use skewtap_capture::wire_times::{
    TAP_DISTANCE_NS, Travel, WireMessage, connection_times, message_times,
};
use skewtap_core::clock::{ProxyClock, Stamp};

const CAPTURE: &[u8] = include_bytes!("../captures/post-expect-7.5s.pcap");

/// The payload of a frame that was captured whole.
fn payload<'a>(frame: &Frame<'a>, segment: &TcpSegment) -> &'a [u8] {
    assert_eq!(frame.wire_length as usize, frame.bytes.len());
    let length = segment.payload_length as usize;
    &frame.bytes[frame.bytes.len() - length..]
}

/// Seconds from `start` to `stamp`, to the four digits that are known of them.
fn seconds(stamp: Option<Stamp<ProxyClock>>, start: i64) -> String {
    let stamp = stamp.expect("a packet shows it");
    assert_eq!(stamp.width(), 2 * TAP_DISTANCE_NS);
    let since = stamp.lo() + TAP_DISTANCE_NS - start;
    format!("{:.4}", since as f64 / 1e9)
}

/// What the file holds: its packets by byte, its messages by offset, and its first segment.
struct Capture {
    index: PacketIndex,
    request: [u64; 3],
    interim: [u64; 3],
    response: [u64; 3],
    opening: TcpSegment,
}

fn read_capture() -> Capture {
    let mut file = PcapFile::new(CAPTURE).unwrap();
    let mut index = PacketIndex::default();
    let mut opening = None;
    let (mut requests, mut responses) = (RequestBoundaries::new(), ResponseBoundaries::new());
    let (mut request, mut interim, mut response) = ([0; 3], [0; 3], [0; 3]);
    while let Some(frame) = file.next_frame().unwrap() {
        let segment = TcpSegment::parse(&frame).unwrap();
        index.add(&segment);
        let first = *opening.get_or_insert(segment);
        if segment.from == first.from {
            requests.feed(payload(&frame, &segment), |boundary| match boundary {
                RequestBoundary::Head(head) => {
                    assert_eq!((head.method, head.expects_continue), ("POST", true));
                    responses.expect_response_to(head.method);
                    request = [head.start, head.head_end, 0];
                }
                RequestBoundary::End { end, .. } => request[2] = end,
            });
        } else {
            responses.feed(payload(&frame, &segment), |boundary| match boundary {
                ResponseBoundary::Interim(head) => {
                    assert_eq!(head.status, 100);
                    interim = [head.start, head.head_end, head.head_end];
                }
                ResponseBoundary::Head(head) => {
                    assert_eq!(head.status, 200);
                    response = [head.start, head.head_end, 0];
                }
                ResponseBoundary::End { end, .. } => response[2] = end,
            });
        }
    }
    assert_eq!(requests.tracking(), Tracking::Following);
    assert_eq!(responses.tracking(), Tracking::Following);
    Capture {
        index,
        request,
        interim,
        response,
        opening: opening.unwrap(),
    }
}

#[test]
fn the_times_of_the_exchange_are_those_known_of_it() {
    let capture = read_capture();
    let (client, server) = (capture.opening.from, capture.opening.to);
    let syn = capture.opening.time_ns;
    assert!(capture.opening.syn);
    let times = |sender, receiver, [start, head_end, end]: [u64; 3]| {
        let message = WireMessage {
            sender,
            receiver,
            at: syn,
            travel: Travel::Arriving,
            start,
            head_end,
            end,
        };
        message_times(&capture.index, &message).unwrap()
    };
    let sent = times(client, server, capture.request);
    assert_eq!(seconds(sent.first, syn), "0.0011");
    assert_eq!(seconds(sent.head, syn), "0.0011");
    assert_eq!(seconds(sent.last, syn), "0.0021");
    let went_on = times(server, client, capture.interim);
    assert_eq!(seconds(went_on.last, syn), "0.0012");
    assert_eq!(capture.response[2] - capture.response[0], 67);
    let answered = times(server, client, capture.response);
    assert_eq!(seconds(answered.first, syn), "7.5023");
    assert_eq!(seconds(answered.last, syn), "7.5023");
    assert_eq!(seconds(answered.acked, syn), "7.5436");
    assert_eq!(answered.retransmissions, 0);

    let connection = connection_times(&capture.index, client, server, syn).unwrap();
    assert_eq!(seconds(connection.syn, syn), "0.0000");
    assert_eq!(seconds(connection.local_fin, syn), "8.2121");
    assert!(connection.syn_ack.unwrap().lo() < connection.ack.unwrap().hi());
    assert_eq!(connection.rst, None);
}
