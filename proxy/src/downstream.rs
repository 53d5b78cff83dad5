//! One client connection, from its first byte to its last.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1::{Builder, Connection as HttpConnection};
use hyper::service::HttpService;
use rustls::ServerConfig;
use skewtap_sockstamp::realtime_ns;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::client_http::ClientHttp;
use crate::connection::{Beyond, Connection};
use crate::exchange_error::ExchangeError;
use crate::farewell::{self, Ended};
use crate::idle_clock::IdleClock;
use crate::journal::{HttpVersion, Journal, LegAddresses, Side};
use crate::moment::Read;
use crate::patience::{Doing, Late, Patience};
use crate::relayed_body::ResponseBody;
use crate::stamped_io::{StampedIo, Witness};
use crate::target::Target;
use crate::tls::TlsSession;
use crate::transport::Transport;
use crate::tunnel::End;
use crate::worker::Worker;
use crate::{http2, preface, service_stack, tunnel};

/// How long nothing goes on before the buffers are given back.
const LULL: Duration = Duration::from_millis(500);

/// A client's connection as it stands once HTTP can begin on it.
pub(crate) struct Client {
    pub(crate) transport: Transport,
    pub(crate) addresses: LegAddresses,
    pub(crate) accepted_ns: i64,
    /// The read that ended the TLS handshake, if TLS is round the connection.
    pub(crate) tls: Option<Read>,
    /// The one server behind it, where the client named that before HTTP began.
    pub(crate) destination: Option<Target>,
}

/// Serves one client until either side closes. `stop` lets the exchange under way end and
/// closes the connection after it.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    socket: TcpStream,
    addresses: LegAddresses,
    accepted_ns: i64,
    stop: CancellationToken,
) {
    let mut client = Client {
        destination: worker.destination(addresses),
        transport: Transport::plain(socket),
        addresses,
        accepted_ns,
        tls: None,
    };
    if let Some(config) = &worker.tls_server {
        let session = TlsSession::accept(Arc::clone(config), None, 0);
        let securing = Box::pin(secure(&worker, &mut client.transport, session));
        client.tls = stop.run_until_cancelled(securing).await.flatten();
        if client.tls.is_none() {
            return;
        }
    }
    serve_http(worker, client, stop).await;
}

/// What is seldom needed, or only by one version of HTTP, is boxed here and below: it would be part
/// of the task of every connection, whose size is what an idle connection costs.
async fn serve_http(worker: Rc<Worker>, client: Client, stop: CancellationToken) {
    let begins = preface::version_of(&client.transport, &worker.config);
    match stop.run_until_cancelled(begins).await.flatten() {
        Some(HttpVersion::Http1) => Box::pin(serve_messages(worker, client, stop)).await,
        Some(HttpVersion::Http2) => Box::pin(http2::serve(worker, client, stop)).await,
        None => {}
    }
}

/// Serves a client that speaks HTTP/1.
async fn serve_messages(worker: Rc<Worker>, client: Client, stop: CancellationToken) {
    let Client {
        transport,
        addresses,
        accepted_ns,
        tls,
        destination,
    } = client;
    let journal = Journal::new(Rc::clone(&worker), addresses, accepted_ns, tls);
    let connection = Rc::new(Connection::new(worker, journal, destination));
    let closing = Closing(Rc::clone(&connection));
    let mut http = ClientHttp::new(transport.clone(), || begin(&connection, &transport));
    let ended = drive(&mut http, &connection, &transport, &stop).await;
    if ended.is_ok() && connection.journal.borrow().is_tunnel() {
        let early = http.into_early();
        match leave_http(&connection).await {
            Some(Beyond::Tunnel(server)) => {
                Box::pin(carry(&connection, End { transport, early }, server)).await;
            }
            Some(Beyond::Intercepted(target, config)) => {
                let sent = connection.journal.borrow().sent_to_client();
                drop(closing);
                let opened = Client {
                    transport,
                    addresses,
                    accepted_ns,
                    tls: None,
                    destination: Some(target),
                };
                let worker = Rc::clone(&connection.worker);
                Box::pin(intercept(worker, opened, (config, early, sent), stop)).await;
            }
            None => {}
        }
        return;
    }
    Box::pin(send_what_is_owed(&connection)).await;
    let ended = ended.unwrap_or_else(|error| {
        connection.worker.metrics.connection_error(&error);
        tracing::debug!(error = %error, "connection from a client ended");
        Ended::ByProxy
    });
    Box::pin(farewell::say(&connection, &transport, ended, &stop)).await;
    drop(closing);
}

