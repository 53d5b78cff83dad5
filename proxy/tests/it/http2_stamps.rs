//! Each stream has its own stamps, whatever else goes over its connection.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use skewtap_core::clock::Source;
use skewtap_core::exchange::{ExchangeRecord, Outcome};
use skewtap_core::milestone::Milestone;
use skewtap_proxy::Config;
use skewtap_proxy::config::UpstreamHttp;

use crate::harness::{Running, assert_arrived, assert_within, config, now_ns, stamp, timed_write};
use crate::streams::{POST, client, frame, origin, preface, request, run, send, whole};

const PAUSE: Duration = Duration::from_millis(150);
const PAUSE_NS: i64 = 150_000_000;

/// By how much a busy machine may be late.
const SLACK_NS: i64 = 60_000_000;

/// Asserts that the time between two stamps is what was planted: not less than `least`, and not
/// much more. A byte that was read together with others is known by its latest.
#[track_caller]
fn assert_took(
    record: &ExchangeRecord,
    (from, to): (Milestone, Milestone),
    least: i64,
    planted: i64,
) {
    let best = |milestone| record.milestones.best(milestone).unwrap();
    let took = best(to).hi() - best(from).lo();
    let since_latest = best(to).hi() - best(from).hi();
    assert!(
        took >= least && since_latest <= planted + planted / 2 + SLACK_NS,
        "{}: {from} to {to} took {since_latest} to {took} ns, planted were {planted}",
        record.path
    );
}

/// Asserts the stamps of an exchange from `before` to `after`: the server waits that long, sends
/// its head, and waits once more in the body.
#[track_caller]
fn assert_planted(record: &ExchangeRecord, waited: i64, (before, after): (i64, i64)) {
    use Milestone as M;
    for ends in [
        (M::UpRequestLast, M::UpResponseFirst),
        (M::DownRequestFirst, M::DownResponseFirst),
    ] {
        assert_took(record, ends, waited, waited);
    }
    // Here a late first part makes it shorter.
    for ends in [
        (M::UpResponseFirst, M::UpResponseLast),
        (M::DownResponseFirst, M::DownResponseLast),
    ] {
        assert_took(record, ends, PAUSE_NS - SLACK_NS, PAUSE_NS);
    }
    for (milestone, source) in [
        (M::DownRequestFirst, Source::Kernel),
        (M::DownRequestLast, Source::Kernel),
        (M::UpRequestFirst, Source::WriteBracket),
        (M::UpResponseHead, Source::Kernel),
        (M::UpResponseLast, Source::Kernel),
        (M::DownResponseLast, Source::WriteBracket),
    ] {
        let stamp = stamp(record, milestone, source);
        assert_within(stamp, (before, after), milestone.name());
    }
}

#[test]
fn streams_with_planted_delays_have_their_own_stamps_on_both_legs() {
    for upstream_http in [UpstreamHttp::Auto, UpstreamHttp::Http1] {
        run(async move {
            let address = match upstream_http {
                UpstreamHttp::Http1 => delaying_messages(3),
                UpstreamHttp::Auto | UpstreamHttp::Http2 => delaying_streams().await,
            };
            let proxy = Running::start(Config {
                upstream_http,
                ..config(address)
            });
            let client = client(proxy.addresses.traffic).await;
            let mut under_way = Vec::new();
            for pauses in [0, 1, 2] {
                let mut client = client.clone().ready().await.unwrap();
                let before = now_ns();
                let asked = request("GET", &format!("/{pauses}"));
                let (response, _) = client.send_request(asked, true).unwrap();
                under_way.push(tokio::spawn(async move {
                    let mut body = response.await.unwrap().into_body();
                    assert_eq!(whole(&mut body).await.0, b"begin and end");
                    (pauses, before, now_ns())
                }));
            }
            let mut records = proxy.records(under_way.len());
            for stream in under_way {
                let (pauses, before, after) = stream.await.unwrap();
                let path = format!("/{pauses}");
                let at = records.iter().position(|record| record.path == path);
                let record = records.remove(at.unwrap());
                assert_planted(&record, pauses * PAUSE_NS, (before, after));
                assert_eq!(record.milestones.best(Milestone::ClientNextActivity), None);
            }
        });
    }
}

/// A server that waits as often as the path says, and once in the middle of each body.
async fn delaying_streams() -> std::net::SocketAddr {
    let serve = |request: http::Request<_>, mut respond: h2::server::SendResponse<Bytes>| async move {
        let pauses: u32 = request.uri().path()[1..].parse().unwrap();
        tokio::time::sleep(PAUSE * pauses).await;
        let mut out = respond.send_response(Response::new(()), false).unwrap();
        out.send_data(Bytes::from_static(b"begin "), false).unwrap();
        tokio::time::sleep(PAUSE).await;
        send(&mut out, b"and end", None).await;
    };
    origin(serve).await.address
}

