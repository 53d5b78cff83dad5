use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::tcp_stream::{Alignment, SeenAt};

const S: i64 = 1_000_000_000;
const SERVER: &str = "10.0.0.9:80";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn client(number: u16) -> SocketAddr {
    SocketAddr::new([10, 0, 0, 1].into(), 1000 + number)
}

fn segment(from: SocketAddr, to: SocketAddr, seq: u32, ack: Option<u32>, at: i64) -> TcpSegment {
    TcpSegment {
        time_ns: at,
        from,
        to,
        seq,
        ack,
        syn: false,
        fin: false,
        rst: false,
        window: 0,
        payload_length: 0,
    }
}

/// A connection from its handshake to its end: 100 bytes there, 50 back, from `at` in steps of
/// 10 ns; `isn` is the client's initial sequence number.
fn conversation(client: SocketAddr, isn: u32, at: i64) -> Vec<TcpSegment> {
    let server = address(SERVER);
    let there = |seq: u32, ack, step: i64| {
        segment(client, server, isn.wrapping_add(seq), ack, at + 10 * step)
    };
    let back = |seq, ack: u32, step: i64| {
        segment(
            server,
            client,
            seq,
            Some(isn.wrapping_add(ack)),
            at + 10 * step,
        )
    };
    let data = |segment, payload_length| TcpSegment {
        payload_length,
        ..segment
    };
    let syn = |segment| TcpSegment {
        syn: true,
        ..segment
    };
    let fin = |segment| TcpSegment {
        fin: true,
        ..segment
    };
    vec![
        syn(there(0, None, 0)),
        syn(back(500, 1, 1)),
        there(1, Some(501), 2),
        data(there(1, Some(501), 3), 100),
        back(501, 101, 4),
        data(back(501, 101, 5), 50),
        there(101, Some(551), 6),
        fin(there(101, Some(551), 7)),
        fin(back(551, 102, 8)),
        there(102, Some(552), 9),
    ]
}

fn index(limits: IndexLimits, segments: &[TcpSegment]) -> PacketIndex {
    let mut index = PacketIndex::new(limits);
    for segment in segments {
        index.add(segment);
    }
    index
}

/// Everything that can be asked of a conversation that began at `at`.
fn answers(index: &PacketIndex, client: SocketAddr, at: i64) -> Vec<Option<i64>> {
    let connection = index.connection(client, address(SERVER), at).unwrap();
    let (there, back) = (
        connection.sent_by(client).unwrap(),
        connection.sent_by(address(SERVER)).unwrap(),
    );
    let handshake = connection.handshake();
    let since = |time: Option<i64>| time.map(|time| time - at);
    let seen = |seen: Option<SeenAt>| seen.map(|seen| seen.earliest - at);
    vec![
        since(handshake.syn),
        since(handshake.syn_ack),
        since(handshake.ack),
        seen(there.first_seen(0)),
        seen(there.first_seen(100)),
        seen(there.acknowledged_at(99)),
        seen(back.all_seen(0..50)),
        seen(back.acknowledged_at(49)),
        since(there.fin_at()),
        since(back.fin_at()),
        since(back.rst_at()),
    ]
}

fn expected() -> Vec<Option<i64>> {
    [0, 10, 20, 30, -1, 40, 50, 60, 70, 80, -1]
        .map(|step| (step >= 0).then_some(step))
        .to_vec()
}

#[test]
fn both_directions_of_a_connection_are_found_by_its_ends() {
    let index = index(
        IndexLimits::default(),
        &conversation(client(1), u32::MAX - 5, S),
    );
    assert_eq!(answers(&index, client(1), S), expected());
    let connection = index.connection(address(SERVER), client(1), S).unwrap();
    assert!(connection.is_over());
    assert!(connection.sent_by(client(2)).is_none());
    assert!(index.connection(client(2), address(SERVER), S).is_none());
    assert!(
        index
            .connection(client(1), address(SERVER), S - 1)
            .is_none()
    );
    let dual_stack = address("[::ffff:10.0.0.1]:1001");
    assert!(index.connection(dual_stack, address(SERVER), S).is_some());
    assert!(connection.sent_by(dual_stack).is_some());
}

