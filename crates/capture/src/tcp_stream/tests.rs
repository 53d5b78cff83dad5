use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const ISN: u32 = 0xffff_ff00;
const MS: i64 = 1_000_000;

/// A segment of a stream whose `SYN` has sequence number `ISN`, by stream offset.
fn data(offset: u64, length: u32, time_ns: i64) -> TcpSegment {
    segment(sequence(offset), length, time_ns)
}

fn segment(seq: u32, payload_length: u32, time_ns: i64) -> TcpSegment {
    TcpSegment {
        time_ns,
        from: "10.0.0.1:1000".parse().unwrap(),
        to: "10.0.0.2:80".parse().unwrap(),
        seq,
        ack: None,
        syn: false,
        fin: false,
        rst: false,
        window: 0,
        payload_length,
    }
}

fn syn(time_ns: i64) -> TcpSegment {
    TcpSegment {
        syn: true,
        ..segment(ISN, 0, time_ns)
    }
}

fn sequence(offset: u64) -> u32 {
    let low = u32::try_from(offset % (1 << 32)).unwrap();
    ISN.wrapping_add(1).wrapping_add(low)
}

fn stream(segments: &[TcpSegment]) -> TcpStream {
    let mut stream = TcpStream::new();
    for segment in segments {
        stream.sent(segment);
    }
    stream
}

fn exactly(time_ns: i64) -> Option<SeenAt> {
    Some(SeenAt::exactly(time_ns))
}

#[test]
fn offsets_count_from_the_byte_after_the_syn() {
    let mut stream = stream(&[syn(5), data(0, 300, 10), data(300, 10, 20)]);
    stream.acknowledged(ISN.wrapping_add(1), 6);
    stream.acknowledged(sequence(300), 15);
    stream.acknowledged(sequence(310), 25);
    assert_eq!(stream.alignment(), Alignment::Syn);
    assert_eq!(stream.syn_at(), Some(5));
    assert_eq!(stream.syn_acknowledged_at(), exactly(6));
    assert_eq!(stream.first_seen(0), exactly(10));
    assert_eq!(stream.first_seen(299), exactly(10));
    assert_eq!(stream.first_seen(300), exactly(20));
    assert_eq!(stream.first_seen(310), None);
    assert_eq!(stream.acknowledged_at(299), exactly(15));
    assert_eq!(stream.acknowledged_at(300), exactly(25));
    assert_eq!(stream.acknowledged_at(310), None);
}

#[test]
fn a_stream_without_its_syn_needs_a_known_pair() {
    let mut stream = stream(&[data(1000, 10, 10)]);
    assert_eq!(stream.alignment(), Alignment::Unknown);
    assert_eq!(stream.first_seen(1000), None);
    assert_eq!(stream.all_seen(0..1), None);
    assert_eq!(stream.acknowledged_at(0), None);
    stream.align(1005, sequence(1005));
    assert_eq!(stream.alignment(), Alignment::Given);
    assert_eq!(stream.first_seen(1000), exactly(10));
    assert_eq!(stream.first_seen(999), None);
    stream.sent(&syn(1));
    stream.align(7, sequence(1005));
    assert_eq!(stream.alignment(), Alignment::Syn);
    assert_eq!(stream.first_seen(1009), exactly(10));
}

#[test]
fn streams_longer_than_the_sequence_space_wrap_around() {
    const STEP: u64 = 1 << 30;
    let mut stream = stream(&[syn(0)]);
    for step in 0..16_u64 {
        let time = 10 * (step.cast_signed() + 1);
        stream.sent(&data(step * STEP, 1 << 20, time));
        stream.acknowledged(sequence(step * STEP + (1 << 20)), time + 1);
    }
    for step in 0..16_u64 {
        let time = 10 * (step.cast_signed() + 1);
        assert_eq!(stream.first_seen(step * STEP), exactly(time));
        assert_eq!(stream.acknowledged_at(step * STEP), exactly(time + 1));
        assert_eq!(stream.first_seen(step * STEP + (1 << 20)), None);
    }
}

#[test]
fn a_retransmission_moves_nothing() {
    let stream = stream(&[
        syn(0),
        data(0, 100, 10 * MS),
        data(100, 100, 11 * MS),
        data(50, 150, 300 * MS),
        data(0, 60, 500 * MS),
    ]);
    assert_eq!(stream.first_seen(0), exactly(10 * MS));
    assert_eq!(stream.first_seen(199), exactly(11 * MS));
    assert_eq!(stream.retransmissions(0..200), 2);
    assert_eq!(stream.retransmissions(100..200), 1);
    assert_eq!(stream.retransmissions(0..50), 1);
    assert_eq!(stream.retransmissions(200..300), 0);
    assert_eq!(stream.copies(), 0);
}

