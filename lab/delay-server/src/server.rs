//! The listening socket and its connections.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use otlp_json::Reporter;

use crate::collector_url::CollectorUrl;
use crate::connection::serve;
use crate::server_span::server_span;
use crate::span_queue::SpanQueue;

/// Connections served at a time; further ones are closed at once.
const CONNECTION_LIMIT: usize = 512;

/// How a server is to behave.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where spans go; `None` withholds them.
    pub collector: Option<CollectorUrl>,
    /// `service.name` of the spans.
    pub service: String,
    /// Milliseconds by which reported times run ahead of the machine's clock; may be negative.
    pub clock_offset_ms: i64,
}

/// A bound server. It serves until its process ends.
pub struct DelayServer {
    listener: TcpListener,
    local: SocketAddr,
    spans: Option<SpanQueue>,
    clock_offset_ms: i64,
    connections: AtomicUsize,
}

impl DelayServer {
    /// Binds the listening socket and starts the reporting thread.
    ///
    /// # Errors
    /// If the address cannot be bound or the thread cannot be started.
    pub fn bind(settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind(settings.listen)?;
        let local = listener.local_addr()?;
        let reporter = Reporter {
            service: settings.service,
            host: std::fs::read_to_string("/proc/sys/kernel/hostname")
                .map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned()),
            process_id: std::process::id(),
            scope: (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
        };
        let spans = match settings.collector {
            Some(collector) => Some(SpanQueue::start(collector, reporter)?),
            None => None,
        };
        let connections = AtomicUsize::new(0);
        Ok(Self {
            listener,
            local,
            spans,
            clock_offset_ms: settings.clock_offset_ms,
            connections,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// Accepts and serves connections.
    ///
    /// # Errors
    /// When a connection cannot be given a thread, or the listening socket fails.
    pub fn run(self) -> io::Result<()> {
        let server = Arc::new(self);
        loop {
            let (stream, peer) = match server.listener.accept() {
                Ok(accepted) => accepted,
                // The peer gave up between its connect and this call.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            if server.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTION_LIMIT {
                server.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let server = Arc::clone(&server);
            thread::Builder::new().spawn(move || {
                server.serve_connection(&stream, peer);
                server.connections.fetch_sub(1, Ordering::Relaxed);
            })?;
        }
    }

    fn serve_connection(&self, stream: &TcpStream, peer: SocketAddr) {
        let outcome = serve(stream, |served| {
            if let Some(spans) = &self.spans {
                spans.offer(server_span(&served, self.local, peer, self.clock_offset_ms));
            }
        });
        // A client that goes away is its own affair.
        drop(outcome);
    }
}
