//! Streams of HTTP/2 through the proxy: what goes through, and over which connections.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode, Version};
use skewtap_core::exchange::Outcome;
use skewtap_proxy::Config;
use skewtap_proxy::config::UpstreamHttp;

use crate::harness::{PATIENCE, Running, config};
use crate::streams::{Origin, client, origin, request, run, send, whole};
use crate::wire::{expect, expect_end, head};

/// Bytes in which a change, a loss or another order shows.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn ok() -> Response<()> {
    Response::new(())
}

/// Sends every body back, with its length in a trailer.
async fn echo() -> Origin {
    origin(|request, mut respond| async move {
        let mut body = request.into_body();
        let (bytes, _) = whole(&mut body).await;
        let mut out = respond.send_response(ok(), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-length", bytes.len().into());
        send(&mut out, &bytes, Some(trailers)).await;
    })
    .await
}

#[test]
fn streams_go_at_once_over_one_connection_and_each_has_its_record() {
    const STREAMS: usize = 20;
    run(async {
        let origin = echo().await;
        let proxy = Running::start(config(origin.address));
        let client = client(proxy.addresses.traffic).await;
        let mut under_way = Vec::new();
        for number in 0..STREAMS {
            let mut client = client.clone().ready().await.unwrap();
            let asked = request("POST", &format!("/{number}"));
            let (response, mut out) = client.send_request(asked, false).unwrap();
            let body = pattern(1_000 * number + 1);
            under_way.push(tokio::spawn(async move {
                let id = response.stream_id().as_u32();
                send(&mut out, &body, None).await;
                let (parts, mut incoming) = response.await.unwrap().into_parts();
                assert_eq!(parts.status, StatusCode::OK);
                let (bytes, trailers) = whole(&mut incoming).await;
                assert!(bytes == body, "body of stream {id}");
                assert_eq!(trailers.unwrap()["x-length"], bytes.len().to_string());
                (format!("/{number}"), i64::from(id))
            }));
        }
        let mut expected = BTreeSet::new();
        for stream in under_way {
            expected.insert(stream.await.unwrap());
        }
        assert_eq!(origin.connections(), 1);
        let records = proxy.records(STREAMS);
        let found = records.iter().map(|record| {
            assert_eq!(record.outcome, Outcome::Complete);
            assert_eq!(record.status, Some(200));
            assert_eq!(record.authority, "origin.test");
            assert_eq!(record.up.as_ref().unwrap().peer, origin.address.to_string());
            (record.path.clone(), record.down_stream.unwrap().id)
        });
        assert_eq!(found.collect::<BTreeSet<_>>(), expected);
        assert_eq!(proxy.stop().len(), 0);
    });
}

#[test]
fn long_bodies_and_all_trailers_go_through_unchanged() {
    const LENGTH: usize = 3 * 1024 * 1024 + 17;
    run(async {
        let origin = origin(|request, mut respond| async move {
            let (head, mut body) = request.into_parts();
            assert_eq!(head.headers["x-twice"], "1");
            assert_eq!(head.headers.get_all("x-twice").iter().count(), 2);
            assert_eq!(head.uri, "http://origin.test/a?b=c");
            let (bytes, trailers) = whole(&mut body).await;
            assert!(bytes == pattern(LENGTH));
            let mut out = respond.send_response(ok(), false).unwrap();
            send(&mut out, &bytes, trailers).await;
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let mut client = client(proxy.addresses.traffic).await;
        let mut asked = request("POST", "/a?b=c");
        asked.headers_mut().append("x-twice", 1.into());
        asked.headers_mut().append("x-twice", 2.into());
        let (response, mut out) = client.send_request(asked, false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.append("x-sum", 1.into());
        trailers.append("x-sum", 2.into());
        let sent = trailers.clone();
        let sending = tokio::spawn(async move {
            send(&mut out, &pattern(LENGTH), Some(sent)).await;
        });
        let mut body = response.await.unwrap().into_body();
        let (bytes, back) = whole(&mut body).await;
        sending.await.unwrap();
        assert!(bytes == pattern(LENGTH));
        assert_eq!(back, Some(trailers));
        let record = proxy.record();
        // Each frame has a header of nine bytes, and is at most 16 KiB long.
        let framed = LENGTH + 9 * (LENGTH / 16_384);
        assert!(record.request_bytes.unwrap() > framed as i64);
        assert!(record.response_bytes.unwrap() > framed as i64);
    });
}

#[test]
fn a_server_of_http_1_gets_a_connection_for_each_stream_that_is_open() {
    const AT_ONCE: usize = 3;
    let (address, server) = concurrent_messages(AT_ONCE);
    run(async move {
        let proxy = Running::start(Config {
            upstream_http: UpstreamHttp::Http1,
            ..config(address)
        });
        let client = client(proxy.addresses.traffic).await;
        for round in 0..2 {
            let mut under_way = Vec::new();
            for number in 0..AT_ONCE {
                let mut client = client.clone().ready().await.unwrap();
                let mut asked = request("GET", &format!("/{round}/{number}"));
                asked.headers_mut().append("cookie", "a=1".parse().unwrap());
                asked.headers_mut().append("cookie", "b=2".parse().unwrap());
                let (response, _) = client.send_request(asked, true).unwrap();
                under_way.push(tokio::spawn(async move {
                    let (parts, mut body) = response.await.unwrap().into_parts();
                    assert_eq!(parts.version, Version::HTTP_2);
                    assert!(!parts.headers.contains_key("connection"));
                    whole(&mut body).await.0
                }));
            }
            for (number, stream) in under_way.into_iter().enumerate() {
                let body = String::from_utf8(stream.await.unwrap()).unwrap();
                assert_eq!(body, format!("GET /{round}/{number} HTTP/1.1"));
            }
        }
        drop(client);
        let records = proxy.records(2 * AT_ONCE);
        let connections: BTreeSet<_> = records
            .iter()
            .map(|record| record.up.as_ref().unwrap().local.clone())
            .collect();
        assert_eq!(connections.len(), AT_ONCE);
        for record in &records {
            assert_eq!(record.outcome, Outcome::Complete, "{}", record.path);
            assert_eq!(record.up_stream, None);
            assert!(record.down_stream.is_some());
        }
    });
    server.join().unwrap();
}

/// A server of HTTP/1 that answers no request before it has so many at once, on as many
/// connections, twice.
fn concurrent_messages(at_once: usize) -> (std::net::SocketAddr, std::thread::JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let gate = Arc::new(std::sync::Barrier::new(at_once));
    let server = std::thread::spawn(move || {
        let connections: Vec<_> = (0..at_once)
            .map(|_| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let gate = Arc::clone(&gate);
                std::thread::spawn(move || {
                    for _ in 0..2 {
                        let request = head(&mut stream);
                        assert!(request.contains("host: origin.test\r\n"), "{request}");
                        assert!(request.contains("cookie: a=1; b=2\r\n"), "{request}");
                        gate.wait();
                        let line = request.lines().next().unwrap();
                        let length = line.len();
                        let text = format!(
                            "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: {length}\r\n\r\n{line}"
                        );
                        stream.write_all(text.as_bytes()).unwrap();
                    }
                    expect_end(&mut stream);
                })
            })
            .collect();
        for connection in connections {
            connection.join().unwrap();
        }
    });
    (address, server)
}

#[test]
fn a_client_of_http_1_gets_what_a_server_of_http_2_sends() {
    run(async {
        let origin = origin(|request, mut respond| async move {
            let (head, mut body) = request.into_parts();
            assert_eq!(head.uri, "http://origin.test/x?y");
            assert!(!head.headers.contains_key("connection"));
            let (bytes, _) = whole(&mut body).await;
            let hints = Response::builder().status(103).header("link", "</a>");
            respond.send_informational(hints.body(()).unwrap()).unwrap();
            let mut response = ok();
            response
                .headers_mut()
                .insert("content-length", bytes.len().into());
            let mut out = respond.send_response(response, false).unwrap();
            send(&mut out, &bytes, None).await;
        })
        .await;
        let proxy = Running::start(Config {
            upstream_http: UpstreamHttp::Http2,
            ..config(origin.address)
        });
        let address = proxy.addresses.traffic;
        let asking = tokio::task::spawn_blocking(move || {
            let mut client = crate::harness::connect(address);
            for body in ["first", "the second"] {
                let text = format!(
                    "POST /x?y HTTP/1.1\r\nHost: origin.test\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                client.write_all(text.as_bytes()).unwrap();
                expect(
                    &mut client,
                    "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n",
                );
                assert!(head(&mut client).starts_with("HTTP/1.1 200 OK\r\n"));
                expect(&mut client, body);
            }
        });
        asking.await.unwrap();
        assert_eq!(origin.connections(), 1);
        for (record, stream) in proxy.records(2).iter().zip([1, 3]) {
            assert_eq!(record.outcome, Outcome::Complete);
            assert_eq!(record.up_stream.unwrap().id, stream);
            assert_eq!(record.down_stream, None);
            assert!(record.response_bytes.is_some());
        }
    });
}

#[test]
fn interim_responses_come_as_the_server_sends_them() {
    run(async {
        let origin = origin(|request, mut respond| async move {
            let go_on = Response::builder().status(100).body(()).unwrap();
            respond.send_informational(go_on).unwrap();
            let mut body = request.into_body();
            let (bytes, _) = whole(&mut body).await;
            assert_eq!(bytes, b"only when told");
            for number in 0..2 {
                let hints = Response::builder().status(103).header("x", number);
                respond.send_informational(hints.body(()).unwrap()).unwrap();
            }
            respond.send_response(ok(), true).unwrap();
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let mut client = client(proxy.addresses.traffic).await;
        let mut asked = request("POST", "/");
        let expects = "100-continue".parse().unwrap();
        asked.headers_mut().insert("expect", expects);
        let (mut response, mut out) = client.send_request(asked, false).unwrap();
        let told = std::future::poll_fn(|cx| response.poll_informational(cx)).await;
        assert_eq!(told.unwrap().unwrap().status(), StatusCode::CONTINUE);
        send(&mut out, b"only when told", None).await;
        for number in 0..2 {
            let hints = std::future::poll_fn(|cx| response.poll_informational(cx)).await;
            let hints = hints.unwrap().unwrap();
            assert_eq!(hints.status(), StatusCode::EARLY_HINTS);
            assert_eq!(hints.headers()["x"], number.to_string());
        }
        assert_eq!(response.await.unwrap().status(), StatusCode::OK);
        let record = proxy.record();
        use skewtap_core::milestone::Milestone;
        let best = |milestone| record.milestones.best(milestone).unwrap();
        assert!(best(Milestone::UpContinue).lo() <= best(Milestone::DownContinue).hi());
        assert!(best(Milestone::DownContinue).lo() <= best(Milestone::DownRequestLast).hi());
        assert!(best(Milestone::UpResponseFirst).hi() >= best(Milestone::UpRequestLast).lo());
    });
}
