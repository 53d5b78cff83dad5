use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Hands out one byte at a time, as a slow pipe may.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let some = space.len().min(1);
        self.0.read(&mut space[..some])
    }
}

/// Writes numbers in the byte order of a file.
#[derive(Clone, Copy)]
struct Order {
    big_endian: bool,
}

impl Order {
    fn u16(self, number: u16) -> Vec<u8> {
        self.of(&number.to_be_bytes())
    }

    fn u32(self, number: u32) -> Vec<u8> {
        self.of(&number.to_be_bytes())
    }

    fn of(self, big_endian: &[u8]) -> Vec<u8> {
        let mut bytes = big_endian.to_vec();
        if !self.big_endian {
            bytes.reverse();
        }
        bytes
    }
}

const ORDERS: [Order; 2] = [Order { big_endian: false }, Order { big_endian: true }];

fn length(bytes: &[u8]) -> u32 {
    bytes.len().try_into().unwrap()
}

fn pcap(order: Order, magic: u32, link: u32, frames: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
    let mut file = [order.u32(magic), order.u16(2), order.u16(4)].concat();
    for word in [0, 0, 65535, link] {
        file.extend(order.u32(word));
    }
    for (seconds, fraction, wire_length, bytes) in frames {
        for word in [*seconds, *fraction, length(bytes), *wire_length] {
            file.extend(order.u32(word));
        }
        file.extend(*bytes);
    }
    file
}

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut padded = body.to_vec();
    padded.resize(body.len().next_multiple_of(4), 0);
    let length = order.u32(length(&padded) + 12);
    [order.u32(kind), length.clone(), padded, length].concat()
}

fn section(order: Order) -> Vec<u8> {
    let magic = [
        order.u32(0x1a2b_3c4d),
        order.u16(1),
        order.u16(0),
        vec![0xff; 8],
    ];
    block(order, 0x0a0d_0d0a, &magic.concat())
}

fn interface(order: Order, link: u16, resolution: Option<u8>, offset: Option<i64>) -> Vec<u8> {
    let mut body = [order.u16(link), order.u16(0), order.u32(0)].concat();
    if let Some(resolution) = resolution {
        body.extend([order.u16(9), order.u16(1), vec![resolution, 0, 0, 0]].concat());
    }
    if let Some(offset) = offset {
        body.extend([order.u16(14), order.u16(8), order.of(&offset.to_be_bytes())].concat());
    }
    body.extend([order.u16(0), order.u16(0)].concat());
    block(order, 1, &body)
}

fn packet(order: Order, interface: u32, ticks: u64, wire_length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut time = order.of(&ticks.to_be_bytes());
    if !order.big_endian {
        // The upper half comes first in either order.
        time.rotate_left(4);
    }
    let lengths = [order.u32(length(bytes)), order.u32(wire_length)].concat();
    let body = [order.u32(interface), time, lengths, bytes.to_vec()];
    block(order, 6, &body.concat())
}

type Seen = (i64, LinkType, u32, Vec<u8>);

/// All frames up to the end or the first fault.
fn frames(source: impl Read) -> (Vec<Seen>, Result<u64, PcapFileError>) {
    let mut seen = Vec::new();
    let mut file = match PcapFile::new(source) {
        Ok(file) => file,
        Err(error) => return (seen, Err(error)),
    };
    loop {
        match file.next_frame() {
            Ok(Some(frame)) => seen.push((
                frame.time_ns,
                frame.link,
                frame.wire_length,
                frame.bytes.to_vec(),
            )),
            Ok(None) => return (seen, Ok(file.skipped())),
            Err(error) => return (seen, Err(error)),
        }
    }
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    let body: [(u32, u32, u32, &[u8]); 2] =
        [(1_700_000_000, 999_999, 9, b"one"), (3, 7, 3, b"two")];
    for order in ORDERS {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let file = pcap(order, magic, 113, &body);
            let expected = vec![
                (
                    1_700_000_000_000_000_000 + 999_999 * unit,
                    LinkType::LinuxSll,
                    9,
                    b"one".to_vec(),
                ),
                (
                    3_000_000_000 + 7 * unit,
                    LinkType::LinuxSll,
                    3,
                    b"two".to_vec(),
                ),
            ];
            let (seen, end) = frames(Cursor::new(&file));
            assert_eq!((seen, end.unwrap()), (expected.clone(), 0));
            assert_eq!(frames(Trickle(&file)).0, expected);
            let mut reader = PcapFile::new(&file[..]).unwrap();
            reader.next_frame().unwrap();
            assert_eq!(reader.resolution_ns(), unit);
        }
    }
}

