//! Sending a request on, over the one connection to the server.

mod on_stream;

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::{EXPECT, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection as HttpConnection, SendRequest};
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};

use crate::config::{Config, UpstreamHttp};
use crate::connection::{Beyond, Connection, Sender};
use crate::exchange_error::ExchangeError;
use crate::http2;
use crate::journal::{Connected, HttpVersion};
use crate::moment::Read;
use crate::reach::{Reached, reach};
use crate::relayed_body::{Pieces, RequestBody, ResponseBody};
use crate::stamped_io::StampedIo;
use crate::target::Target;
use crate::tls::{Clients, Offer, TlsSession};
use crate::transport::Transport;
use crate::tunnel::End;
use crate::worker::Worker;

/// The innermost service: gives the server's response.
pub(crate) struct Upstream {
    connection: Rc<Connection>,
}

impl Upstream {
    pub(crate) fn new(connection: Rc<Connection>) -> Self {
        Self { connection }
    }
}

impl tower::Service<Request<Incoming>> for Upstream {
    type Response = Response<ResponseBody>;
    type Error = ExchangeError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ExchangeError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        Box::pin(send(Rc::clone(&self.connection), request))
    }
}

async fn send(
    connection: Rc<Connection>,
    mut request: Request<Incoming>,
) -> Result<Response<ResponseBody>, ExchangeError> {
    if let Some(fault) = connection.journal.borrow().head_fault() {
        return Err(ExchangeError::Head(fault));
    }
    let destination = connection.destination.as_ref();
    let target = connection.worker.router.route(&mut request, destination)?;
    if request.method() == Method::CONNECT {
        return open_tunnel(&connection, &target).await;
    }
    let asks_to_switch = request.headers().contains_key(UPGRADE);
    let expects = request.headers().contains_key(EXPECT);
    let mut request = request.map(|body| RequestBody::new(body, expects, &connection.journal));
    loop {
        let (mut sender, fresh) = match sender_to(&connection, &target).await? {
            (Sender::Messages(sender), fresh) => (sender, fresh),
            (Sender::Streams(sender), _) => {
                return on_stream::send(&connection, sender, request, &target).await;
            }
        };
        connection.journal.borrow_mut().sent_up();
        match sender.try_send_request(request).await {
            Ok(response) => {
                if response.status() == StatusCode::SWITCHING_PROTOCOLS && !asks_to_switch {
                    return Err(ExchangeError::Unasked);
                }
                connection.return_sender(Sender::Messages(sender));
                interim_responses_first(&connection).await;
                return Ok(ResponseBody::of_server(response.map(Pieces::Message)));
            }
            Err(mut refused) => match refused.take_message() {
                // The server closed between two exchanges, and no byte of this one has left.
                Some(unsent) if !fresh => request = unsent,
                _ => return Err(ExchangeError::from_hyper(refused.into_error())),
            },
        }
    }
}

/// Connects to where a tunnel is to lead; the client is told once the connection stands.
async fn open_tunnel(
    connection: &Connection,
    target: &Target,
) -> Result<Response<ResponseBody>, ExchangeError> {
    let authority = connection.worker.authority.as_ref();
    let in_clear = !connection.journal.borrow().client_speaks_tls();
    if let Some(authority) =
        authority.filter(|authority| in_clear && authority.covers(&target.host))
    {
        let config = authority.server_config(&target.host)?;
        let target = Target {
            tls: true,
            ..target.clone()
        };
        connection.go_beyond(Beyond::Intercepted(target, config));
        return Ok(Response::new(ResponseBody::Own(None)));
    }
    let client = connection.journal.borrow().client();
    let dialled = connect_to(&connection.worker, target, client, Offer::Http1).await?;
    let mut journal = connection.journal.borrow_mut();
    journal.connected(dialled.connected, HttpVersion::Http1);
    journal.sent_up();
    drop(journal);
    connection.go_beyond(Beyond::Tunnel(End {
        transport: dialled.transport,
        early: Bytes::new(),
    }));
    Ok(Response::new(ResponseBody::Own(None)))
}

/// The sender of the connection there is, or of a new one; and whether it is new.
async fn sender_to(
    connection: &Connection,
    target: &Target,
) -> Result<(Sender, bool), ExchangeError> {
    if let Some(sender) = connection.take_sender(target)
        && let Some(sender) = sender.ready().await
    {
        return Ok((sender, false));
    }
    dial(connection, target).await?;
    let sender = connection.take_sender(target);
    let gone = || ExchangeError::Unreachable(io::ErrorKind::NotConnected.into());
    sender.map(|sender| (sender, true)).ok_or_else(gone)
}

