use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A boundary without borrowed parts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Request(u64, u64, u64, String, bool),
    Interim(u64, u64, u64, u16),
    Response(u64, u64, u64, u16),
    End(u64, u64),
}

fn requests(pieces: &[&[u8]]) -> (Vec<Seen>, Tracking) {
    let mut scanner = RequestBoundaries::new();
    let mut seen = Vec::new();
    for piece in pieces {
        scanner.feed(piece, |boundary| seen.push(of_request(boundary)));
    }
    (seen, scanner.tracking())
}

fn of_request(boundary: RequestBoundary<'_>) -> Seen {
    match boundary {
        RequestBoundary::Head(head) => {
            assert_eq!(head.bytes.len() as u64, head.head_end - head.start);
            Seen::Request(
                head.index,
                head.start,
                head.head_end,
                head.method.to_owned(),
                head.expects_continue,
            )
        }
        RequestBoundary::End { index, end } => Seen::End(index, end),
    }
}

fn of_response(boundary: ResponseBoundary<'_>) -> Seen {
    match boundary {
        ResponseBoundary::Interim(h) => Seen::Interim(h.index, h.start, h.head_end, h.status),
        ResponseBoundary::Head(h) => Seen::Response(h.index, h.start, h.head_end, h.status),
        ResponseBoundary::End { index, end } => Seen::End(index, end),
    }
}

/// Feeds responses to `methods`, then ends the stream.
fn responses(methods: &[&str], pieces: &[&[u8]]) -> (Vec<Seen>, Tracking) {
    let mut scanner = ResponseBoundaries::new();
    let mut seen = Vec::new();
    for method in methods {
        scanner.expect_response_to(method);
    }
    for piece in pieces {
        scanner.feed(piece, |boundary| seen.push(of_response(boundary)));
    }
    scanner.end_of_stream(|boundary| seen.push(of_response(boundary)));
    (seen, scanner.tracking())
}

fn lost(tracking: Tracking) -> LostTrack {
    match tracking {
        Tracking::Lost { why, .. } => why,
        other => panic!("expected to lose track, but {other:?}"),
    }
}

#[test]
fn pipelined_requests_are_told_apart() {
    let first = b"POST /a HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\nGET /";
    let second = b"\r\nGET / HTTP/1.1\r\nhost: h\r\n\r\n";
    let (seen, tracking) = requests(&[first, second]);
    let head = first.len() as u64 - 5;
    let next = first.len() as u64 + 2;
    let end = first.len() as u64 + second.len() as u64;
    assert_eq!(
        seen,
        [
            Seen::Request(0, 0, head, "POST".into(), true),
            Seen::End(0, head + 5),
            Seen::Request(1, next, end, "GET".into(), false),
            Seen::End(1, end),
        ]
    );
    assert_eq!(tracking, Tracking::Following);
}

#[test]
fn an_expectation_of_http_1_0_is_none() {
    let head = b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n";
    let (seen, _) = requests(&[head]);
    assert_eq!(
        seen.first(),
        Some(&Seen::Request(0, 0, 60, "POST".into(), false))
    );
}

#[test]
fn interim_responses_are_not_the_final_one() {
    let stream = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let (seen, tracking) = responses(&["POST"], &[stream]);
    assert_eq!(
        seen,
        [
            Seen::Interim(0, 0, 25, 100),
            Seen::Interim(0, 25, 62, 103),
            Seen::Response(0, 62, 100, 200),
            Seen::End(0, 102),
        ]
    );
    assert_eq!(tracking, Tracking::Following);
}

#[test]
fn a_response_ends_where_its_request_and_status_say() {
    let stream = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n\
        HTTP/1.1 304 Not Modified\r\nContent-Length: 9000\r\n\r\n\
        HTTP/1.1 204 No Content\r\n\r\n\
        HTTP/1.1 200 OK\r\n\r\nuntil the end";
    let (seen, tracking) = responses(&["HEAD", "GET", "DELETE", "GET"], &[stream]);
    assert_eq!(
        seen,
        [
            Seen::Response(0, 0, 41, 200),
            Seen::End(0, 41),
            Seen::Response(1, 41, 92, 304),
            Seen::End(1, 92),
            Seen::Response(2, 92, 119, 204),
            Seen::End(2, 119),
            Seen::Response(3, 119, 138, 200),
            Seen::End(3, 151),
        ]
    );
    assert_eq!(tracking, Tracking::Following);
}

