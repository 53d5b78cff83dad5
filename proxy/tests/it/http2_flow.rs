//! Whoever does not take bytes is felt by whoever sends them, and by no other stream.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Response;

use crate::harness::{Running, config};
use crate::http2::pattern;
use crate::streams::{client, origin, request, run, send, until, whole};

fn ok() -> Response<()> {
    Response::new(())
}

#[test]
fn a_client_that_does_not_read_stalls_its_own_stream_only() {
    // The client's window, the proxy's towards the server, what may wait to be sent, and a piece.
    const BOUND: usize = 65_535 + 256 * 1024 + 64 * 1024 + 2 * 16_384;
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
        let moves = || SENT.load(Ordering::SeqCst) > 65_535;
        until("more than the client's window comes through", moves).await;
        // Until nothing moves any more.
        let mut before = usize::MAX;
        while SENT.load(Ordering::SeqCst) != before {
            before = SENT.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(before > 65_535, "{before} bytes came through");
        assert!(
            before <= BOUND,
            "{before} bytes went ahead of a client that does not read"
        );
        let mut sender = client.ready().await.unwrap();
        let (short, _) = sender.send_request(request("GET", "/short"), true).unwrap();
        let (text, _) = whole(short.await.unwrap().body_mut()).await;
        assert_eq!(text, b"at once");
        assert!(whole(&mut body).await.0 == pattern(LENGTH));
    });
}

#[test]
fn what_a_server_does_not_read_is_not_taken_from_the_client() {
    const BOUND: usize = 2 * 65_535 + 256 * 1024 + 64 * 1024 + 2 * 16_384;
    run(async {
        let (go, gone) = tokio::sync::watch::channel(false);
        let origin = origin(move |request, mut respond| {
            let mut gone = gone.clone();
            async move {
                gone.wait_for(|go| *go).await.unwrap();
                let mut body = request.into_body();
                let (bytes, _) = whole(&mut body).await;
                let mut response = ok();
                response
                    .headers_mut()
                    .insert("x-length", bytes.len().into());
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
        assert!(
            sent <= BOUND,
            "{sent} bytes were taken for a server that does not read"
        );
        go.send(true).unwrap();
        out.reserve_capacity(0);
        out.send_data(Bytes::new(), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.headers()["x-length"], sent.to_string());
    });
}
