use etherparse::{IpFragOffset, Ipv4Header, Ipv6Header, PacketBuilder, TcpHeader};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::frame::LinkType;

const PAYLOAD: u32 = 1000;

/// An IP packet with 1000 bytes of payload in a TCP segment with a timestamp option.
fn packet(v6: bool) -> Vec<u8> {
    let builder = if v6 {
        PacketBuilder::ipv6([0x11; 16], [0x22; 16], 64)
    } else {
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    };
    let builder = builder
        .tcp(1234, 80, 0xdead_beef, 500)
        .ack(77)
        .fin()
        .options_raw(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2])
        .unwrap();
    let mut bytes = Vec::new();
    builder
        .write(&mut bytes, &[b'x'; PAYLOAD as usize])
        .unwrap();
    bytes
}

fn expected(v6: bool) -> TcpSegment {
    let (from, to) = if v6 {
        (
            "[1111:1111:1111:1111:1111:1111:1111:1111]:1234",
            "[2222:2222:2222:2222:2222:2222:2222:2222]:80",
        )
    } else {
        ("10.0.0.1:1234", "10.0.0.2:80")
    };
    TcpSegment {
        time_ns: 42,
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        seq: 0xdead_beef,
        ack: Some(77),
        syn: false,
        fin: true,
        rst: false,
        window: 500,
        payload_length: PAYLOAD,
    }
}

/// Parses the first `kept` bytes of a frame.
fn parse(link: LinkType, bytes: &[u8], kept: usize) -> Result<TcpSegment, FrameError> {
    TcpSegment::parse(&Frame {
        time_ns: 42,
        link,
        wire_length: bytes.len().try_into().unwrap(),
        bytes: &bytes[..kept.min(bytes.len())],
    })
}

/// Every link type with the header that comes before a packet of the given version.
fn links(v6: bool) -> Vec<(LinkType, Vec<u8>)> {
    let ether_type: [u8; 2] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
    let one_tag = [&[0; 12][..], &[0x81, 0, 0, 7], &ether_type].concat();
    let two_tags = [
        &[0; 12][..],
        &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9],
        &ether_type,
    ]
    .concat();
    vec![
        (LinkType::Ethernet, [&[0; 12][..], &ether_type].concat()),
        (LinkType::Ethernet, one_tag),
        (LinkType::Ethernet, two_tags),
        (LinkType::LinuxSll, [&[0; 14][..], &ether_type].concat()),
        (LinkType::LinuxSll2, [&ether_type[..], &[0; 18]].concat()),
        (LinkType::Loopback, vec![2, 0, 0, 0]),
        (LinkType::RawIp, vec![]),
    ]
}

#[test]
fn every_link_type_gives_the_same_segment_however_little_was_kept() {
    for v6 in [false, true] {
        for (link, header) in links(v6) {
            let headers = header.len() + if v6 { 40 } else { 20 } + 32;
            let frame = [header, packet(v6)].concat();
            assert_eq!(
                parse(link, &frame, frame.len()),
                Ok(expected(v6)),
                "{link:?}"
            );
            assert_eq!(parse(link, &frame, headers), Ok(expected(v6)), "{link:?}");
            for kept in 0..headers {
                assert_eq!(
                    parse(link, &frame, kept),
                    Err(FrameError::CutOff),
                    "{link:?} {kept}"
                );
            }
        }
    }
}

#[test]
fn link_types_are_known_by_their_numbers() {
    let numbers = [
        (1, LinkType::Ethernet),
        (113, LinkType::LinuxSll),
        (276, LinkType::LinuxSll2),
    ];
    for (number, link) in numbers {
        assert_eq!(LinkType::from_number(number), link);
    }
    assert_eq!(
        parse(LinkType::from_number(105), &packet(false), 99),
        Err(FrameError::Link(105))
    );
}

#[test]
fn padding_of_a_short_frame_is_no_payload() {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ethernet2([0; 6], [0; 6]).ipv4([1; 4], [2; 4], 1);
    builder
        .tcp(1, 2, 3, 4)
        .syn()
        .write(&mut bytes, &[])
        .unwrap();
    bytes.resize(60, 0);
    let segment = parse(LinkType::Ethernet, &bytes, 60).unwrap();
    assert_eq!(
        (segment.payload_length, segment.syn, segment.ack),
        (0, true, None)
    );
}