#[test]
fn a_switch_of_protocols_ends_the_scan() {
    let (seen, tracking) = responses(
        &["GET"],
        &[b"HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x00HTTP/1.1 200 OK\r\n\r\n"],
    );
    assert_eq!(seen, [Seen::Response(0, 0, 36, 101), Seen::End(0, 36)]);
    assert_eq!(tracking, Tracking::LeftHttp { at: 36 });
    let (seen, tracking) = responses(&["CONNECT"], &[b"HTTP/1.1 200 OK\r\n\r\nanything"]);
    assert_eq!(seen, [Seen::Response(0, 0, 19, 200), Seen::End(0, 19)]);
    assert_eq!(tracking, Tracking::LeftHttp { at: 19 });
    let (seen, tracking) = responses(
        &["CONNECT", "GET"],
        &[b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\nHTTP/1.1 204 x\r\n\r\n"],
    );
    assert_eq!(
        seen.len(),
        4,
        "a refused CONNECT leaves the stream as it is"
    );
    assert_eq!(tracking, Tracking::Following);

    let mut scanner = RequestBoundaries::new();
    let mut seen = Vec::new();
    scanner.feed(b"CONNECT h:1 HTTP/1.1\r\n\r\n", |b| {
        seen.push(of_request(b))
    });
    scanner.leave_http();
    scanner.feed(b"GET / HTTP/1.1\r\n\r\n", |b| seen.push(of_request(b)));
    assert_eq!(seen.len(), 2);
    assert_eq!(scanner.tracking(), Tracking::LeftHttp { at: 24 });
}

#[test]
fn ambiguous_lengths_are_never_guessed() {
    let why = |fields: &str| {
        let head = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n");
        lost(requests(&[head.as_bytes()]).1)
    };
    assert_eq!(why("Content-Length: 5, 6"), LostTrack::ContentLength);
    assert_eq!(
        why("Content-Length: 5\r\nContent-Length: 6"),
        LostTrack::ContentLength
    );
    assert_eq!(why("Content-Length: +5"), LostTrack::ContentLength);
    assert_eq!(why("Content-Length:"), LostTrack::ContentLength);
    assert_eq!(
        why("Content-Length: 18446744073709551615"),
        LostTrack::ContentLength
    );
    assert_eq!(
        why("Content-Length: 99999999999999999999"),
        LostTrack::ContentLength
    );
    assert_eq!(why("Transfer-Encoding: gzip"), LostTrack::TransferEncoding);
    assert_eq!(
        why("Transfer-Encoding: chunked, gzip"),
        LostTrack::TransferEncoding
    );
    assert_eq!(why("Transfer-Encoding:"), LostTrack::TransferEncoding);
}

#[test]
fn agreeing_lengths_and_split_codings_are_understood() {
    let bodies: [(&str, &str); 4] = [
        ("Content-Length: 3, 3", "abc"),
        ("Content-Length: 3\r\nContent-Length: 3", "abc"),
        ("Transfer-Encoding: gzip, Chunked", "0\r\n\r\n"),
        (
            "Content-Length: 99\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            "0\r\n\r\n",
        ),
    ];
    for (fields, body) in bodies {
        let message = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n{body}");
        let (seen, tracking) = requests(&[message.as_bytes()]);
        assert_eq!(seen.last(), Some(&Seen::End(0, message.len() as u64)));
        assert_eq!(tracking, Tracking::Following);
    }
}

#[test]
fn what_is_not_http_loses_the_track() {
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\n\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"\rGET / HTTP/1.1\r\n\r\n",
        b"GET /\r\n\r\n",
    ] {
        let (seen, tracking) = requests(&[bytes, b"GET / HTTP/1.1\r\n\r\n"]);
        assert_eq!(seen, []);
        assert!(matches!(lost(tracking), LostTrack::Head(_)));
    }
    assert_eq!(
        lost(responses(&["GET"], &[b"HTTP/1.1 099 x\r\n\r\n"]).1),
        LostTrack::Status
    );
    assert_eq!(
        lost(responses(&[], &[b"HTTP/1.1 408 x\r\nConnection: close\r\n\r\n"]).1),
        LostTrack::Unasked
    );
}

