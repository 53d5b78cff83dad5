use super::*;

/// Feeds pieces, each at the time given with it.
fn requests(pieces: &[(i64, &[u8])]) -> Vec<Passed<i64>> {
    let mut log = RequestLog::new();
    let mut all = Vec::new();
    for (time, bytes) in pieces {
        log.feed(bytes, |_| *time, |passed, _| all.push(passed));
    }
    all
}

#[test]
fn the_first_byte_keeps_the_time_of_its_own_piece() {
    let passed = requests(&[
        (10, b"POST / HTTP/1.1\r\n"),
        (20, b"Content-Length: 4\r\n"),
        (30, b"\r\nab"),
        (40, b"cd"),
    ]);
    let [
        Passed::Head { message, .. },
        Passed::End { index, end, last },
    ] = passed[..]
    else {
        panic!("{passed:?}");
    };
    assert_eq!((message.first, message.head), (10, 30));
    assert_eq!((index, end, last), (0, 42, 40));
}

#[test]
fn pipelined_messages_do_not_share_their_first_byte() {
    let passed = requests(&[
        (10, b"GET /1 HTTP/1.1\r\n\r\nGET /2 "),
        (20, b"HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n"),
    ]);
    let firsts: Vec<i64> = passed
        .iter()
        .filter_map(|passed| match passed {
            Passed::Head { message, .. } => Some(message.first),
            _ => None,
        })
        .collect();
    assert_eq!(firsts, [10, 10, 20]);
}

#[test]
fn line_ends_between_requests_belong_to_none() {
    let passed = requests(&[(10, b"\r\n"), (20, b"GET / HTTP/1.1\r\n\r\n")]);
    let Passed::Head { message, .. } = passed[0] else {
        panic!("{passed:?}");
    };
    assert_eq!((message.start, message.first), (2, 20));
}

#[test]
fn a_response_until_close_ends_with_its_last_byte() {
    let mut log = ResponseLog::new();
    log.expect_response_to("GET");
    let mut all = Vec::new();
    for (time, bytes) in [
        (10, &b"HTTP/1.1 100 Continue\r\n\r\n"[..]),
        (20, b"HTTP/1.1 200 OK\r\n\r\nab"),
        (30, b"cd"),
    ] {
        log.feed(bytes, |_| time, time, |passed, _| all.push(passed));
    }
    assert!(!log.between_messages());
    log.end_of_stream(|passed| all.push(passed));
    assert!(matches!(all[0], Passed::Interim { status: 100, .. }));
    assert!(matches!(all[1], Passed::Head { status: 200, .. }));
    assert!(matches!(
        all[2],
        Passed::End {
            end: 48,
            last: 30,
            ..
        }
    ));
    assert!(log.between_messages());
}