#[test]
fn a_packet_too_long_for_its_length_field_is_measured_by_the_frame() {
    for v6 in [false, true] {
        let mut bytes = packet(v6);
        let field = if v6 { 4..6 } else { 2..4 };
        bytes[field].fill(0);
        let (link, header) = links(v6)[0].clone();
        let frame = [header, bytes].concat();
        let headers = if v6 { 14 + 72 } else { 14 + 52 };
        let segment = TcpSegment::parse(&Frame {
            time_ns: 42,
            link,
            wire_length: 100_000,
            bytes: &frame[..120],
        })
        .unwrap();
        assert_eq!(segment.payload_length, 100_000 - headers);
    }
}

#[test]
fn what_is_not_a_whole_segment_is_refused() {
    let mut udp = Vec::new();
    let builder = PacketBuilder::ipv4([1; 4], [2; 4], 1).udp(1, 2);
    builder.write(&mut udp, b"hello").unwrap();
    assert_eq!(parse(LinkType::RawIp, &udp, 99), Err(FrameError::NotTcp));
    let arp = [&[0; 12][..], &[0x08, 0x06], &[0; 28]].concat();
    assert_eq!(parse(LinkType::Ethernet, &arp, 99), Err(FrameError::NotTcp));

    let tcp = TcpHeader::new(1, 2, 3, 4).to_bytes();
    for (more, offset) in [(true, 0), (false, 100), (true, 100)] {
        let mut ip = Ipv4Header::new(20, 1, etherparse::IpNumber::TCP, [1; 4], [2; 4]).unwrap();
        ip.more_fragments = more;
        ip.fragment_offset = IpFragOffset::try_new(offset).unwrap();
        let bytes = [&ip.to_bytes()[..], &tcp].concat();
        assert_eq!(
            parse(LinkType::RawIp, &bytes, 99),
            Err(FrameError::Fragment)
        );
    }

    let mut short_header = packet(false);
    short_header[32] = 0x40;
    assert_eq!(
        parse(LinkType::RawIp, &short_header, 99),
        Err(FrameError::Malformed)
    );
    let mut short_packet = packet(false);
    short_packet[2..4].copy_from_slice(&30_u16.to_be_bytes());
    assert!(parse(LinkType::RawIp, &short_packet, 99).is_err());
}

#[test]
fn extension_headers_are_no_payload() {
    let tcp = TcpHeader::new(1, 2, 3, 4).to_bytes();
    let hop_by_hop = [6, 0, 1, 4, 0, 0, 0, 0];
    let ip = Ipv6Header {
        payload_length: 8 + 20 + 5,
        next_header: etherparse::IpNumber(0),
        ..Ipv6Header::default()
    };
    let bytes = [&ip.to_bytes()[..], &hop_by_hop, &tcp, b"hello"].concat();
    assert_eq!(
        parse(LinkType::RawIp, &bytes, 99).unwrap().payload_length,
        5
    );
    assert_eq!(
        parse(LinkType::RawIp, &bytes, 68).unwrap().payload_length,
        5
    );
}

proptest! {
    #[test]
    fn garbage_is_refused_without_panic(
        link in 0..300_i32,
        wire_length in any::<u32>(),
        bytes in vec(any::<u8>(), 0..200),
    ) {
        let link = LinkType::from_number(link);
        let frame = Frame { time_ns: 0, link, wire_length, bytes: &bytes };
        if let Ok(segment) = TcpSegment::parse(&frame) {
            prop_assert!(segment.payload_length <= wire_length.max(0xffff));
        }
    }

    #[test]
    fn a_damaged_packet_is_read_or_refused_without_panic(
        v6 in any::<bool>(),
        link in 0..7_usize,
        kept in 0..140_usize,
        damage in vec((0..140_usize, any::<u8>()), 0..6),
    ) {
        let (link, header) = links(v6)[link].clone();
        let mut frame = [header, packet(v6)].concat();
        for (at, byte) in damage {
            frame[at] = byte;
        }
        if let Ok(segment) = parse(link, &frame, kept) {
            prop_assert!(segment.payload_length <= 0xffff);
        }
    }
}