#[test]
fn pcapng_in_both_byte_orders() {
    for order in ORDERS {
        let file = [
            section(order),
            interface(order, 1, None, None),
            interface(order, 276, Some(9), Some(1_000_000)),
            packet(order, 0, 1_700_000_000_000_001, 60, b"micro"),
            block(order, 0xbad, b"a block of no known type"),
            packet(order, 1, 5, 1500, b"nano"),
            section(order),
            interface(order, 101, Some(0x80 | 10), None),
            packet(order, 0, 1024 * 7 + 512, 4, b"half"),
        ]
        .concat();
        let expected = vec![
            (
                1_700_000_000_000_001_000,
                LinkType::Ethernet,
                60,
                b"micro".to_vec(),
            ),
            (
                1_000_000_000_000_005,
                LinkType::LinuxSll2,
                1500,
                b"nano".to_vec(),
            ),
            (7_500_000_000, LinkType::RawIp, 4, b"half".to_vec()),
        ];
        let (seen, end) = frames(Trickle(&file));
        assert_eq!((seen, end.unwrap()), (expected, 0));
        let mut reader = PcapFile::new(&file[..]).unwrap();
        while reader.next_frame().unwrap().is_some() {}
        assert_eq!(reader.resolution_ns(), 976_562, "1/1024 s is the coarsest");
    }
}

#[test]
fn frames_without_a_usable_time_are_counted_and_left_out() {
    let order = ORDERS[0];
    let file = [
        section(order),
        interface(order, 1, Some(200), None),
        interface(order, 1, None, Some(i64::MAX)),
        interface(order, 1, Some(0), None),
        block(order, 3, &[order.u32(4), b"time".to_vec()].concat()),
        packet(order, 1, 1, 4, b"late"),
        packet(order, 2, u64::MAX, 4, b"last"),
        packet(order, 2, 1, 4, b"good"),
    ]
    .concat();
    let (seen, end) = frames(&file[..]);
    assert_eq!(
        seen,
        [(1_000_000_000, LinkType::Ethernet, 4, b"good".to_vec())]
    );
    assert_eq!(end.unwrap(), 3);
}

#[test]
fn faults_say_where_they_are() {
    for not_a_capture in [
        &b""[..],
        b"x",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        &[0xd4, 0xc3, 0xb2],
    ] {
        let error = frames(not_a_capture).1.unwrap_err();
        assert!(matches!(error, PcapFileError::NotACapture), "{error}");
    }
    let order = ORDERS[0];
    let good = pcap(order, 0xa1b2_c3d4, 1, &[(1, 2, 3, b"abc")]);
    for cut in 25..good.len() {
        let (seen, end) = frames(&good[..cut]);
        assert_eq!(seen, []);
        assert!(
            matches!(end, Err(PcapFileError::CutOff { at: 24 })),
            "{cut}"
        );
    }
    let mut huge = pcap(
        order,
        0xa1b2_c3d4,
        1,
        &[(1, 2, 3, b"abc"), (1, 2, 3, b"abc")],
    );
    huge[24 + 19 + 8..][..4].copy_from_slice(&[0xff; 4]);
    let (seen, end) = frames(&huge[..]);
    assert_eq!(seen.len(), 1);
    assert!(matches!(end, Err(PcapFileError::TooLong { at: 43 })));

    let head = [section(order), interface(order, 1, None, None)].concat();
    let at = head.len() as u64;
    let mut beyond = packet(order, 0, 1, 4, b"data");
    beyond[20] = 200;
    let nowhere = packet(order, 5, 1, 4, b"data");
    let short = [order.u32(6), order.u32(4), vec![0; 40]].concat();
    for bad in [beyond, nowhere, short] {
        let file = [head.clone(), bad, packet(order, 0, 1, 4, b"data")].concat();
        let end = frames(&file[..]).1;
        assert!(
            matches!(end, Err(PcapFileError::Malformed { at: found }) if found == at),
            "{end:?}"
        );
    }
}

#[test]
fn what_the_operating_system_says_is_kept() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is on fire"))
        }
    }
    let file = pcap(ORDERS[0], 0xa1b2_c3d4, 1, &[(1, 2, 3, b"abc")]);
    let (seen, end) = frames(file.chain(Broken));
    assert_eq!(seen.len(), 1);
    match end {
        Err(PcapFileError::Read { at: 43, source }) => {
            assert_eq!(source.to_string(), "the disk is on fire");
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn garbage_ends_without_panic(
        start in prop_oneof![
            Just(vec![]),
            Just(0xa1b2_c3d4_u32.to_le_bytes().to_vec()),
            Just(0xa1b2_cd34_u32.to_le_bytes().to_vec()),
            Just(section(ORDERS[0])),
        ],
        rest in vec(any::<u8>(), 0..400),
    ) {
        let (seen, _) = frames(&[start, rest].concat()[..]);
        prop_assert!(seen.len() <= 400 / 16);
    }

    #[test]
    fn a_damaged_file_ends_without_panic(
        big_endian in any::<bool>(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let order = Order { big_endian };
        let mut file = [
            section(order),
            interface(order, 1, Some(9), Some(5)),
            packet(order, 0, 77, 60, b"some bytes"),
            packet(order, 0, 78, 60, b"more"),
        ]
        .concat();
        for (place, byte) in damage {
            let at = place.index(file.len());
            file[at] = byte;
        }
        let (seen, _) = frames(&file[..]);
        prop_assert!(seen.len() <= 2);
    }
}