#[test]
fn a_port_used_again_is_another_connection() {
    let mut segments = conversation(client(1), 1000, S);
    segments.extend(conversation(client(1), 900_000, 2 * S));
    let index = index(IndexLimits::default(), &segments);
    assert_eq!(index.counts().connections, 2);
    assert_eq!(answers(&index, client(1), S), expected());
    assert_eq!(answers(&index, client(1), 2 * S), expected());
}

#[test]
fn a_repeated_syn_is_the_same_connection() {
    let mut segments = conversation(client(1), 1000, S);
    let again = TcpSegment {
        time_ns: S + 5,
        ..segments[0]
    };
    segments.insert(1, again);
    let index = index(IndexLimits::default(), &segments);
    assert_eq!(index.counts().connections, 1);
    assert_eq!(answers(&index, client(1), S), expected());
}

#[test]
fn a_capture_that_began_late_can_be_aligned() {
    let segments = &conversation(client(1), 1000, S)[3..];
    let mut index = index(IndexLimits::default(), segments);
    let server = address(SERVER);
    let alignment = |index: &PacketIndex| {
        let connection = index.connection(client(1), server, 2 * S).unwrap();
        connection.sent_by(client(1)).unwrap().alignment()
    };
    assert_eq!(alignment(&index), Alignment::Unknown);
    index.align(client(1), server, 2 * S, 40, 1041);
    assert_eq!(alignment(&index), Alignment::Given);
    let connection = index.connection(client(1), server, 2 * S).unwrap();
    let there = connection.sent_by(client(1)).unwrap();
    assert_eq!(there.first_seen(0), Some(SeenAt::exactly(S + 30)));
    assert_eq!(connection.handshake().syn, None);
}

#[test]
fn what_a_reset_acknowledges_is_not_held_by_anyone() {
    let mut segments = conversation(client(1), 1000, S);
    segments.truncate(4);
    segments.push(TcpSegment {
        rst: true,
        ..segment(address(SERVER), client(1), 501, Some(1101), S + 40)
    });
    let index = index(IndexLimits::default(), &segments);
    let connection = index.connection(client(1), address(SERVER), S).unwrap();
    let there = connection.sent_by(client(1)).unwrap();
    assert_eq!(there.first_seen(99), Some(SeenAt::exactly(S + 30)));
    assert_eq!(there.acknowledged_at(99), None);
    assert!(connection.is_over());
}

#[test]
fn connections_age_by_the_time_of_packets() {
    let limits = IndexLimits {
        silent_ns: 100 * S,
        over_ns: 10 * S,
        ..IndexLimits::default()
    };
    let mut index = index(limits, &conversation(client(1), 1, S));
    index.add(&conversation(client(2), 1, S)[0]);
    assert_eq!(index.counts().connections, 2);
    index.add(&conversation(client(3), 1, 20 * S)[0]);
    assert!(
        index.connection(client(1), address(SERVER), S).is_none(),
        "over for 19 s"
    );
    assert!(
        index.connection(client(2), address(SERVER), S).is_some(),
        "silent for 19 s"
    );
    for seconds in (21..110).step_by(5) {
        index.add(&conversation(client(3), 1, seconds * S)[3]);
    }
    assert!(
        index.connection(client(2), address(SERVER), S).is_none(),
        "silent for 100 s"
    );
    assert!(
        index
            .connection(client(3), address(SERVER), 20 * S)
            .is_some()
    );
    let counts = index.counts();
    assert_eq!((counts.connections, counts.aged, counts.evicted), (1, 2, 0));
}