/// Begins to speak HTTP/1 to a client.
fn begin(
    connection: &Rc<Connection>,
    transport: &Transport,
) -> HttpConnection<
    StampedIo,
    impl HttpService<Incoming, ResBody = ResponseBody, Error = ExchangeError> + use<>,
> {
    let witness = Witness::One(Rc::clone(&connection.journal), Side::Down);
    let scratch = Rc::clone(&connection.worker.scratch);
    let io = StampedIo::new(transport.clone(), witness, scratch);
    Builder::new()
        .half_close(true)
        .preserve_header_case(true)
        .auto_date_header(false)
        .header_read_timeout(None)
        .max_header_size(connection.worker.config.max_head_bytes)
        .max_buf_size(connection.worker.config.max_head_bytes)
        .serve_connection(io, service_stack::of(connection))
}

/// Drives HTTP on both legs until the client's leg has come to its end.
async fn drive<B, S>(
    http: &mut ClientHttp<B, S>,
    connection: &Connection,
    client: &Transport,
    stop: &CancellationToken,
) -> hyper::Result<Ended>
where
    B: Fn() -> HttpConnection<StampedIo, S>,
    S: HttpService<Incoming, ResBody = ResponseBody, Error = ExchangeError>,
{
    let mut stopped = pin!(stop.cancelled());
    let mut mirror = Mirror::default();
    let mut lull = IdleClock::default();
    poll_fn(|cx| {
        if !mirror.stopping && stopped.as_mut().poll(cx).is_ready() {
            mirror.stopping = true;
            http.graceful_shutdown();
        }
        loop {
            if let Poll::Ready(ended) = http.poll(cx) {
                return Poll::Ready(ended.map(|()| Ended::ByThem));
            }
            let seen = connection.journal.borrow().up_reads();
            mirror.server_closed |= connection.poll_server(cx).is_ready();
            let idle = connection.journal.borrow().is_idle();
            if mirror.server_closed && idle && !mirror.stopping {
                mirror.stopping = true;
                http.graceful_shutdown();
            } else if connection.journal.borrow().up_reads() == seen {
                break;
            }
        }
        if mirror.poll_client(cx, connection, client).is_ready() {
            return Poll::Ready(Ok(Ended::ByProxy));
        }
        if !http.is_at_rest() && !mirror.stopping {
            let (rests, served) = connection.journal.borrow().rests();
            if lull.poll(cx, LULL, (rests, served)).is_ready() {
                http.rest(connection.worker.metrics.connection_rests());
                connection.rest();
                // Once more, to wait for a sign of either side.
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    })
    .await
}

/// Shakes hands with a client; gives the read that ended that, or `None` if it came to nothing.
async fn secure(
    worker: &Worker,
    client: &mut Transport,
    session: io::Result<TlsSession>,
) -> Option<Read> {
    let shaking = async { client.secure(session?).await };
    let timeout = |_| Err(io::ErrorKind::TimedOut.into());
    let allowed = worker.config.head_timeout;
    let shaken = tokio::time::timeout(allowed, shaking).await;
    match shaken.unwrap_or_else(timeout) {
        Ok(read) => Some(read),
        Err(error) => {
            worker.metrics.handshake_failed();
            tracing::debug!(error = %error, "no TLS with a client");
            None
        }
    }
}

/// Waits until the server's side has left HTTP too, and gives what lies beyond.
async fn leave_http(connection: &Connection) -> Option<Beyond> {
    poll_fn(|cx| {
        if let Some(beyond) = connection.take_beyond() {
            return Poll::Ready(Some(beyond));
        }
        match connection.poll_server(cx) {
            Poll::Ready(()) => Poll::Ready(connection.take_beyond()),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Carries bytes unseen until both sides have closed.
async fn carry(connection: &Connection, client: End, server: End) {
    let early = (client.early.len(), server.early.len());
    connection.journal.borrow_mut().tunnelled_early(early);
    let scratch = &connection.worker.scratch;
    tunnel::run(&connection.journal, scratch, client, server).await;
}

/// Opens TLS in the server's place, and serves what is inside. `early` is what the client sent
/// ahead, and `sent` how much was sent to it.
async fn intercept(
    worker: Rc<Worker>,
    mut client: Client,
    (config, early, sent): (Arc<ServerConfig>, Bytes, u64),
    stop: CancellationToken,
) {
    let now_ns = realtime_ns();
    let read = Read {
        kernel_ns: None,
        before_ns: now_ns,
        after_ns: now_ns,
        drained: false,
        together: false,
    };
    let early = (!early.is_empty()).then(|| (early.to_vec(), read));
    let session = TlsSession::accept(config, early, sent);
    let securing = secure(&worker, &mut client.transport, session);
    client.tls = stop.run_until_cancelled(securing).await.flatten();
    if client.tls.is_some() {
        // Inside, the same begins anew.
        serve_http(worker, client, stop).await;
    }
}

/// Lets the server have the rest of a request whose client closed after it had sent all of it
/// and had its response already.
async fn send_what_is_owed(connection: &Connection) {
    let sent = poll_fn(|cx| {
        while connection.journal.borrow().owes_server() {
            if connection.poll_server(cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    });
    let allowed = connection.worker.config.drain_timeout;
    if tokio::time::timeout(allowed, sent).await.is_err() {
        tracing::debug!("the end of a request was not taken by the server");
    }
}

/// Closes what is open of the journal, also when the task is dropped.
struct Closing(Rc<Connection>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.journal.borrow_mut().close();
    }
}

/// What one side did that the other must see.
#[derive(Default)]
struct Mirror {
    /// The server closed its connection.
    server_closed: bool,
    /// The client's connection closes after the exchange under way.
    stopping: bool,
    /// The client's half close was passed on.
    half_closed: bool,
    patience: Patience,
}

impl Mirror {
    /// Looks at the client where hyper does not; ready when the connection is to be dropped.
    fn poll_client(
        &mut self,
        cx: &mut Context<'_>,
        connection: &Connection,
        client: &Transport,
    ) -> Poll<()> {
        let doing = {
            let journal = connection.journal.borrow();
            Doing {
                head_is_open: journal.head_is_open(),
                is_idle: journal.is_idle(),
                served: journal.served(),
            }
        };
        let config = &connection.worker.config;
        if let Poll::Ready(late) = self.patience.poll(cx, config, doing) {
            if late == Late::Head {
                connection.worker.metrics.head_cut_short();
            }
            return Poll::Ready(());
        }
        if connection.journal.borrow().client_waits() {
            match client.poll_end(cx) {
                Poll::Ready(Ok(read)) => connection.journal.borrow_mut().client_ended(read),
                Poll::Ready(Err(error)) => {
                    connection.journal.borrow_mut().failed(Side::Down, &error);
                    return Poll::Ready(());
                }
                Poll::Pending => {}
            }
        }
        if !self.half_closed && connection.journal.borrow().half_close_is_due() {
            match connection
                .server_transport()
                .map(|server| server.poll_close(cx))
            {
                Some(Poll::Pending) => return Poll::Pending,
                Some(Poll::Ready(Err(error))) => {
                    tracing::debug!(error = %error, "half close not passed on");
                }
                Some(Poll::Ready(Ok(()))) | None => {}
            }
            self.half_closed = true;
        }
        Poll::Pending
    }
}
