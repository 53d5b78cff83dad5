//! Frame boundaries do not depend on how the stream was cut into reads, and follow one another.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skewtap_capture::http2_boundary::{Frame, FrameBoundaries, FrameBoundary};

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (cut, from_client, stream) = input;
    let pieces = usize::from(cut) + 1;
    assert_eq!(
        frames(from_client, stream, stream.len().max(1)),
        frames(from_client, stream, pieces)
    );
});

fn frames(from_client: bool, stream: &[u8], piece: usize) -> Vec<Frame> {
    let mut scanner = if from_client {
        FrameBoundaries::of_client()
    } else {
        FrameBoundaries::of_server()
    };
    let (mut found, mut open) = (Vec::new(), None);
    for bytes in stream.chunks(piece) {
        scanner.feed(bytes, |boundary| match boundary {
            FrameBoundary::Header(frame) => {
                assert_eq!(open.replace(frame), None);
                let before = found.last().map(|frame: &Frame| frame.end);
                assert!(before.is_none_or(|end| end == frame.start));
            }
            FrameBoundary::End(frame) => {
                assert_eq!(open.take(), Some(frame));
                assert!(frame.start + 9 <= frame.end);
                found.push(frame);
            }
        });
    }
    assert_eq!(scanner.offset(), stream.len() as u64);
    found
}
