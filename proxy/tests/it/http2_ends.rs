//! How streams end: taken back, reset, left alone, or with their connection.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{Request, Response, StatusCode};
use skewtap_core::exchange::Outcome;
use skewtap_proxy::Config;
use skewtap_proxy::config::UpstreamHttp;

use crate::harness::{Running, config, nobody};
use crate::streams::{
    client, frame, next_frame, origin, request, reset_of, run, send, until, whole,
};
use crate::wire::{exactly, head};

fn ok() -> Response<()> {
    Response::new(())
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
        let (asked, mut is_asked) = tokio::sync::mpsc::unbounded_channel();
        let (address, server) = crate::harness::origin(1, move |mut stream| {
            head(&mut stream);
            asked.send(()).unwrap();
            // The end comes although nothing was answered.
            crate::wire::rest(&mut stream).len()
        });
        let proxy = Running::start(Config {
            upstream_http: UpstreamHttp::Http1,
            ..config(address)
        });
        let mut client = client(proxy.addresses.traffic).await;
        let (response, mut out) = client.send_request(request("GET", "/"), true).unwrap();
        is_asked.recv().await.unwrap();
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
            let (go, gone) = tokio::sync::watch::channel(false);
            let origin = origin(move |_, mut respond| {
                let mut gone = gone.clone();
                async move {
                    if answered {
                        let mut out = respond.send_response(ok(), false).unwrap();
                        out.send_data(Bytes::from_static(b"begun"), false).unwrap();
                        gone.wait_for(|go| *go).await.unwrap();
                        out.send_reset(Reason::ENHANCE_YOUR_CALM);
                    } else {
                        respond.send_reset(Reason::ENHANCE_YOUR_CALM);
                    }
                }
            })
            .await;
            let proxy = Running::start(config(origin.address));
            let mut client = client(proxy.addresses.traffic).await;
            let (response, _) = client.send_request(request("GET", "/"), true).unwrap();
            let reason = if answered {
                let mut body = response.await.unwrap().into_body();
                assert_eq!(body.data().await.unwrap().unwrap(), "begun");
                go.send(true).unwrap();
                reset_of(&mut body).await
            } else {
                response.await.unwrap_err().reason()
            };
            assert_eq!(reason, Some(Reason::ENHANCE_YOUR_CALM));
            assert_eq!(proxy.record().outcome, Outcome::UpstreamBroken);
        });
    }
}

#[test]
fn a_proxy_that_stops_lets_streams_end_and_says_goodbye() {
    run(async {
        let (go, gone) = tokio::sync::watch::channel(false);
        let origin = origin(move |_, mut respond| {
            let mut gone = gone.clone();
            async move {
                let mut out = respond.send_response(ok(), false).unwrap();
                out.send_data(Bytes::from_static(b"begun "), false).unwrap();
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

#[test]
fn only_a_stream_that_the_server_left_alone_is_said_to_be_refused() {
    // The last stream that the server looked at, its reason, and what the client learns.
    let broken = Err(StatusCode::BAD_GATEWAY);
    for (last, reason, learns) in [
        (0, Reason::NO_ERROR, Ok(Some(Reason::REFUSED_STREAM))),
        (0, Reason::INTERNAL_ERROR, broken),
        (1, Reason::NO_ERROR, broken),
    ] {
        run(async move {
            let (address, server) = crate::harness::origin(1, move |mut stream| {
                exactly(&mut stream, 24);
                while next_frame(&mut stream).0 != 0x1 {}
                let code = u32::from(reason).to_be_bytes();
                let goodbye = [u32::to_be_bytes(last), code].concat();
                let frames = [frame(0x4, 0, 0, &[]), frame(0x7, 0, 0, &goodbye)].concat();
                stream.write_all(&frames).unwrap();
            });
            let proxy = Running::start(config(address));
            let mut client = client(proxy.addresses.traffic).await;
            let (response, _) = client.send_request(request("GET", "/"), true).unwrap();
            let learned = match response.await {
                Ok(response) => Err(response.status()),
                Err(error) => Ok(error.reason()),
            };
            assert_eq!(learned, learns, "{last} {reason:?}");
            assert_eq!(proxy.record().outcome, Outcome::UpstreamBroken);
            server.join().unwrap();
        });
    }
}
