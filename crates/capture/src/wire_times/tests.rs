use super::*;
use crate::tcp_segment::TcpSegment;

const MS: i64 = 1_000_000;

fn client() -> SocketAddr {
    "10.0.0.1:1000".parse().unwrap()
}

fn server() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

/// An index of one connection: the server's `SYN` at 0, data by offset, length and time, and
/// the client's acknowledgements by offset and time.
fn index(data: &[(u32, u32, i64)], acks: &[(u32, i64)]) -> PacketIndex {
    let segment = |from, to, time_ns| TcpSegment {
        time_ns,
        from,
        to,
        seq: 999,
        ack: None,
        syn: false,
        fin: false,
        rst: false,
        window: 0,
        payload_length: 0,
    };
    let mut index = PacketIndex::default();
    index.add(&TcpSegment {
        syn: true,
        ..segment(server(), client(), 0)
    });
    for (offset, payload_length, time_ns) in data.iter().copied() {
        index.add(&TcpSegment {
            seq: 1000 + offset,
            payload_length,
            ..segment(server(), client(), time_ns)
        });
    }
    for (offset, time_ns) in acks.iter().copied() {
        index.add(&TcpSegment {
            ack: Some(1000 + offset),
            ..segment(client(), server(), time_ns)
        });
    }
    index
}

fn message(travel: Travel) -> WireMessage {
    WireMessage {
        sender: server(),
        receiver: client(),
        at: MS,
        travel,
        start: 0,
        head_end: 100,
        end: 300,
    }
}

fn around(from: i64, to: i64) -> Option<Stamp<ProxyClock>> {
    Some(Stamp::between(
        from - TAP_DISTANCE_NS,
        to + TAP_DISTANCE_NS,
        Source::Packet,
    ))
}

#[test]
fn what_arrives_is_there_once_all_before_it_is() {
    let index = index(
        &[(0, 50, MS), (150, 150, 2 * MS), (50, 100, 250 * MS)],
        &[(300, 251 * MS)],
    );
    let times = message_times(&index, &message(Travel::Arriving)).unwrap();
    assert_eq!(times.first, around(MS, MS));
    assert_eq!(times.head, around(250 * MS, 250 * MS));
    assert_eq!(times.last, around(250 * MS, 250 * MS));
    assert_eq!(times.acked, around(251 * MS, 251 * MS));
}

#[test]
fn what_leaves_has_left_when_first_sent() {
    let index = index(
        &[(0, 150, MS), (150, 150, 2 * MS), (150, 150, 250 * MS)],
        &[(150, 3 * MS), (300, 251 * MS)],
    );
    let times = message_times(&index, &message(Travel::Leaving)).unwrap();
    assert_eq!(times.first, around(MS, MS));
    assert_eq!(times.head, around(MS, MS));
    assert_eq!(times.last, around(2 * MS, 2 * MS));
    assert_eq!(times.acked, around(251 * MS, 251 * MS));
    assert_eq!(times.retransmissions, 1);
}

#[test]
fn what_no_packet_shows_is_unknown() {
    let index = index(&[(0, 50, MS), (200, 100, 2 * MS)], &[]);
    let arriving = message_times(&index, &message(Travel::Arriving)).unwrap();
    assert_eq!(arriving.first, around(MS, MS));
    assert_eq!(arriving.head, None);
    assert_eq!(arriving.last, None);
    assert_eq!(arriving.acked, None);
    let leaving = message_times(&index, &message(Travel::Leaving)).unwrap();
    assert_eq!(leaving.head, None);
    assert_eq!(leaving.last, around(2 * MS, 2 * MS));
    let earlier = WireMessage {
        at: -1,
        ..message(Travel::Leaving)
    };
    assert_eq!(message_times(&index, &earlier), None);
    let empty = WireMessage {
        head_end: 0,
        end: 0,
        ..message(Travel::Leaving)
    };
    assert_eq!(message_times(&index, &empty).unwrap().last, None);
}

#[test]
fn an_acknowledgement_may_be_among_lost_packets() {
    let mut index = index(&[(0, 300, 10 * MS)], &[(300, 50 * MS)]);
    index.note_loss(MS, 2 * MS);
    index.note_loss(60 * MS, 70 * MS);
    let times = message_times(&index, &message(Travel::Leaving)).unwrap();
    assert_eq!(times.acked, around(50 * MS, 50 * MS));
    index.note_loss(20 * MS, 21 * MS);
    let times = message_times(&index, &message(Travel::Leaving)).unwrap();
    assert_eq!(times.acked, around(10 * MS, 50 * MS));
    assert_eq!(times.last, around(10 * MS, 10 * MS));
}
