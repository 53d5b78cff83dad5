//! Streams of HTTP/2 through the proxy: what goes through, over which connections, and how
//! streams end.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use skewtap_core::exchange::Outcome;
use skewtap_proxy::Config;
use skewtap_proxy::config::UpstreamHttp;

use crate::harness::{PATIENCE, Running, config, nobody};
use crate::streams::{Origin, client, origin, request, reset_of, run, send, until, whole};
use crate::wire::{exactly, expect, expect_end, head};

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
            response.headers_mut().insert("content-length", bytes.len().into());
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
                expect(&mut client, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
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

#[test]
fn a_stream_that_the_client_takes_back_is_taken_back_from_the_server() {
    for answered in [false, true] {
        run(async move {
            let (seen, mut see) = tokio::sync::mpsc::unbounded_channel();
            let origin = origin(move |request, mut respond| {
                let seen = seen.clone();
                async move {
                    let _open = request.into_body();
                    let reason = if answered {
                        let mut out = respond.send_response(ok(), false).unwrap();
                        out.send_data(Bytes::from_static(b"begun"), false).unwrap();
                        std::future::poll_fn(|cx| out.poll_reset(cx)).await
                    } else {
                        seen.send(None).unwrap();
                        std::future::poll_fn(|cx| respond.poll_reset(cx)).await
                    };
                    seen.send(Some(reason.unwrap())).unwrap();
                }
            })
            .await;
            let proxy = Running::start(config(origin.address));
            let mut client = client(proxy.addresses.traffic).await;
            let (response, mut out) = client.send_request(request("POST", "/"), false).unwrap();
            if answered {
                let mut body = response.await.unwrap().into_body();
                assert_eq!(body.data().await.unwrap().unwrap(), "begun");
            } else {
                assert_eq!(see.recv().await.unwrap(), None);
            }
            out.send_reset(Reason::CANCEL);
            assert_eq!(see.recv().await.unwrap(), Some(Reason::CANCEL));
            let record = proxy.record();
            assert_eq!(record.outcome, Outcome::ClientGone, "answered: {answered}");
            assert_eq!(record.status, answered.then_some(200));
            // The connection goes on.
            assert!(client.ready().await.is_ok());
        });
    }
}

#[test]
fn a_stream_that_the_client_takes_back_closes_the_connection_to_a_server_of_http_1() {
    run(async {
        let (address, server) = crate::harness::origin(1, |mut stream| {
            head(&mut stream);
            // The end comes although nothing was answered.
            crate::wire::rest(&mut stream).len()
        });
        let proxy = Running::start(Config {
            upstream_http: UpstreamHttp::Http1,
            ..config(address)
        });
        let mut client = client(proxy.addresses.traffic).await;
        let (response, mut out) = client.send_request(request("GET", "/"), true).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        out.send_reset(Reason::CANCEL);
        drop(response);
        let left = tokio::task::spawn_blocking(|| server.join().unwrap());
        assert_eq!(left.await.unwrap(), [0]);
        assert_eq!(proxy.record().outcome, Outcome::ClientGone);
    });
}

#[test]
fn a_stream_that_the_server_resets_is_reset_for_the_client_with_its_reason() {
    for answered in [false, true] {
        run(async move {
            let origin = origin(move |_, mut respond| async move {
                if answered {
                    let mut out = respond.send_response(ok(), false).unwrap();
                    send_part(&mut out, b"begun").await;
                    out.send_reset(Reason::ENHANCE_YOUR_CALM);
                } else {
                    respond.send_reset(Reason::ENHANCE_YOUR_CALM);
                }
            })
            .await;
            let proxy = Running::start(config(origin.address));
            let mut client = client(proxy.addresses.traffic).await;
            let (response, _) = client.send_request(request("GET", "/"), true).unwrap();
            let reason = match response.await {
                Ok(response) => reset_of(&mut response.into_body()).await,
                Err(error) => error.reason(),
            };
            assert_eq!(reason, Some(Reason::ENHANCE_YOUR_CALM));
            assert_eq!(proxy.record().outcome, Outcome::UpstreamBroken);
        });
    }
}

/// Sends a piece and gives it the time to leave.
async fn send_part(out: &mut h2::SendStream<Bytes>, part: &'static [u8]) {
    out.send_data(Bytes::from_static(part), false).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[test]
fn a_client_that_does_not_read_stalls_its_own_stream_only() {
    // The client's window, the proxy's towards the server, what may wait to be sent, and a piece.
    const BOUND: usize = 65_535 + 128 * 1024 + 64 * 1024 + 2 * 16_384;
    const LENGTH: usize = 4 * 1024 * 1024;
    static SENT: AtomicUsize = AtomicUsize::new(0);
    run(async {
        let origin = origin(|request, mut respond| async move {
            let mut out = respond.send_response(ok(), false).unwrap();
            if request.uri().path() == "/short" {
                return send(&mut out, b"at once", None).await;
            }
            let mut rest = Bytes::from(pattern(LENGTH));
            while !rest.is_empty() {
                out.reserve_capacity(rest.len().min(16_384));
                let room = std::future::poll_fn(|cx| out.poll_capacity(cx)).await;
                let part = rest.split_to(room.unwrap().unwrap().min(rest.len()).min(16_384));
                SENT.fetch_add(part.len(), Ordering::SeqCst);
                out.send_data(part, rest.is_empty()).unwrap();
            }
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let client = client(proxy.addresses.traffic).await;
        let mut sender = client.clone().ready().await.unwrap();
        let (stalled, _) = sender.send_request(request("GET", "/long"), true).unwrap();
        let mut body = stalled.await.unwrap().into_body();
        // Until nothing moves any more.
        let mut before = usize::MAX;
        while SENT.load(Ordering::SeqCst) != before {
            before = SENT.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(before > 65_535, "{before} bytes came through");
        assert!(before <= BOUND, "{before} bytes went ahead of a client that does not read");
        let mut sender = client.ready().await.unwrap();
        let (short, _) = sender.send_request(request("GET", "/short"), true).unwrap();
        let (text, _) = whole(short.await.unwrap().body_mut()).await;
        assert_eq!(text, b"at once");
        assert!(whole(&mut body).await.0 == pattern(LENGTH));
    });
}

#[test]
fn what_a_server_does_not_read_is_not_taken_from_the_client() {
    const BOUND: usize = 2 * 65_535 + 128 * 1024 + 64 * 1024 + 2 * 16_384;
    run(async {
        let (go, gone) = tokio::sync::watch::channel(false);
        let origin = origin(move |request, mut respond| {
            let mut gone = gone.clone();
            async move {
                gone.wait_for(|go| *go).await.unwrap();
                let mut body = request.into_body();
                let (bytes, _) = whole(&mut body).await;
                let mut response = ok();
                response.headers_mut().insert("x-length", bytes.len().into());
                respond.send_response(response, true).unwrap();
            }
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let mut client = client(proxy.addresses.traffic).await;
        let (response, mut out) = client.send_request(request("POST", "/"), false).unwrap();
        let mut sent = 0;
        loop {
            out.reserve_capacity(16_384);
            let room = std::future::poll_fn(|cx| out.poll_capacity(cx));
            let room = tokio::time::timeout(Duration::from_millis(500), room).await;
            let Ok(room) = room else { break };
            let part = room.unwrap().unwrap().min(16_384);
            out.send_data(Bytes::from(vec![7; part]), false).unwrap();
            sent += part;
        }
        assert!(sent <= BOUND, "{sent} bytes were taken for a server that does not read");
        go.send(true).unwrap();
        out.reserve_capacity(0);
        out.send_data(Bytes::new(), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.headers()["x-length"], sent.to_string());
    });
}

#[test]
fn a_proxy_that_stops_lets_streams_end_and_says_goodbye() {
    run(async {
        let (go, gone) = tokio::sync::watch::channel(false);
        let origin = origin(move |_, mut respond| {
            let mut gone = gone.clone();
            async move {
                let mut out = respond.send_response(ok(), false).unwrap();
                send_part(&mut out, b"begun ").await;
                gone.wait_for(|go| *go).await.unwrap();
                send(&mut out, b"done", None).await;
            }
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let socket = tokio::net::TcpStream::connect(proxy.addresses.traffic).await;
        let (sender, http) = h2::client::handshake(socket.unwrap()).await.unwrap();
        let connection = tokio::spawn(http);
        let mut sender = sender.ready().await.unwrap();
        let (response, _) = sender.send_request(request("GET", "/"), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "begun ");
        let stopping = tokio::task::spawn_blocking(move || proxy.stop());
        // No new streams are taken from here on.
        while sender.clone().ready().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        go.send(true).unwrap();
        assert_eq!(whole(&mut body).await.0, b"done");
        connection.await.unwrap().unwrap();
        let records = stopping.await.unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].outcome, Outcome::Complete);
    });
}

#[test]
fn a_server_that_says_goodbye_is_heard_by_the_client() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let mut http = h2::server::handshake(socket).await.unwrap();
            let (_, mut respond) = http.accept().await.unwrap().unwrap();
            respond.send_response(ok(), true).unwrap();
            http.graceful_shutdown();
            assert!(http.accept().await.is_none());
        });
        let proxy = Running::start(config(address));
        let socket = tokio::net::TcpStream::connect(proxy.addresses.traffic).await;
        let (sender, http) = h2::client::handshake(socket.unwrap()).await.unwrap();
        let connection = tokio::spawn(http);
        let mut sender = sender.ready().await.unwrap();
        let (response, _) = sender.send_request(request("GET", "/"), true).unwrap();
        assert_eq!(response.await.unwrap().status(), StatusCode::OK);
        // It ends although the client keeps it.
        connection.await.unwrap().unwrap();
        assert_eq!(proxy.record().outcome, Outcome::Complete);
    });
}

#[test]
fn the_proxy_answers_by_itself_where_there_is_no_server() {
    run(async {
        let proxy = Running::start(config(nobody()));
        let mut sender = client(proxy.addresses.traffic).await;
        let (response, _) = sender.send_request(request("GET", "/"), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        assert_eq!(response.headers()["x-skewtap-reason"], "upstream-refused");
        let record = proxy.record();
        assert_eq!(record.outcome, Outcome::UpstreamUnreachable);
        assert_eq!(record.status, Some(502));
        let connect = Request::builder().method("CONNECT").uri("a:1");
        let mut sender = sender.ready().await.unwrap();
        let (response, _) = sender
            .send_request(connect.body(()).unwrap(), true)
            .unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
        assert_eq!(proxy.record().outcome, Outcome::Refused);
    });
}

#[test]
fn a_server_that_speaks_no_http_2_is_said_to_be_malformed() {
    run(async {
        let (address, server) = crate::harness::origin(1, |mut stream| {
            exactly(&mut stream, 24);
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
        });
        let proxy = Running::start(config(address));
        let mut client = client(proxy.addresses.traffic).await;
        let (response, _) = client.send_request(request("GET", "/"), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        let reason = response.headers()["x-skewtap-reason"].to_str().unwrap();
        assert_eq!(reason, "upstream-malformed");
        assert_eq!(proxy.record().outcome, Outcome::UpstreamMalformed);
        server.join().unwrap();
    });
}

#[test]
fn a_client_that_leaves_ends_all_its_exchanges() {
    const STREAMS: usize = 5;
    run(async {
        let begun = Arc::new(AtomicUsize::new(0));
        let (counted, ended) = (Arc::clone(&begun), Arc::new(AtomicUsize::new(0)));
        let counted_ends = Arc::clone(&ended);
        let origin = origin(move |_, mut respond| {
            let (begun, ended) = (Arc::clone(&counted), Arc::clone(&counted_ends));
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                let (Ok(_) | Err(_)) = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
                ended.fetch_add(1, Ordering::SeqCst);
            }
        })
        .await;
        let proxy = Running::start(config(origin.address));
        let socket = tokio::net::TcpStream::connect(proxy.addresses.traffic).await;
        let (sender, http) = h2::client::handshake::<_>(socket.unwrap()).await.unwrap();
        let connection = tokio::spawn(http);
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            let mut sender = sender.clone().ready().await.unwrap();
            open.push(sender.send_request(request("POST", "/"), false).unwrap());
        }
        until("all have begun", || begun.load(Ordering::SeqCst) == STREAMS).await;
        connection.abort();
        until("all have ended", || ended.load(Ordering::SeqCst) == STREAMS).await;
        for record in proxy.records(STREAMS) {
            assert_eq!(record.outcome, Outcome::ClientGone);
        }
        assert_eq!(proxy.stop().len(), 0);
    });
}
