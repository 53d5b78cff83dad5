use super::*;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RESET: u8 = 0x3;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const WHOLE: u8 = END_STREAM | END_HEADERS;

fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
    let mut bytes = u32::try_from(payload).unwrap().to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.resize(9 + payload, 0);
    bytes
}

/// Feeds frames one by one; a byte's time is its offset.
fn feed(log: &mut StreamLog<u64>, frames: &[Vec<u8>]) -> Vec<StreamPassed<u64>> {
    let mut found = Vec::new();
    for bytes in frames {
        log.feed(bytes, |offset| offset, |passed| found.push(passed));
    }
    found
}

fn responses(expected: &[u32]) -> StreamLog<u64> {
    let mut log = StreamLog::of_responses();
    for stream in expected {
        log.expect(*stream);
    }
    log
}

#[test]
fn two_streams_that_take_turns_have_their_own_times_and_counts() {
    let mut log = responses(&[1, 3]);
    let passed = feed(
        &mut log,
        &[
            frame(HEADERS, END_HEADERS, 1, 11), // 0..20
            frame(HEADERS, END_HEADERS, 3, 1),  // 20..30
            frame(DATA, 0, 3, 91),              // 30..130
            frame(0x8, 0, 0, 4),                // 130..143, the connection's own
            frame(DATA, END_STREAM, 1, 8),      // 143..160
            frame(DATA, END_STREAM, 3, 1),      // 160..170
        ],
    );
    let end = |stream, end| StreamPassed::End {
        stream,
        end,
        last: end - 1,
    };
    assert_eq!(passed, [end(1, 160), end(3, 170)]);
    let one = log.get(1).unwrap().message(0).unwrap();
    assert_eq!((one.first, one.head, one.last), (0, 19, Some(159)));
    assert_eq!((one.start, one.head_end, one.end), (0, 20, Some(160)));
    let counts = |own, others| Some(Interleaved { own, others });
    assert_eq!(one.interleaved, counts(37, 110));
    let three = log.get(3).unwrap().message(0).unwrap();
    assert_eq!((three.first, three.last), (20, Some(169)));
    assert_eq!(three.interleaved, counts(120, 17));
}

#[test]
fn interim_responses_and_trailers_are_not_taken_for_the_head() {
    let mut log = responses(&[1]);
    feed(
        &mut log,
        &[
            frame(HEADERS, END_HEADERS, 1, 1),      // 0..10, 100
            frame(HEADERS, 0, 1, 1),                // 10..20
            frame(CONTINUATION, END_HEADERS, 1, 1), // 20..30, 200
            frame(DATA, 0, 1, 1),                   // 30..40
            frame(HEADERS, WHOLE, 1, 1),            // 40..50, trailers
        ],
    );
    let track = log.get(1).unwrap();
    let interim = track.interim(0).unwrap();
    assert_eq!((interim.start, interim.end), (0, Some(10)));
    let message = track.message(1).unwrap();
    assert_eq!((message.start, message.head_end), (10, 30));
    assert_eq!((message.last, message.end), (Some(49), Some(50)));
    assert_eq!(message.interleaved.unwrap().own, 40);
    assert_eq!(track.message(9), None);
}

#[test]
fn the_end_of_a_stream_that_its_head_announces_comes_with_the_whole_block() {
    let mut log = responses(&[1]);
    let passed = feed(&mut log, &[frame(HEADERS, END_STREAM, 1, 5)]);
    assert_eq!(passed, []);
    assert_eq!(log.get(1).unwrap().message(0), None);
    assert!(log.head_is_open());
    let passed = feed(&mut log, &[frame(CONTINUATION, END_HEADERS, 1, 3)]);
    assert_eq!(passed.len(), 1);
    assert!(!log.head_is_open());
    let message = log.get(1).unwrap().message(0).unwrap();
    assert_eq!((message.head, message.last), (25, Some(25)));
}

#[test]
fn a_frame_cut_anywhere_keeps_the_time_of_its_first_byte() {
    let bytes = frame(HEADERS, WHOLE, 1, 30);
    for cut in 1..bytes.len() {
        let mut log = responses(&[1]);
        let (one, two) = bytes.split_at(cut);
        // All bytes of a piece have the piece's time.
        log.feed(one, |_| 1, |_| panic!("at {cut}"));
        log.feed(two, |_| 2, |_| {});
        let message = log.get(1).unwrap().message(0).unwrap();
        assert_eq!((message.first, message.last), (1, Some(2)), "at {cut}");
    }
}

#[test]
fn a_client_opens_streams_by_itself_and_they_do_not_grow_without_bound() {
    let mut log = StreamLog::of_client();
    let mut bytes = skewtap_capture::http2_boundary::PREFACE.to_vec();
    for number in 0..6_000 {
        bytes.extend(frame(HEADERS, WHOLE, 2 * number + 1, 1));
    }
    let ended = feed(&mut log, &[bytes]).len();
    assert_eq!(ended, 6_000);
    assert!(log.get(1).is_none());
    assert!(log.get(11_999).unwrap().message(0).is_some());
    assert_eq!(log.take_lost(), 6_000 - STREAMS_CAP as u64);
    assert_eq!(log.take_lost(), 0);
    // An older stream's number opens nothing.
    feed(&mut log, &[frame(HEADERS, WHOLE, 1, 1)]);
    assert!(log.get(1).is_none());
}

#[test]
fn a_reset_is_told_also_of_streams_that_nobody_follows() {
    let mut log = responses(&[1]);
    let passed = feed(
        &mut log,
        &[
            frame(HEADERS, END_HEADERS, 1, 1),
            frame(RESET, 0, 1, 4),
            frame(RESET, 0, 7, 4),
        ],
    );
    let reset = |stream| StreamPassed::Reset { stream };
    assert_eq!(passed, [reset(1), reset(7)]);
    let track = log.get(1).unwrap();
    assert!(track.was_reset());
    assert_eq!(track.message(0).unwrap().last, None);
}

#[test]
fn what_need_not_be_kept_ends_where_the_oldest_stream_begins() {
    let mut log = responses(&[1, 3]);
    feed(
        &mut log,
        &[
            frame(HEADERS, END_HEADERS, 3, 1),
            frame(HEADERS, WHOLE, 1, 1),
            frame(DATA, END_STREAM, 3, 1),
        ],
    );
    assert_eq!(log.floor(), 0);
    log.forget(3);
    assert_eq!(log.floor(), 10);
    log.forget(1);
    assert_eq!(log.floor(), 30);
}