/// Waits until the client has been sent the interim responses that came before the final one.
async fn interim_responses_first(connection: &Connection) {
    // The socket wakes this task when the last of them has gone.
    poll_fn(|_| {
        if connection.journal.borrow().interim_is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

async fn dial(connection: &Connection, target: &Target) -> Result<(), ExchangeError> {
    let worker = &connection.worker;
    let client = connection.journal.borrow().client();
    let offer = offer_to(target, worker.config.upstream_http, HttpVersion::Http1);
    let dialled = connect_to(worker, target, client, offer).await?;
    connection
        .journal
        .borrow_mut()
        .connected(dialled.connected, dialled.version);
    let transport = dialled.transport;
    let io = connection.io_of_server(&transport);
    match dialled.version {
        HttpVersion::Http1 => {
            let (sender, http) = handshake(&worker.config, io)?;
            connection.install(target.clone(), transport, Sender::Messages(sender), http);
        }
        HttpVersion::Http2 => {
            let (sender, http) = http2::handshake(&worker.config, io).await?;
            connection.install(target.clone(), transport, Sender::Streams(sender), http);
        }
    }
    Ok(())
}

/// Begins to speak HTTP/1 to a server.
///
/// # Errors
/// The connection broke already.
pub(crate) fn handshake(
    config: &Config,
    io: StampedIo,
) -> Result<
    (
        SendRequest<RequestBody>,
        HttpConnection<StampedIo, RequestBody>,
    ),
    ExchangeError,
> {
    let mut builder = Builder::new();
    builder
        .preserve_header_case(true)
        .max_buf_size(config.max_head_bytes);
    // Nothing is said to the server by it, so there is nothing to wait for.
    let made = pin!(builder.handshake(io)).poll(&mut Context::from_waker(Waker::noop()));
    match made {
        Poll::Ready(made) => made.map_err(ExchangeError::from_hyper),
        Poll::Pending => Err(ExchangeError::Unreachable(
            io::ErrorKind::NotConnected.into(),
        )),
    }
}

/// Which versions a server is offered on behalf of a client that speaks `client`.
pub(crate) fn offer_to(target: &Target, wanted: UpstreamHttp, client: HttpVersion) -> Offer {
    match (wanted, client) {
        (UpstreamHttp::Http1, _) | (UpstreamHttp::Auto, HttpVersion::Http1) => Offer::Http1,
        (UpstreamHttp::Auto, HttpVersion::Http2) if target.tls => Offer::Either,
        (UpstreamHttp::Http2, _) | (UpstreamHttp::Auto, HttpVersion::Http2) => Offer::Http2,
    }
}

/// A connection to a server that stands.
pub(crate) struct Dialled {
    pub(crate) transport: Transport,
    pub(crate) connected: Connected,
    /// What is spoken on it.
    pub(crate) version: HttpVersion,
}

/// Connects to a server on behalf of the client at `client`.
///
/// # Errors
/// Why there is no connection.
pub(crate) async fn connect_to(
    worker: &Worker,
    target: &Target,
    client: SocketAddr,
    offer: Offer,
) -> Result<Dialled, ExchangeError> {
    let allowed = worker.config.connect_timeout;
    if worker.own.as_ref().is_some_and(|own| own.has(client)) {
        return Err(ExchangeError::Loop);
    }
    let deadline = Instant::now() + allowed;
    let Reached {
        socket,
        ends,
        times,
    } = timeout_at(deadline, reach(target, worker, client))
        .await
        .map_err(|_| ExchangeError::ConnectTimeout(allowed))??;
    let mut transport = Transport::plain(socket);
    let tls = if target.tls {
        let clients = worker.serving.clients_for(target);
        let securing = secure(&mut transport, clients, target, offer);
        let secured = timeout_at(deadline, securing).await;
        Some(secured.map_err(|_| ExchangeError::ConnectTimeout(allowed))??)
    } else {
        None
    };
    let version = match offer {
        Offer::Http1 => HttpVersion::Http1,
        Offer::Http2 => HttpVersion::Http2,
        Offer::Either => transport.agreed_on().unwrap_or(HttpVersion::Http1),
    };
    Ok(Dialled {
        transport,
        connected: Connected { ends, times, tls },
        version,
    })
}

/// Puts TLS round the connection; gives the read that ended the handshake.
async fn secure(
    transport: &mut Transport,
    clients: &Clients,
    target: &Target,
    offer: Offer,
) -> Result<Read, ExchangeError> {
    let config = clients.config(offer).await;
    let config = config.map_err(ExchangeError::TlsSettings)?;
    let name = ServerName::try_from(target.host.clone());
    let name = name.map_err(|error| ExchangeError::Tls(io::Error::other(error)))?;
    let session = TlsSession::connect(config, name).map_err(ExchangeError::Tls)?;
    transport.secure(session).await.map_err(ExchangeError::Tls)
}
