//! A client made of hyper, with a new connection for every transfer.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_LENGTH, HOST};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::bodies::{Found, Transfer, sha256};
use super::clients::Way;

type Body = BoxBody<Bytes, Infallible>;

/// Makes the transfers one after the other.
pub(super) fn transfer(way: &Way, all: &[Transfer]) -> Result<Vec<Found>, String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    all.iter()
        .map(|transfer| runtime.block_on(one(way, transfer)))
        .collect()
}

async fn one(way: &Way, transfer: &Transfer) -> Result<Found, String> {
    let uri: Uri = transfer.url.parse().unwrap();
    let authority = uri.authority().unwrap().to_string();
    let socket = match &way.proxy {
        Some(proxy) => TcpStream::connect(proxy.trim_start_matches("http://")).await,
        None => TcpStream::connect(&authority).await,
    };
    let mut socket = socket.map_err(|error| error.to_string())?;
    let under_tls = uri.scheme_str() == Some("https");
    let mut request = Request::builder();
    if let Some(file) = transfer.file.as_ref().filter(|_| !transfer.chunked) {
        // By itself hyper announces no empty body, and nginx stores none then.
        request = request.header(CONTENT_LENGTH, std::fs::metadata(file).unwrap().len());
    }
    let request = request
        .method(transfer.file.as_ref().map_or(Method::GET, |_| Method::PUT))
        .uri(if way.proxy.is_some() && !under_tls {
            uri.clone()
        } else {
            uri.path().parse().unwrap()
        })
        .header(HOST, &authority)
        .body(body(transfer))
        .unwrap();
    if !under_tls {
        return exchange(socket, request).await;
    }
    if way.proxy.is_some() {
        open_tunnel(&mut socket, &authority).await?;
    }
    let name = ServerName::try_from(uri.host().unwrap().to_owned()).unwrap();
    let secured = connector(way).connect(name, socket).await;
    exchange(secured.map_err(|error| error.to_string())?, request).await
}

fn body(transfer: &Transfer) -> Body {
    let Some(file) = &transfer.file else {
        return Full::default().boxed();
    };
    let bytes = std::fs::read(file).unwrap();
    if !transfer.chunked {
        return Full::from(bytes).boxed();
    }
    let pieces: Vec<_> = bytes.chunks(16_384).map(Bytes::copy_from_slice).collect();
    let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece)));
    StreamBody::new(tokio_stream::iter(frames)).boxed()
}

async fn open_tunnel(socket: &mut TcpStream, authority: &str) -> Result<(), String> {
    let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    let wrong = |error: std::io::Error| error.to_string();
    socket.write_all(request.as_bytes()).await.map_err(wrong)?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(socket.read_u8().await.map_err(wrong)?);
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let open = answer.starts_with("HTTP/1.1 200 ");
    open.then_some(()).ok_or(answer)
}

fn connector(way: &Way) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    let file = way.roots.as_ref().unwrap();
    roots
        .add(CertificateDer::from_pem_file(file).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn exchange(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Body>,
) -> Result<Found, String> {
    let wrong = |error: hyper::Error| format!("{error:?}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
        .await
        .map_err(wrong)?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(wrong)?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(wrong)?;
    let sha256 = sha256(&body.to_bytes());
    Ok(Found { status, sha256 })
}