#[test]
fn a_copy_from_another_device_is_no_retransmission() {
    let stream = stream(&[
        syn(0),
        data(0, 100, 1000),
        data(100, 50, 1010),
        data(0, 100, 12_000),
        data(0, 150, 500 * MS),
        data(0, 150, 500 * MS + 11_000),
    ]);
    assert_eq!(stream.first_seen(0), exactly(1000));
    assert_eq!(stream.copies(), 1);
    assert_eq!(stream.retransmissions(0..150), 1);
}

#[test]
fn bytes_that_were_never_seen_have_no_time() {
    let mut stream = stream(&[syn(0), data(0, 100, 10), data(200, 100, 30)]);
    stream.acknowledged(sequence(300), 40);
    assert_eq!(stream.first_seen(150), None);
    assert_eq!(stream.all_seen(0..300), None);
    assert_eq!(stream.all_seen(150..300), None);
    assert_eq!(stream.all_seen(50..200), None);
    assert_eq!(stream.all_seen(0..100), exactly(10));
    assert_eq!(stream.all_seen(0..0), None);
    assert_eq!(stream.acknowledged_at(150), exactly(40));
    stream.sent(&data(100, 100, 50));
    assert_eq!(stream.all_seen(0..300), exactly(50));
    assert_eq!(stream.first_seen(299), exactly(30));
}

#[test]
fn late_acknowledgements_do_not_hide_earlier_ones() {
    let mut stream = stream(&[syn(0), data(0, 300, 10)]);
    for (offset, time) in [(100, 20), (300, 40), (200, 30), (100, 35), (250, 41)] {
        stream.acknowledged(sequence(offset), time);
    }
    assert_eq!(stream.acknowledged_at(99), exactly(20));
    assert_eq!(stream.acknowledged_at(100), exactly(30));
    assert_eq!(stream.acknowledged_at(200), exactly(40));
    assert_eq!(stream.acknowledged_at(299), exactly(40));
}

#[test]
fn forgotten_bytes_are_not_seen_anew() {
    let mut stream = stream(&[syn(0), data(0, 100, 10), data(100, 100, 20)]);
    stream.acknowledged(sequence(100), 15);
    stream.acknowledged(sequence(200), 25);
    stream.forget_before(150);
    stream.sent(&data(0, 200, 500 * MS));
    assert_eq!(stream.first_seen(149), None);
    assert_eq!(stream.acknowledged_at(149), None);
    assert_eq!(stream.first_seen(150), exactly(20));
    assert_eq!(stream.acknowledged_at(150), exactly(25));
    assert_eq!(stream.retransmissions(150..200), 1);
    stream.forget_before(200);
    assert_eq!(stream.held(), 0);
}

#[test]
fn a_reset_gives_its_time_and_nothing_else() {
    let mut stream = stream(&[syn(0), data(0, 10, 10)]);
    stream.sent(&TcpSegment {
        rst: true,
        ..segment(ISN.wrapping_add(1 << 30), 5, 30)
    });
    stream.sent(&TcpSegment {
        fin: true,
        ..data(10, 4, 20)
    });
    assert_eq!(stream.rst_at(), Some(30));
    assert_eq!(stream.fin_at(), Some(20));
    assert_eq!(stream.first_seen(13), exactly(20));
    assert_eq!(stream.first_seen(14), None);
}

#[test]
fn a_long_transfer_blurs_its_middle_only() {
    let mut stream = stream(&[syn(0)]);
    let segments = 20_000_u64;
    for at in 0..segments {
        stream.sent(&data(at * 1448, 1448, 100 * at.cast_signed()));
        stream.acknowledged(sequence((at + 1) * 1448), 100 * at.cast_signed() + 50);
    }
    assert!(stream.held() <= seen_bytes::RANGES_CAP + ack_times::ACKS_CAP);
    assert_eq!(stream.first_seen(0), exactly(0));
    assert_eq!(stream.acknowledged_at(0), exactly(50));
    let last = 100 * (segments.cast_signed() - 1);
    assert_eq!(stream.first_seen(segments * 1448 - 1), exactly(last));
    assert_eq!(stream.all_seen(0..segments * 1448), exactly(last));
    for at in 0..segments {
        let seen = stream.first_seen(at * 1448 + 700).unwrap();
        let acked = stream.acknowledged_at(at * 1448 + 700).unwrap();
        let truth = 100 * at.cast_signed();
        assert!(seen.earliest <= truth && truth <= seen.latest);
        assert!(acked.earliest <= truth + 50 && truth + 50 <= acked.latest);
    }
    assert!(stream.losses().blurred > 0);
    assert_eq!(stream.losses().forgotten, 0);
}

