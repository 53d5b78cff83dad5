//! HTTP/1 on a client's leg, which gives its buffers back while the client asks for nothing.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1::Connection as HttpConnection;
use hyper::service::HttpService;

use crate::exchange_error::ExchangeError;
use crate::metrics::Counted;
use crate::relayed_body::ResponseBody;
use crate::stamped_io::StampedIo;
use crate::transport::Transport;

/// The library's side of a client's leg. `B` begins it anew, after each rest.
pub(crate) struct ClientHttp<B, S>
where
    S: HttpService<Incoming>,
{
    transport: Transport,
    begin: B,
    /// Not here at rest.
    http: Option<HttpConnection<StampedIo, S>>,
    /// Here at rest.
    resting: Option<Counted>,
}

impl<B, S> ClientHttp<B, S>
where
    B: Fn() -> HttpConnection<StampedIo, S>,
    S: HttpService<Incoming, ResBody = ResponseBody, Error = ExchangeError>,
{
    /// Begins on `transport`.
    pub(crate) fn new(transport: Transport, begin: B) -> Self {
        let http = Some(begin());
        Self {
            transport,
            begin,
            http,
            resting: None,
        }
    }

    /// Serves what the client asks for; ready when it asks no more. At rest the first sign of
    /// the client ends that.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        if self.is_at_rest() {
            ready!(self.transport.poll_sign(cx));
        }
        self.awake().poll(cx)
    }

    /// Takes no request after the one under way.
    pub(crate) fn graceful_shutdown(&mut self) {
        self.awake().graceful_shutdown();
    }

    /// Gives the buffers back, and is `counted` among those at rest. Only for a client that has
    /// sent whole requests and has had all of its responses: nothing may lie in the buffers.
    pub(crate) fn rest(&mut self, counted: Counted) {
        self.http = None;
        self.resting = Some(counted);
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        self.resting.is_some()
    }

    /// Gives what the client sent ahead of what comes after HTTP.
    pub(crate) fn into_early(self) -> Bytes {
        let parts = self.http.map(HttpConnection::into_parts);
        parts.map(|parts| parts.read_buf).unwrap_or_default()
    }

    fn awake(&mut self) -> Pin<&mut HttpConnection<StampedIo, S>> {
        self.resting = None;
        Pin::new(self.http.get_or_insert_with(&self.begin))
    }
}