#[test]
fn a_flood_of_connections_pushes_out_the_silent_ones() {
    let limits = IndexLimits {
        connections: 100,
        ..IndexLimits::default()
    };
    let mut index = PacketIndex::new(limits);
    for number in 0..10_000 {
        let at = S + i64::from(number) * 1000;
        index.add(&conversation(client(number), 1, at)[0]);
        // The first one keeps talking.
        let busy = segment(client(0), address(SERVER), 2, Some(1), at + 1);
        index.add(&TcpSegment {
            payload_length: 1,
            ..busy
        });
    }
    let counts = index.counts();
    assert_eq!((counts.connections, counts.evicted), (100, 9_900));
    let latest = client(9_999);
    assert!(index.connection(latest, address(SERVER), 2 * S).is_some());
    assert!(
        index
            .connection(client(0), address(SERVER), 2 * S)
            .is_some()
    );
    assert!(
        index
            .connection(client(5_000), address(SERVER), 2 * S)
            .is_none()
    );
}

#[test]
fn entries_are_bounded_over_all_connections_and_given_back() {
    let limits = IndexLimits {
        entries: 1000,
        ..IndexLimits::default()
    };
    let mut index = PacketIndex::new(limits);
    let server = address(SERVER);
    for at in 0..20_000_u32 {
        let from = client((at % 50) as u16);
        // A hole before every byte, so that each is an entry of its own.
        let data = segment(from, server, at, None, i64::from(at));
        index.add(&TcpSegment {
            payload_length: 1,
            ..data
        });
        assert!(index.counts().entries <= 1000);
    }
    assert!(index.counts().evicted > 0);

    let mut index = PacketIndex::default();
    for one in conversation(client(1), 1000, S) {
        index.add(&one);
    }
    index.forget_before(client(1), server, S, 101);
    index.forget_before(server, client(1), S, 51);
    assert_eq!(
        index.counts().entries,
        0,
        "all but what covers the FIN was forgotten"
    );
}

#[test]
fn losses_are_remembered_by_period() {
    let mut index = PacketIndex::default();
    index.note_loss(100, 200);
    index.note_loss(150, 250);
    index.note_loss(1000, 1000);
    assert!(!index.lost_between(0, 99));
    assert!(index.lost_between(0, 100));
    assert!(index.lost_between(240, 300));
    assert!(!index.lost_between(251, 999));
    for at in 2..10_000 {
        index.note_loss(at * 1000, at * 1000 + 1);
    }
    assert!(
        index.lost_between(100, 100),
        "old periods are taken together, not forgotten"
    );
    assert!(!index.lost_between(9_998_500, 9_998_600));
}

proptest! {
    #[test]
    fn the_order_of_packets_does_not_matter(
        segments in vec(0_u16..4, 1..4).prop_flat_map(|clients| {
            let all = clients.iter().flat_map(|number| conversation(client(*number), 77, S));
            Just(all.collect::<Vec<_>>()).prop_shuffle()
        }),
    ) {
        let index = index(IndexLimits::default(), &segments);
        for segment in &segments {
            let client = segment.from.max(segment.to);
            let client = if client == address(SERVER) { segment.from.min(segment.to) } else { client };
            prop_assert_eq!(answers(&index, client, S), expected());
        }
    }

    #[test]
    fn a_lost_packet_is_a_missing_time_and_never_a_wrong_one(lost in 1_usize..10) {
        let mut segments = conversation(client(1), 77, S);
        segments.remove(lost);
        let index = index(IndexLimits::default(), &segments);
        let (seen, truth) = (answers(&index, client(1), S), expected());
        // Of an acknowledgement a later one tells as well, if later.
        let acknowledged = [2, 5, 7];
        for (which, (seen, truth)) in seen.iter().zip(&truth).enumerate() {
            if acknowledged.contains(&which) {
                prop_assert!(seen.is_none() || seen >= truth);
            } else {
                prop_assert!(seen.is_none() || seen == truth);
            }
        }
    }
}
