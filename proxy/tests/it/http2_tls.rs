//! Which version is agreed on under TLS, on either leg.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, client};
use http::{Request, Response, StatusCode};
use rustls::ServerConfig;
use rustls::pki_types::ServerName;
use skewtap_core::exchange::Outcome;
use skewtap_core::milestone::Milestone;
use skewtap_proxy::config::{Intercept, UpstreamHttp};
use skewtap_proxy::tls::TlsSettings;
use skewtap_proxy::{Config, authority};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::harness::{Running, config, nobody};
use crate::pki::{Pki, Trusting, both_legs};
use crate::streams::{client_on, request, run, serve_connection, whole};

/// A server under TLS that knows these protocols; it answers streams, and messages of HTTP/1, with
/// the name of what was agreed on.
async fn tls_origin(pki: &Pki, protocols: &[&str]) -> SocketAddr {
    let mut settings: ServerConfig = pki.server_config("localhost");
    settings.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let acceptor = TlsAcceptor::from(Arc::new(settings));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let Ok(mut tls) = acceptor.accept(socket).await else {
                continue;
            };
            let agreed = tls.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
            if agreed.as_deref() == Some(b"h2") {
                tokio::spawn(serve_connection(tls, answer));
                continue;
            }
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(tls.read_u8().await.unwrap());
                }
                let text = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhttp/1.1";
                tls.write_all(text.as_bytes()).await.unwrap();
                if String::from_utf8(head).unwrap().contains("close") {
                    tls.shutdown().await.unwrap();
                }
                // Until the proxy closes.
                let (Ok(_) | Err(_)) = tls.read_u8().await;
            });
        }
    });
    address
}

async fn answer(_: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let mut out = respond.send_response(Response::new(()), false).unwrap();
    out.send_data(Bytes::from_static(b"h2"), true).unwrap();
}

/// Shakes hands with the proxy, or with what it stands for.
async fn connect(stream: TcpStream, trusting: &Trusting, offer: &[&str]) -> TlsStream<TcpStream> {
    let connector = TlsConnector::from(trusting.offering(offer));
    let name = ServerName::try_from("localhost").unwrap();
    connector.connect(name, stream).await.unwrap()
}

fn agreed(stream: &TlsStream<TcpStream>) -> Option<&[u8]> {
    stream.get_ref().1.alpn_protocol()
}

async fn get_on(sender: &mut client::SendRequest<Bytes>) -> Vec<u8> {
    let (response, _) = sender.send_request(request("GET", "/"), true).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    whole(&mut response.into_body()).await.0
}

#[test]
fn a_client_and_a_server_get_the_versions_that_they_agree_on() {
    let pki = Pki::new();
    // What the client offers, what the server knows, and what is spoken on either leg.
    for (offer, known, down, up) in [
        (&["h2", "http/1.1"][..], &["h2", "http/1.1"][..], "h2", "h2"),
        (&["h2"], &["http/1.1"], "h2", "http/1.1"),
        (&["http/1.1"], &["h2", "http/1.1"], "http/1.1", "http/1.1"),
    ] {
        run(async {
            let origin = tls_origin(&pki, known).await;
            let proxy = Running::start(both_legs(origin, &pki));
            let socket = TcpStream::connect(proxy.addresses.traffic).await.unwrap();
            let mut stream = connect(socket, &pki.trusted(), offer).await;
            assert_eq!(agreed(&stream), Some(down.as_bytes()));
            let body = if down == "h2" {
                get_on(&mut client_on(stream).await).await
            } else {
                let get = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                stream.write_all(get).await.unwrap();
                let mut bytes = Vec::new();
                stream.read_to_end(&mut bytes).await.unwrap();
                bytes.split_off(bytes.len() - up.len())
            };
            assert_eq!(String::from_utf8(body).unwrap(), up, "{offer:?} {known:?}");
            let record = proxy.record();
            assert_eq!(record.outcome, Outcome::Complete);
            assert_eq!(record.down_stream.is_some(), down == "h2");
            assert_eq!(record.up_stream.is_some(), up == "h2");
            for milestone in [
                Milestone::DownTlsDone,
                Milestone::UpTlsDone,
                Milestone::DownRequestLast,
                Milestone::UpResponseLast,
                Milestone::DownResponseLast,
            ] {
                assert!(record.milestones.best(milestone).is_some(), "{milestone}");
            }
        });
    }
}

#[test]
fn the_version_towards_servers_can_be_set() {
    let pki = Pki::new();
    for (upstream_http, up) in [
        (UpstreamHttp::Http1, "http/1.1"),
        (UpstreamHttp::Http2, "h2"),
    ] {
        run(async {
            let origin = tls_origin(&pki, &["h2", "http/1.1"]).await;
            let proxy = Running::start(Config {
                upstream_http,
                ..both_legs(origin, &pki)
            });
            for offer in ["h2", "http/1.1"] {
                let socket = TcpStream::connect(proxy.addresses.traffic).await.unwrap();
                let mut stream = connect(socket, &pki.trusted(), &[offer]).await;
                if offer == "h2" {
                    let body = get_on(&mut client_on(stream).await).await;
                    assert_eq!(String::from_utf8(body).unwrap(), up);
                } else {
                    let get = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                    stream.write_all(get).await.unwrap();
                    let mut bytes = Vec::new();
                    stream.read_to_end(&mut bytes).await.unwrap();
                    let text = String::from_utf8_lossy(&bytes);
                    assert!(text.contains(up), "{text}");
                }
                let record = proxy.record();
                assert_eq!(record.up_stream.is_some(), up == "h2");
            }
        });
    }
}

#[test]
fn streams_inside_a_tunnel_that_is_opened_up_are_seen() {
    let pki = Pki::new();
    let folder = tempfile::tempdir().unwrap();
    authority::create(folder.path()).unwrap();
    run(async {
        let origin = tls_origin(&pki, &["h2"]).await;
        let proxy = Running::start(Config {
            upstream: None,
            intercept: Some(Intercept {
                hosts: vec!["localhost".to_owned()],
                authority: folder.path().to_owned(),
            }),
            tls: TlsSettings {
                upstream_ca: Some(pki.roots()),
                ..TlsSettings::default()
            },
            ..config(nobody())
        });
        let mut socket = TcpStream::connect(proxy.addresses.traffic).await.unwrap();
        let host = format!("localhost:{}", origin.port());
        let text = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        socket.write_all(text.as_bytes()).await.unwrap();
        let mut head = [0; 19];
        socket.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK\r\n\r\n");
        let trusting = Pki::trusting(&authority::certificate_file(folder.path()));
        let stream = connect(socket, &trusting, &["h2", "http/1.1"]).await;
        assert_eq!(agreed(&stream), Some(&b"h2"[..]));
        let body = get_on(&mut client_on(stream).await).await;
        assert_eq!(body, b"h2");
        let records = [proxy.record(), proxy.record()];
        let inside = records
            .iter()
            .find(|record| record.method == "GET")
            .unwrap();
        assert_eq!(inside.outcome, Outcome::Complete);
        assert!(inside.down_stream.is_some() && inside.up_stream.is_some());
    });
}
