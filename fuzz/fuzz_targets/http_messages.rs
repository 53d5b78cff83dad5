//! Message boundaries do not depend on how the stream was cut into reads, and stay in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skewtap_capture::http_boundary::{
    RequestBoundaries, RequestBoundary, ResponseBoundaries, ResponseBoundary,
};

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, stream) = input;
    let pieces = usize::from(cut) + 1;
    assert_eq!(requests(stream, stream.len().max(1)), requests(stream, pieces));
    assert_eq!(responses(stream, stream.len().max(1)), responses(stream, pieces));
});

fn requests(stream: &[u8], piece: usize) -> Vec<(u64, u64)> {
    let mut boundaries = RequestBoundaries::new();
    let mut found = Vec::new();
    for bytes in stream.chunks(piece) {
        boundaries.feed(bytes, |boundary| match boundary {
            RequestBoundary::Head(head) => {
                assert!(head.start < head.head_end);
                found.push((head.start, head.head_end));
            }
            RequestBoundary::End { index, end } => found.push((index, end)),
        });
    }
    boundaries.end_of_stream();
    found
}

fn responses(stream: &[u8], piece: usize) -> Vec<(u64, u64)> {
    let mut boundaries = ResponseBoundaries::new();
    for method in ["GET", "HEAD", "POST", "CONNECT", "GET", "GET"] {
        boundaries.expect_response_to(method);
    }
    let mut found = Vec::new();
    let mut note = |boundary: ResponseBoundary<'_>| match boundary {
        ResponseBoundary::Interim(head) | ResponseBoundary::Head(head) => {
            assert!(head.start < head.head_end);
            found.push((head.start, head.head_end));
        }
        ResponseBoundary::End { index, end } => found.push((index, end)),
    };
    for bytes in stream.chunks(piece) {
        boundaries.feed(bytes, &mut note);
    }
    boundaries.end_of_stream(&mut note);
    found
}