/// The same of HTTP/1.
fn delaying_messages(connections: usize) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            std::thread::spawn(move || {
                let request = crate::wire::head(&mut stream);
                let path = request.split(' ').nth(1).unwrap();
                let pauses: u32 = path[1..].parse().unwrap();
                std::thread::sleep(PAUSE * pauses);
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nbegin ")
                    .unwrap();
                std::thread::sleep(PAUSE);
                stream.write_all(b"and end").unwrap();
                // Until the proxy closes.
                crate::wire::rest(&mut stream);
            });
        }
    });
    address
}

#[test]
fn frames_that_come_apart_are_stamped_apart_and_what_lies_between_is_counted() {
    run(async {
        let origin = origin(|request, mut respond| async move {
            whole(&mut request.into_body()).await;
            respond.send_response(Response::new(()), true).unwrap();
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let address = proxy.addresses.traffic;
        let sending = tokio::task::spawn_blocking(move || {
            let mut client = crate::harness::connect(address);
            client.write_all(&preface()).unwrap();
            let parts = [
                frame(0x1, 0x0, 1, &POST[..2]),
                frame(0x9, 0x4, 1, &POST[2..]),
                frame(0x0, 0x0, 1, b"12345"),
                // Another stream, whole: 15 and 109 bytes; and a ping of the connection.
                [
                    frame(0x1, 0x4, 3, POST),
                    frame(0x0, 0x1, 3, &[0; 100]),
                    frame(0x6, 0x0, 0, &[0; 8]),
                ]
                .concat(),
                frame(0x0, 0x1, 1, b"678"),
            ];
            parts.map(|part| {
                std::thread::sleep(PAUSE);
                let when = timed_write(&mut client, &part);
                std::thread::sleep(PAUSE / 4);
                (when, client.try_clone().unwrap())
            })
        });
        let sent = sending.await.unwrap().map(|(when, _open)| when);
        let records = proxy.records(2);
        let of = |id| {
            let on = |record: &&ExchangeRecord| record.down_stream.unwrap().id == id;
            records.iter().find(on).unwrap()
        };
        let (one, three) = (of(1), of(3));
        for (record, first, head, last) in [(one, 0, 1, 4), (three, 3, 3, 3)] {
            assert_eq!(record.outcome, Outcome::Complete);
            assert_arrived(record, Milestone::DownRequestFirst, sent[first]);
            assert_arrived(record, Milestone::DownRequestHead, sent[head]);
            assert_arrived(record, Milestone::DownRequestLast, sent[last]);
        }
        // Four headers of frames, the block and the body.
        assert_eq!(one.request_bytes, Some(4 * 9 + 6 + 8));
        assert_eq!(three.request_bytes, Some(2 * 9 + 6 + 100));
        assert_eq!(one.down_stream.unwrap().request_behind_bytes, Some(124));
        assert_eq!(three.down_stream.unwrap().request_behind_bytes, Some(0));
        // On its way to the server it is the same streams, and other frames.
        assert!(one.up_stream.unwrap().request_behind_bytes.unwrap() > 100);
        let leave = stamp(one, Milestone::UpRequestLast, Source::WriteBracket);
        assert_within(leave, (sent[4].0, now_ns()), "request leaves");
        assert!(leave.lo() >= sent[4].0);
    });
}

#[test]
fn a_response_that_waits_behind_another_says_behind_how_many_bytes() {
    const LONG: usize = 600_000;
    run(async {
        let origin = origin(|request, mut respond| async move {
            let mut out = respond.send_response(Response::new(()), false).unwrap();
            if request.uri().path() == "/long" {
                return send(&mut out, &vec![1; LONG], None).await;
            }
            out.send_data(Bytes::from_static(b"a"), false).unwrap();
            // Its end comes after all of the other.
            tokio::time::sleep(PAUSE * 3).await;
            send(&mut out, b"b", None).await;
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let client = client(proxy.addresses.traffic).await;
        let mut sender = client.clone().ready().await.unwrap();
        let (short, _) = sender.send_request(request("GET", "/short"), true).unwrap();
        let mut short = short.await.unwrap().into_body();
        assert_eq!(short.data().await.unwrap().unwrap(), "a");
        let mut sender = client.ready().await.unwrap();
        let (long, _) = sender.send_request(request("GET", "/long"), true).unwrap();
        let (bytes, _) = whole(long.await.unwrap().body_mut()).await;
        assert_eq!(bytes.len(), LONG);
        assert_eq!(whole(&mut short).await.0, b"b");
        let records = proxy.records(2);
        let short = records
            .iter()
            .find(|record| record.path == "/short")
            .unwrap();
        let long = records
            .iter()
            .find(|record| record.path == "/long")
            .unwrap();
        for (short, long) in [
            (short.down_stream.unwrap(), long.down_stream.unwrap()),
            (short.up_stream.unwrap(), long.up_stream.unwrap()),
        ] {
            let behind = short.response_behind_bytes.unwrap();
            // All of it, with the headers of its frames and its head.
            assert!(
                (LONG as i64..LONG as i64 + 2_000).contains(&behind),
                "{behind}"
            );
            assert_eq!(long.response_behind_bytes, Some(0));
        }
    });
}
