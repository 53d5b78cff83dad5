//! Accepting connections and serving HTTP on them, with and without TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// Connections of one port at once; more wait until one closes.
const MOST_CONNECTIONS: usize = 10_000;

/// How long a sender may take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an HTTP/1.1 connection may be without a request head. Exporters of metrics send
/// once a minute, and one that finds its connection closed may lose what it was about to send.
const HEAD_TIMEOUT: Duration = Duration::from_secs(150);

/// How often an HTTP/2 connection is asked whether it is still there, and how long for the answer.
const HTTP2_KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// How long a silent TCP connection is left before the system asks whether it is still there.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(60);

/// Bytes that a sender of HTTP/2 may send ahead, for one request and for all of a connection.
const HTTP2_WINDOWS: (u32, u32) = (1 << 20, 4 << 20);

/// Requests on one HTTP/2 connection at once.
const MOST_STREAMS: u32 = 256;

/// How long to wait after a connection could not be accepted, for want of descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// A port and what is spoken on it.
pub(super) struct Port {
    /// Where connections come in.
    pub(super) listener: TcpListener,
    /// TLS, if it is asked for.
    pub(super) tls: Option<TlsAcceptor>,
    /// Whether HTTP/1.1 is spoken, or HTTP/2 alone.
    pub(super) http1: bool,
}

/// What each connection needs; clones share it.
#[derive(Clone)]
struct Serving {
    http: auto::Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    router: Router,
}

/// Serves `router` until `shutdown` is ready, then finishes what is under way.
pub(super) async fn serve(port: Port, router: Router, shutdown: impl Future<Output = ()>) {
    let serving = Serving {
        http: http(port.http1),
        tls: port.tls,
        router,
    };
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let open = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = async {
            // The semaphore is never closed, so there is always a permit to wait for.
            let permit = Arc::clone(&room).acquire_owned().await.ok();
            (permit, port.listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut shutdown => break,
        };
        match accepted {
            Ok((stream, from)) => {
                let (serving, watcher) = (serving.clone(), open.watcher());
                tokio::spawn(async move {
                    serving.connection(stream, from, watcher).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(port.listener);
    open.shutdown().await;
}

fn http(http1: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_KEEP_ALIVE.0)
        .keep_alive_timeout(HTTP2_KEEP_ALIVE.1)
        .initial_stream_window_size(HTTP2_WINDOWS.0)
        .initial_connection_window_size(HTTP2_WINDOWS.1)
        .max_concurrent_streams(MOST_STREAMS);
    if http1 { builder } else { builder.http2_only() }
}

impl Serving {
    async fn connection(self, stream: TcpStream, from: SocketAddr, watcher: Watcher) {
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%from, %error, "a connection cannot be kept alive");
        }
        let Some(tls) = self.tls.clone() else {
            return self.speak(stream, from, watcher).await;
        };
        match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.speak(stream, from, watcher).await,
            Ok(Err(error)) => tracing::debug!(%from, %error, "a TLS handshake failed"),
            Err(_) => tracing::debug!(%from, "a TLS handshake took too long"),
        }
    }

    async fn speak<IO>(self, io: IO, from: SocketAddr, watcher: Watcher)
    where
        IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = TowerToHyperService::new(self.router);
        let connection = self.http.serve_connection(TokioIo::new(io), service);
        if let Err(error) = watcher.watch(connection.into_owned()).await {
            tracing::debug!(%from, error, "a connection broke");
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(TCP_KEEP_ALIVE))
}
