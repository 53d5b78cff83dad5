//! Clients and servers of HTTP/2, with the library and with bare frames.

use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::harness::PATIENCE;
use crate::wire::exactly;

/// Runs a test's own side; nothing in it may hang.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let within = async { tokio::time::timeout(PATIENCE, test).await.unwrap() };
    runtime.block_on(within)
}

/// A server, with the number of connections it has had.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Origin {
    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Serves every stream of every connection with the closure.
pub(crate) async fn origin<F, S>(serve: F) -> Origin
where
    F: Fn(Request<RecvStream>, SendResponse<Bytes>) -> S + Clone + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = Origin {
        address: listener.local_addr().unwrap(),
        connections: Arc::default(),
    };
    let counted = Arc::clone(&origin.connections);
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve_connection(socket, serve.clone()));
        }
    });
    origin
}

/// Serves every stream of one connection with the closure.
pub(crate) async fn serve_connection<F, S>(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    serve: F,
) where
    F: Fn(Request<RecvStream>, SendResponse<Bytes>) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let Ok(mut http) = server::handshake(io).await else {
        return;
    };
    while let Some(Ok((request, respond))) = http.accept().await {
        tokio::spawn(serve(request, respond));
    }
}

/// A connection to the proxy.
pub(crate) async fn client(address: SocketAddr) -> SendRequest<Bytes> {
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    client_on(socket).await
}

/// A client on a connection that stands. One stream that stalls leaves room for others.
pub(crate) async fn client_on(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> SendRequest<Bytes> {
    let mut builder = client::Builder::new();
    builder.initial_connection_window_size(1024 * 1024);
    let (sender, http) = builder.handshake(io).await.unwrap();
    tokio::spawn(async move {
        // How it ends is for the streams to tell.
        let (Ok(()) | Err(_)) = http.await;
    });
    sender.ready().await.unwrap()
}

/// A request for a path of the host `origin.test`.
pub(crate) fn request(method: &str, path: &str) -> Request<()> {
    let uri = format!("http://origin.test{path}");
    Request::builder().method(method).uri(uri).body(()).unwrap()
}

/// Sends a body, as fast as its receiver takes it, and trailers if there are any.
pub(crate) async fn send(out: &mut SendStream<Bytes>, body: &[u8], trailers: Option<HeaderMap>) {
    let mut rest = Bytes::copy_from_slice(body);
    while !rest.is_empty() {
        out.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|cx| out.poll_capacity(cx)).await;
        let room = room.unwrap().unwrap().min(rest.len());
        let part = rest.split_to(room);
        out.send_data(part, rest.is_empty() && trailers.is_none())
            .unwrap();
    }
    match trailers {
        Some(trailers) => out.send_trailers(trailers).unwrap(),
        None if body.is_empty() => out.send_data(Bytes::new(), true).unwrap(),
        None => {}
    }
}

/// Takes a whole body with its trailers.
pub(crate) async fn whole(body: &mut RecvStream) -> (Vec<u8>, Option<HeaderMap>) {
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        bytes.extend_from_slice(&data);
    }
    (bytes, body.trailers().await.unwrap())
}

/// How a body breaks off.
pub(crate) async fn reset_of(body: &mut RecvStream) -> Option<Reason> {
    while let Some(data) = body.data().await {
        match data {
            Ok(data) => body.flow_control().release_capacity(data.len()).unwrap(),
            Err(error) => return error.reason(),
        }
    }
    None
}

/// Waits until what must come true has.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "{what}");
}

/// A frame as it goes over the wire.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header block of a `POST` to `/` of the host `a`, which needs no state.
pub(crate) const POST: &[u8] = &[0x83, 0x86, 0x84, 0x41, 0x01, b'a'];

/// What a client of bare frames begins with.
pub(crate) fn preface() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(0x4, 0, 0, &[]));
    bytes
}

/// The next frame: kind, flags, stream, payload.
pub(crate) fn next_frame(stream: &mut TcpStream) -> (u8, u8, u32, Vec<u8>) {
    let header = exactly(stream, 9);
    let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
    let number = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
    (
        header[3],
        header[4],
        number,
        exactly(stream, length as usize),
    )
}

/// Writes until the other side closes; whatever happens, not more than `most` bytes.
pub(crate) fn write_until_closed(stream: &mut TcpStream, piece: &[u8], most: usize) -> usize {
    let mut written = 0;
    while written < most {
        match stream.write(piece) {
            Ok(count) => written += count,
            Err(_) => return written,
        }
    }
    written
}

/// Everything that still comes, however the connection ends.
pub(crate) fn to_the_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (Ok(_) | Err(_)) = stream.read_to_end(&mut bytes);
    bytes
}

/// The error codes of the `GOAWAY` frames among whole frames.
pub(crate) fn farewells(frames: &[u8]) -> Vec<u32> {
    let mut rest = frames;
    let mut found = Vec::new();
    while rest.len() >= 9 {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        let end = (9 + length).min(rest.len());
        if rest[3] == 0x7 && end >= 17 {
            found.push(u32::from_be_bytes([rest[13], rest[14], rest[15], rest[16]]));
        }
        rest = &rest[end..];
    }
    found
}