#[test]
fn a_stream_full_of_holes_forgets_its_start() {
    let mut stream = stream(&[syn(0)]);
    for at in 0..10_000_u64 {
        stream.sent(&data(at * 10, 5, 100 * at.cast_signed()));
    }
    assert!(stream.held() <= seen_bytes::RANGES_CAP);
    assert_eq!(stream.first_seen(99_990), exactly(999_900));
    assert!(stream.losses().forgotten > 0);
    stream.sent(&data(0, 5, 5000 * MS));
    assert_eq!(stream.first_seen(0), None, "a repetition is not the first");
}

#[test]
fn many_retransmissions_stay_bounded() {
    let mut stream = stream(&[syn(0), data(0, 100, 0)]);
    for at in 1..1000 {
        stream.sent(&data(0, 100, 10 * MS * at));
    }
    assert!(stream.held() <= retransmissions::PIECES_CAP + 1);
    assert_eq!(stream.first_seen(0), exactly(0));
    let counted = stream.retransmissions(0..100) + stream.losses().forgotten;
    assert_eq!(counted, 999);
}

/// What a tap saw: data by offset, length and time, and acknowledgements by offset and time.
#[derive(Clone, Debug)]
enum Packet {
    Syn(i64),
    Data(u64, u32, i64),
    Ack(u64, i64),
}

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let step = prop_oneof![
        (0_u64..2000, 1_u32..300).prop_map(|(offset, length)| (offset, Some(length))),
        (0_u64..2300).prop_map(|offset| (offset, None)),
    ];
    // Times further apart than any copy, so that all orders agree on what is a retransmission.
    vec(step, 1..60).prop_map(|steps| {
        let timed = (1..).zip(steps).map(|(at, (offset, length))| match length {
            Some(length) => Packet::Data(offset, length, at * 10 * MS),
            None => Packet::Ack(offset, at * 10 * MS),
        });
        std::iter::once(Packet::Syn(1)).chain(timed).collect()
    })
}

fn take_in(packets: &[Packet]) -> TcpStream {
    let mut stream = TcpStream::new();
    for packet in packets {
        match *packet {
            Packet::Syn(time) => stream.sent(&syn(time)),
            Packet::Data(offset, length, time) => stream.sent(&data(offset, length, time)),
            Packet::Ack(offset, time) => stream.acknowledged(sequence(offset), time),
        }
    }
    stream
}

proptest! {
    #[test]
    fn every_byte_has_the_time_of_its_first_packet_in_any_order(
        (in_order, shuffled) in packets()
            .prop_flat_map(|packets| (Just(packets.clone()), Just(packets).prop_shuffle())),
    ) {
        let stream = take_in(&shuffled);
        for byte in 0..2400_u64 {
            let sent = in_order.iter().filter_map(|packet| match *packet {
                Packet::Data(offset, length, time)
                    if (offset..offset + u64::from(length)).contains(&byte) => Some(time),
                _ => None,
            });
            let times: Vec<i64> = sent.collect();
            let acked = in_order.iter().filter_map(|packet| match *packet {
                Packet::Ack(offset, time) if offset > byte => Some(time),
                _ => None,
            });
            let first = times.iter().copied().min().map(SeenAt::exactly);
            prop_assert_eq!(stream.first_seen(byte), first);
            prop_assert_eq!(stream.acknowledged_at(byte), acked.min().map(SeenAt::exactly));
            let again = times.len().saturating_sub(1) as u64;
            prop_assert_eq!(stream.retransmissions(byte..byte + 1), again, "byte {}", byte);
        }
    }

    #[test]
    fn a_range_is_complete_when_its_last_byte_is(
        packets in packets(),
        start in 0_u64..2000,
        length in 1_u64..500,
    ) {
        let stream = take_in(&packets);
        let each: Option<Vec<i64>> = (start..start + length)
            .map(|byte| stream.first_seen(byte).map(|at| at.earliest))
            .collect();
        let all = each.and_then(|times| times.into_iter().max()).map(SeenAt::exactly);
        prop_assert_eq!(stream.all_seen(start..start + length), all);
    }
}
