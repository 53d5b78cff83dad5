use proptest::prelude::*;

use super::*;

/// A frame as it is sent.
fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
    let length = u32::try_from(payload).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.resize(HEADER_LENGTH + payload, 7);
    bytes
}

fn found(scanner: &mut FrameBoundaries, stream: &[u8], piece: usize) -> Vec<FrameBoundary> {
    let mut found = Vec::new();
    for bytes in stream.chunks(piece) {
        scanner.feed(bytes, |boundary| found.push(boundary));
    }
    found
}

#[test]
fn frames_are_found_where_they_lie_however_they_are_cut() {
    let mut stream = PREFACE.to_vec();
    stream.extend(frame(0x4, 0, 0, 6));
    stream.extend(frame(0x1, END_HEADERS, 1, 20));
    stream.extend(frame(0x0, END_STREAM, 1, 0));
    stream.extend(frame(0x1, END_STREAM, 0x8000_0003, 4));
    stream.extend(frame(0x9, END_HEADERS, 3, 5));
    stream.extend(frame(0x3, 0xff, 3, 4));
    let expected = [
        (FrameKind::Other, 0, 24, 39, false, false),
        (FrameKind::Headers, 1, 39, 68, false, true),
        (FrameKind::Data, 1, 68, 77, true, false),
        (FrameKind::Headers, 3, 77, 90, true, false),
        (FrameKind::Continuation, 3, 90, 104, false, true),
        (FrameKind::Reset, 3, 104, 117, false, false),
    ];
    for piece in 1..=stream.len() {
        let mut scanner = FrameBoundaries::of_client();
        let found = found(&mut scanner, &stream, piece);
        assert_eq!(found.len(), 2 * expected.len(), "in pieces of {piece}");
        for (pair, expected) in found.chunks(2).zip(expected) {
            let (kind, stream, start, end, ends_stream, ends_block) = expected;
            let frame = Frame {
                kind,
                stream,
                start,
                end,
                ends_stream,
                ends_block,
            };
            let wanted = [FrameBoundary::Header(frame), FrameBoundary::End(frame)];
            assert_eq!(pair, wanted, "in pieces of {piece}");
        }
        assert_eq!(scanner.offset(), stream.len() as u64);
        assert_eq!(scanner.open_header(), None);
    }
}

#[test]
fn a_header_that_has_begun_is_known() {
    let mut scanner = FrameBoundaries::of_server();
    assert_eq!(scanner.open_header(), None);
    let stream = frame(0x4, 0, 0, 0);
    assert!(found(&mut scanner, &stream[..4], 4).is_empty());
    assert_eq!(scanner.open_header(), Some(0));
    assert_eq!(found(&mut scanner, &stream[4..], 1).len(), 2);
    assert_eq!(scanner.open_header(), None);
}

#[test]
fn what_is_no_preface_gives_no_frames() {
    let mut scanner = FrameBoundaries::of_client();
    let stream = b"PRI * HTTP/1.1\r\nHost: a\r\n\r\n and what follows";
    assert!(found(&mut scanner, stream, 5).is_empty());
    assert!(scanner.is_lost());
    assert_eq!(scanner.offset(), stream.len() as u64);
}

#[test]
fn padding_counts_as_payload_and_flags_only_where_they_mean_something() {
    let mut scanner = FrameBoundaries::of_server();
    // A ping whose acknowledgement has the same bit as the end of a stream.
    let ping = found(&mut scanner, &frame(0x6, END_STREAM | END_HEADERS, 0, 8), 3);
    assert!(matches!(
        ping[0],
        FrameBoundary::Header(frame) if !frame.ends_stream && !frame.ends_block && !frame.is_message()
    ));
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_frames_in_any_pieces(
        stream in proptest::collection::vec(any::<u8>(), 0..200),
        piece in 1_usize..40,
        from_client in any::<bool>(),
    ) {
        let new = if from_client { FrameBoundaries::of_client } else { FrameBoundaries::of_server };
        let mut stream = stream;
        // Short frames, so that there are some.
        for at in (0..stream.len()).step_by(11) {
            stream[at] = 0;
        }
        let whole = found(&mut new(), &stream, stream.len().max(1));
        prop_assert_eq!(found(&mut new(), &stream, piece), whole);
    }

    #[test]
    fn frames_follow_one_another_without_a_gap(
        sizes in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u32>(), 0_usize..50), 0..20),
        piece in 1_usize..40,
    ) {
        let stream: Vec<u8> = sizes
            .iter()
            .flat_map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, *payload))
            .collect();
        let mut scanner = FrameBoundaries::of_server();
        let mut at = 0;
        let mut ends = 0;
        for boundary in found(&mut scanner, &stream, piece) {
            match boundary {
                FrameBoundary::Header(frame) => prop_assert_eq!(frame.start, at),
                FrameBoundary::End(frame) => {
                    at = frame.end;
                    ends += 1;
                }
            }
        }
        prop_assert_eq!((at, ends), (stream.len() as u64, sizes.len()));
    }
}
