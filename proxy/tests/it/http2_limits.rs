//! What a client of HTTP/2 may not do, or not as often as it likes.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::{Duration, Instant};

use http::Response;
use skewtap_core::exchange::Outcome;
use skewtap_proxy::Config;

use crate::harness::{PATIENCE, Running, config};
use crate::streams::{
    Origin, POST, client, farewells, frame, next_frame, origin, preface, request, run, to_the_end,
    write_until_closed,
};
use crate::wire::expect_end;

const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];
const ENHANCE_YOUR_CALM: u32 = 0xb;

/// A server that never answers.
async fn silent() -> Origin {
    origin(|_, mut respond| async move {
        let (Ok(_) | Err(_)) = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
    })
    .await
}

#[test]
fn more_streams_than_allowed_are_refused_one_by_one() {
    run(async {
        let proxy = Running::start(Config {
            max_streams: 3,
            ..config(silent().await.address)
        });
        let address = proxy.addresses.traffic;
        let refused = tokio::task::spawn_blocking(move || {
            let mut client = crate::harness::connect(address);
            let mut bytes = preface();
            // The limit holds from the client's acknowledgement on.
            bytes.extend(frame(0x4, 0x1, 0, &[]));
            for stream in [1, 3, 5, 7, 9] {
                bytes.extend(frame(0x1, 0x5, stream, POST));
            }
            client.write_all(&bytes).unwrap();
            let mut refused = Vec::new();
            while refused.len() < 2 {
                let (kind, _, stream, payload) = next_frame(&mut client);
                if kind == 0x3 {
                    assert_eq!(payload, REFUSED_STREAM);
                    refused.push(stream);
                }
            }
            refused
        });
        assert_eq!(refused.await.unwrap(), [7, 9]);
        let records = proxy.records(3);
        let streams = records.iter().map(|record| record.down_stream.unwrap().id);
        assert_eq!(streams.collect::<BTreeSet<_>>(), BTreeSet::from([1, 3, 5]));
        assert_eq!(proxy.stop().len(), 0);
    });
}