#[test]
fn malformed_chunks_lose_the_track() {
    for body in [
        "g\r\n",
        "\r\n",
        ";x\r\n",
        "1 2\r\nab\r\n",
        "1\rx",
        "1\n",
        "1;x\ny",
        "1\r\nab\r\n",
        "1\r\na\rb",
        "10000000000000000\r\n",
        "0\r\n\rx",
    ] {
        let message = format!("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        let (seen, tracking) = requests(&[message.as_bytes()]);
        assert_eq!(seen.len(), 1, "{body:?}");
        assert_eq!(lost(tracking), LostTrack::Chunk, "{body:?}");
    }
}

#[test]
fn an_endless_head_is_given_up() {
    let mut scanner = RequestBoundaries::new();
    let line = b"GET / HTTP/1.1\r\nx: yyyyyyyyyyyyyyyy";
    let mut fed = 0_u64;
    for _ in 0..100_000 {
        scanner.feed(line, |boundary| panic!("{boundary:?}"));
        fed += line.len() as u64;
    }
    assert_eq!(lost(scanner.tracking()), LostTrack::HeadTooLong);
    assert_eq!(scanner.offset(), fed);
    let whole = [
        &b"GET / HTTP/1.1\r\nx: "[..],
        &vec![b'y'; HEAD_CAP],
        b"\r\n\r\n",
    ]
    .concat();
    assert_eq!(lost(requests(&[&whole]).1), LostTrack::HeadTooLong);
}

#[test]
fn too_many_outstanding_requests_lose_the_track() {
    let mut scanner = ResponseBoundaries::new();
    for _ in 0..OUTSTANDING_CAP {
        scanner.expect_response_to("GET");
    }
    assert_eq!(scanner.tracking(), Tracking::Following);
    scanner.expect_response_to("GET");
    assert_eq!(lost(scanner.tracking()), LostTrack::TooManyOutstanding);
}

#[test]
fn a_stream_that_ends_inside_a_message_is_cut_short() {
    for bytes in [
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
    ] {
        let (_, tracking) = responses(&["GET"], &[bytes.as_bytes()]);
        assert_eq!(lost(tracking), LostTrack::CutShort);
    }
}

/// A message's bytes with what a scanner must see of it, offsets counted from its own start.
#[derive(Clone, Debug)]
struct Made {
    method: &'static str,
    blank_lines: usize,
    interim: Vec<String>,
    head: String,
    status: u16,
    body: Vec<u8>,
}

fn fields() -> impl Strategy<Value = String> {
    vec("[a-z]{1,9}: ?[ -~]{0,40}\r\n", 0..6)
        .prop_map(|lines| lines.into_iter().map(|line| format!("x-{line}")).collect())
}

/// A body and the header field that frames it.
fn body() -> impl Strategy<Value = (String, Vec<u8>)> {
    let counted = vec(any::<u8>(), 0..300)
        .prop_map(|body| (format!("Content-Length: {}\r\n", body.len()), body));
    let chunk = (
        vec(any::<u8>(), 1..60),
        "(; ?[a-z]{1,4}(=[a-z0-9]{1,4})?)?",
        "0{0,3}",
    );
    let chunked = (vec(chunk, 0..6), fields()).prop_map(|(chunks, trailers)| {
        let mut body = Vec::new();
        for (data, extension, zeros) in chunks {
            body.extend(format!("{zeros}{:X}{extension}\r\n", data.len()).bytes());
            body.extend(data);
            body.extend(b"\r\n");
        }
        body.extend(format!("0\r\n{trailers}\r\n").bytes());
        ("Transfer-Encoding: chunked\r\n".to_owned(), body)
    });
    prop_oneof![counted, chunked]
}

fn message() -> impl Strategy<Value = Made> {
    let start = (
        prop_oneof![Just("GET"), Just("HEAD"), Just("POST"), Just("CONNECT")],
        prop_oneof![Just(200_u16), Just(204), Just(304), Just(404)],
        0..3_usize,
        vec(prop_oneof![Just("100 Continue"), Just("102 Busy")], 0..3),
    );
    (start, fields(), fields(), body()).prop_map(|(start, before, after, (framing, body))| {
        let (method, status, blank_lines, interim) = start;
        Made {
            method,
            blank_lines,
            interim: interim
                .iter()
                .map(|s| format!("HTTP/1.1 {s}\r\n{before}\r\n"))
                .collect(),
            head: format!("{before}{framing}{after}\r\n"),
            status: if method == "CONNECT" { 403 } else { status },
            body,
        }
    })
}

/// A stream of requests and what must be seen in it.
fn request_stream(messages: &[Made]) -> (Vec<u8>, Vec<Seen>) {
    let (mut stream, mut seen) = (Vec::new(), Vec::new());
    for (index, made) in (0..).zip(messages) {
        stream.extend(b"\r\n".repeat(made.blank_lines));
        let start = stream.len() as u64;
        stream.extend(format!("{} /path HTTP/1.1\r\n{}", made.method, made.head).bytes());
        let head_end = stream.len() as u64;
        seen.push(Seen::Request(
            index,
            start,
            head_end,
            made.method.into(),
            false,
        ));
        stream.extend(&made.body);
        seen.push(Seen::End(index, stream.len() as u64));
    }
    (stream, seen)
}

/// A stream of responses and what must be seen in it.
fn response_stream(messages: &[Made]) -> (Vec<u8>, Vec<Seen>) {
    let (mut stream, mut seen) = (Vec::new(), Vec::new());
    for (index, made) in (0..).zip(messages) {
        for interim in &made.interim {
            let start = stream.len() as u64;
            stream.extend(interim.bytes());
            let status = interim[9..12].parse().unwrap();
            seen.push(Seen::Interim(index, start, stream.len() as u64, status));
        }
        let start = stream.len() as u64;
        stream.extend(format!("HTTP/1.1 {} Reason\r\n{}", made.status, made.head).bytes());
        let head_end = stream.len() as u64;
        seen.push(Seen::Response(index, start, head_end, made.status));
        if made.method != "HEAD" && !matches!(made.status, 204 | 304) {
            stream.extend(&made.body);
        }
        seen.push(Seen::End(index, stream.len() as u64));
    }
    (stream, seen)
}

/// Cuts `stream` at the given places, which may lie anywhere.
fn cut<'a>(stream: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = places
        .iter()
        .map(|place| place.index(stream.len() + 1))
        .collect();
    at.extend([0, stream.len()]);
    at.sort_unstable();
    at.windows(2)
        .map(|pair| &stream[pair[0]..pair[1]])
        .collect()
}

