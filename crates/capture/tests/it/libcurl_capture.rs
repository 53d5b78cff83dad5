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

#[test]
fn the_times_of_the_exchange_are_those_known_of_it() {
    let mut file = PcapFile::new(CAPTURE).unwrap();
    let mut index = PacketIndex::default();
    let mut opening = None;
    let (mut requests, mut request) = (RequestBoundaries::new(), Vec::new());
    let (mut responses, mut response) = (ResponseBoundaries::new(), Vec::new());
    while let Some(frame) = file.next_frame().unwrap() {
        let segment = TcpSegment::parse(&frame).unwrap();
        index.add(&segment);
        let first = *opening.get_or_insert(segment);
        if segment.from == first.from {
            requests.feed(payload(&frame, &segment), |boundary| match boundary {
                RequestBoundary::Head(head) => {
                    assert_eq!((head.method, head.expects_continue), ("POST", true));
                    responses.expect_response_to(head.method);
                    request.extend([head.start, head.head_end]);
                }
                RequestBoundary::End { end, .. } => request.push(end),
            });
        } else {
            responses.feed(payload(&frame, &segment), |boundary| match boundary {
                ResponseBoundary::Interim(head) => {
                    assert_eq!(head.status, 100);
                    response.extend([head.start, head.head_end]);
                }
                ResponseBoundary::Head(head) => {
                    assert_eq!(head.status, 200);
                    response.extend([head.start, head.head_end]);
                }
                ResponseBoundary::End { end, .. } => response.push(end),
            });
        }
    }
    assert_eq!(requests.tracking(), Tracking::Following);
    assert_eq!(responses.tracking(), Tracking::Following);
    assert_eq!(file.resolution_ns(), 1);

    let opening = opening.unwrap();
    let (client, server, syn) = (opening.from, opening.to, opening.time_ns);
    assert!(opening.syn);
    let message = |sender, receiver, offsets: &[u64]| WireMessage {
        sender,
        receiver,
        at: syn,
        travel: Travel::Arriving,
        start: offsets[0],
        head_end: offsets[1],
        end: offsets[2],
    };
    let sent = message_times(&index, &message(client, server, &request)).unwrap();
    assert_eq!(seconds(sent.first, syn), "0.0011");
    assert_eq!(seconds(sent.head, syn), "0.0011");
    assert_eq!(seconds(sent.last, syn), "0.0021");
    let interim = [response[0], response[1], response[1]];
    let went_on = message_times(&index, &message(server, client, &interim)).unwrap();
    assert_eq!(seconds(went_on.last, syn), "0.0012");
    let answered = message_times(&index, &message(server, client, &response[2..])).unwrap();
    assert_eq!(response[4] - response[2], 67);
    assert_eq!(seconds(answered.first, syn), "7.5023");
    assert_eq!(seconds(answered.last, syn), "7.5023");
    assert_eq!(seconds(answered.acked, syn), "7.5436");
    assert_eq!(answered.retransmissions, 0);

    let connection = connection_times(&index, client, server, syn).unwrap();
    assert_eq!(seconds(connection.syn, syn), "0.0000");
    assert_eq!(seconds(connection.local_fin, syn), "8.2121");
    assert!(connection.syn_ack.unwrap().lo() < connection.ack.unwrap().hi());
    assert_eq!(connection.rst, None);
}
