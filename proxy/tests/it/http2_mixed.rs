//! One version on the client's leg and the other on the server's: bodies, trailers and waits.

use std::io::Write as _;
use std::net::TcpStream;

use http::{HeaderMap, Response};
use skewtap_core::exchange::Outcome;
use skewtap_core::milestone::Milestone;
use skewtap_proxy::Config;
use skewtap_proxy::config::UpstreamHttp;

use crate::harness::{Running, config};
use crate::http2::pattern;
use crate::streams::{client, origin, request, run, send, whole};
use crate::wire::{exactly, expect, expect_end, head};

const LENGTH: usize = 1024 * 1024 + 3;

fn to_http_2(address: std::net::SocketAddr) -> Config {
    Config {
        upstream_http: UpstreamHttp::Http2,
        ..config(address)
    }
}

fn to_http_1(address: std::net::SocketAddr) -> Config {
    Config {
        upstream_http: UpstreamHttp::Http1,
        ..config(address)
    }
}

/// Reads a chunk; empty is the last.
fn chunk(stream: &mut TcpStream) -> Vec<u8> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(exactly(stream, 1));
    }
    let text = String::from_utf8(line).unwrap();
    let length = usize::from_str_radix(text.trim(), 16).unwrap();
    let bytes = exactly(stream, length);
    if length > 0 {
        expect(stream, "\r\n");
    }
    bytes
}

#[test]
fn long_bodies_go_from_messages_to_streams_and_back() {
    run(async {
        let origin = origin(|request, mut respond| async move {
            let mut body = request.into_body();
            let (bytes, trailers) = whole(&mut body).await;
            assert!(bytes == pattern(LENGTH));
            assert_eq!(trailers, None);
            let mut out = respond.send_response(Response::new(()), false).unwrap();
            send(&mut out, &bytes, None).await;
        })
        .await;
        let proxy = Running::start(to_http_2(origin.address));
        let mut client = proxy.connect();
        let asking = tokio::task::spawn_blocking(move || {
            let text = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {LENGTH}\r\n\r\n");
            client.write_all(text.as_bytes()).unwrap();
            client.write_all(&pattern(LENGTH)).unwrap();
            let head = head(&mut client);
            assert!(head.contains("transfer-encoding: chunked"), "{head}");
            let mut bytes = Vec::new();
            loop {
                let next = chunk(&mut client);
                if next.is_empty() {
                    break;
                }
                bytes.extend(next);
            }
            assert!(bytes == pattern(LENGTH));
        });
        asking.await.unwrap();
        let record = proxy.record();
        assert_eq!(record.outcome, Outcome::Complete);
        assert!(record.milestones.best(Milestone::UpRequestLast).is_some());
        assert!(record.milestones.best(Milestone::UpResponseLast).is_some());
    });
}

#[test]
fn a_client_of_http_1_that_waits_is_told_to_go_on_by_the_server_of_http_2() {
    run(async {
        let origin = origin(|request, mut respond| async move {
            assert_eq!(request.headers()["expect"], "100-continue");
            let go_on = Response::builder().status(100).body(()).unwrap();
            respond.send_informational(go_on).unwrap();
            let (bytes, _) = whole(&mut request.into_body()).await;
            assert_eq!(bytes, b"body");
            respond.send_response(Response::new(()), true).unwrap();
        })
        .await;
        let proxy = Running::start(to_http_2(origin.address));
        let mut client = proxy.connect();
        let asking = tokio::task::spawn_blocking(move || {
            client
                .write_all(
                    b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
                )
                .unwrap();
            expect(&mut client, "HTTP/1.1 100 Continue\r\n\r\n");
            client.write_all(b"body").unwrap();
            assert!(head(&mut client).starts_with("HTTP/1.1 200 OK\r\n"));
        });
        asking.await.unwrap();
        let record = proxy.record();
        assert_eq!(record.outcome, Outcome::Complete);
        let best = |milestone| record.milestones.best(milestone).unwrap();
        assert!(best(Milestone::UpContinue).lo() <= best(Milestone::DownContinue).hi());
        assert!(best(Milestone::DownContinue).lo() <= best(Milestone::DownRequestLast).hi());
    });
}

#[test]
fn a_stream_that_breaks_off_cuts_the_message_short() {
    run(async {
        let (go, gone) = tokio::sync::watch::channel(false);
        let origin = origin(move |_, mut respond| {
            let mut gone = gone.clone();
            async move {
                let mut response = Response::new(());
                let length = response.headers_mut();
                length.insert("content-length", 10.into());
                let mut out = respond.send_response(response, false).unwrap();
                out.send_data("half".into(), false).unwrap();
                gone.wait_for(|go| *go).await.unwrap();
                out.send_reset(h2::Reason::INTERNAL_ERROR);
            }
        })
        .await;
        let proxy = Running::start(to_http_2(origin.address));
        let mut client = proxy.connect();
        let asking = tokio::task::spawn_blocking(move || {
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            head(&mut client);
            expect(&mut client, "half");
            go.send(true).unwrap();
            expect_end(&mut client);
        });
        asking.await.unwrap();
        assert_eq!(proxy.record().outcome, Outcome::UpstreamBroken);
    });
}

#[test]
fn bodies_and_trailers_go_from_streams_to_messages_and_back() {
    let (address, server) = crate::harness::origin(1, |mut stream| {
        let head = head(&mut stream);
        assert!(head.contains("te: trailers\r\n"), "{head}");
        assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
        let mut bytes = Vec::new();
        loop {
            let next = chunk(&mut stream);
            if next.is_empty() {
                break;
            }
            bytes.extend(next);
        }
        expect(&mut stream, "x-asked: 1\r\n\r\n");
        assert!(bytes == pattern(LENGTH));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-done\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for piece in bytes.chunks(50_000) {
            write!(stream, "{:x}\r\n", piece.len()).unwrap();
            stream.write_all(piece).unwrap();
            stream.write_all(b"\r\n").unwrap();
        }
        stream.write_all(b"0\r\nx-done: 2\r\n\r\n").unwrap();
        expect_end(&mut stream);
    });
    run(async move {
        let proxy = Running::start(to_http_1(address));
        let mut client = client(proxy.addresses.traffic).await;
        let mut asked = request("POST", "/");
        let headers = asked.headers_mut();
        headers.insert("te", "trailers".parse().unwrap());
        headers.insert("trailer", "x-asked".parse().unwrap());
        let (response, mut out) = client.send_request(asked, false).unwrap();
        let sending = tokio::spawn(async move {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-asked", 1.into());
            send(&mut out, &pattern(LENGTH), Some(trailers)).await;
        });
        let (bytes, trailers) = whole(response.await.unwrap().body_mut()).await;
        sending.await.unwrap();
        assert!(bytes == pattern(LENGTH));
        assert_eq!(trailers.unwrap()["x-done"], "2");
        let record = proxy.record();
        assert_eq!(record.outcome, Outcome::Complete);
        assert!(record.milestones.best(Milestone::UpRequestLast).is_some());
    });
    server.join().unwrap();
}