proptest! {
    #[test]
    fn no_split_moves_a_request(
        messages in vec(message(), 1..6),
        places in vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let (stream, expected) = request_stream(&messages);
        let (seen, tracking) = requests(&cut(&stream, &places));
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(tracking, Tracking::Following);
    }

    #[test]
    fn no_split_moves_a_response(
        messages in vec(message(), 1..6),
        places in vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let (stream, expected) = response_stream(&messages);
        let methods: Vec<_> = messages.iter().map(|made| made.method).collect();
        let (seen, tracking) = responses(&methods, &cut(&stream, &places));
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(tracking, Tracking::Following);
    }

    #[test]
    fn one_byte_at_a_time_is_a_split_too(messages in vec(message(), 1..3)) {
        let (stream, expected) = request_stream(&messages);
        let bytes: Vec<_> = stream.chunks(1).collect();
        prop_assert_eq!(requests(&bytes).0, expected);
    }

    #[test]
    fn damage_is_seen_alike_however_it_is_split(
        messages in vec(message(), 1..4),
        places in vec(any::<prop::sample::Index>(), 0..20),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (mut stream, _) = response_stream(&messages);
        for (place, byte) in damage {
            let at = place.index(stream.len());
            stream[at] = byte;
        }
        let methods: Vec<_> = messages.iter().map(|made| made.method).collect();
        let whole = responses(&methods, &[&stream]);
        prop_assert_eq!(responses(&methods, &cut(&stream, &places)), whole);
    }
}