#[test]
fn a_client_that_takes_streams_back_in_a_hurry_is_sent_away() {
    const MOST: u64 = 50;
    for one_by_one in [false, true] {
        run(async move {
            let proxy = Running::start(Config {
                max_resets: MOST,
                max_streams: 100,
                ..config(silent().await.address)
            });
            let address = proxy.addresses.traffic;
            let came = tokio::task::spawn_blocking(move || {
                let mut client = crate::harness::connect(address);
                client.write_all(&preface()).unwrap();
                let mut bytes = Vec::new();
                for number in 0..20_000 {
                    let stream = 2 * number + 1;
                    bytes.extend(frame(0x1, 0x5, stream, POST));
                    bytes.extend(frame(0x3, 0, stream, &[0, 0, 0, 8]));
                    if one_by_one && number < 200 {
                        if client.write_all(&bytes).is_err() {
                            break;
                        }
                        bytes.clear();
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                let (Ok(()) | Err(_)) = client.write_all(&bytes);
                to_the_end(&mut client)
            });
            let frames = came.await.unwrap();
            // A reset of the connection may have overtaken it.
            let told = farewells(&frames);
            assert!(
                told.iter().all(|code| *code == ENHANCE_YOUR_CALM),
                "{told:?}"
            );
            // Each stream that was looked at has one record.
            let records = proxy.stop();
            let streams = records.iter().map(|record| record.down_stream.unwrap().id);
            let distinct: BTreeSet<_> = streams.collect();
            assert_eq!(distinct.len(), records.len());
            assert!(records.len() < 1_000, "{} were looked at", records.len());
            for record in records {
                assert_eq!(record.outcome, Outcome::ClientGone);
            }
        });
    }
}

#[test]
fn a_client_may_take_streams_back_now_and_then() {
    run(async {
        let proxy = Running::start(Config {
            max_resets: 50,
            ..config(silent().await.address)
        });
        let client = client(proxy.addresses.traffic).await;
        for _ in 0..50 {
            let mut client = client.clone().ready().await.unwrap();
            let (_, mut out) = client.send_request(request("POST", "/"), false).unwrap();
            out.send_reset(h2::Reason::CANCEL);
        }
        assert!(client.ready().await.is_ok());
    });
}

#[test]
fn a_header_block_without_an_end_is_cut_short() {
    // Headers that nobody has heard of, again and again; and pieces with nothing in them.
    let headers = frame(0x9, 0, 1, &[0x00, 0x01, b'x', 0x01, b'y'].repeat(1_000));
    let nothing = frame(0x9, 0, 1, &[]).repeat(1_000);
    for piece in [headers, nothing] {
        run(async {
            let proxy = Running::start(config(silent().await.address));
            let address = proxy.addresses.traffic;
            let written = tokio::task::spawn_blocking(move || {
                let mut client = crate::harness::connect(address);
                client.write_all(&preface()).unwrap();
                client.write_all(&frame(0x1, 0x1, 1, POST)).unwrap();
                write_until_closed(&mut client, &piece, 64 * 1024 * 1024)
            });
            let written = written.await.unwrap();
            assert!(written < 16 * 1024 * 1024, "{written} bytes were taken");
            assert_eq!(proxy.stop().len(), 0);
        });
    }
}

#[test]
fn a_head_that_is_too_long_is_refused_and_the_connection_goes_on() {
    run(async {
        let origin = origin(|_, mut respond| async move {
            respond.send_response(Response::new(()), true).unwrap();
        })
        .await;
        let proxy = Running::start(Config {
            max_head_bytes: 8_192,
            ..config(origin.address)
        });
        let address = proxy.addresses.traffic;
        let statuses = tokio::task::spawn_blocking(move || {
            let mut client = crate::harness::connect(address);
            let mut block = POST.to_vec();
            // One of 10,000 bytes: 127 and the rest in groups of seven bits.
            block.extend([0x00, 0x01, b'x', 0x7f, 0x91, 0x4d]);
            block.extend([b'y'; 10_000]);
            let mut bytes = preface();
            bytes.extend(frame(0x1, 0x5, 1, &block));
            bytes.extend(frame(0x1, 0x5, 3, POST));
            client.write_all(&bytes).unwrap();
            let mut heads = Vec::new();
            while heads.len() < 2 {
                let (kind, _, stream, payload) = next_frame(&mut client);
                if kind == 0x1 {
                    heads.push((stream, payload));
                }
            }
            heads.sort();
            heads
        });
        let heads = statuses.await.unwrap();
        let texts: Vec<_> = heads.iter().map(|(stream, _)| *stream).collect();
        assert_eq!(texts, [1, 3]);
        // `:status 200` is one byte of the static table.
        assert_eq!(heads[1].1[0], 0x88);
        assert_ne!(heads[0].1[0], 0x88);
        let record = proxy.record();
        assert_eq!(record.down_stream.unwrap().id, 3);
        assert_eq!(proxy.stop().len(), 0);
    });
}

#[test]
fn a_slow_head_and_an_idle_connection_are_ended() {
    run(async {
        let proxy = Running::start(Config {
            head_timeout: Duration::from_millis(300),
            idle_timeout: Duration::from_secs(1),
            ..config(silent().await.address)
        });
        let address = proxy.addresses.traffic;
        let ended = tokio::task::spawn_blocking(move || {
            let mut slow = crate::harness::connect(address);
            slow.write_all(&preface()).unwrap();
            slow.write_all(&frame(0x1, 0x0, 1, POST)).unwrap();
            let began = Instant::now();
            let told = farewells(&to_the_end(&mut slow));
            assert_eq!(told, [ENHANCE_YOUR_CALM]);
            assert!(began.elapsed() < PATIENCE / 2);
            let mut half = crate::harness::connect(address);
            half.write_all(&preface()[..10]).unwrap();
            to_the_end(&mut half);
            let mut silent = crate::harness::connect(address);
            expect_end(&mut silent);
            let mut idle = crate::harness::connect(address);
            idle.write_all(&preface()).unwrap();
            let told = farewells(&to_the_end(&mut idle));
            assert_eq!(told.first(), Some(&0));
        });
        ended.await.unwrap();
        assert_eq!(proxy.stop().len(), 0);
    });
}
