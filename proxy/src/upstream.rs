//! Sending a request on, over the one connection to the server.

mod on_stream;

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{EXPECT, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection as HttpConnection, SendRequest};
use rustls::pki_types::ServerName;
use skewtap_sockstamp::{enable_receive_stamps, realtime_ns};
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout_at};

use crate::config::{Config, UpstreamHttp};
use crate::connection::{Beyond, Connection, Sender};
use crate::exchange_error::ExchangeError;
use crate::http2;
use crate::journal::{ConnectTimes, Connected, HttpVersion, LegAddresses, Side};
use crate::listen::bound_unsent;
use crate::moment::{Departure, Read};
use crate::relayed_body::{Pieces, RequestBody, ResponseBody};
use crate::stamped_io::{StampedIo, Witness};
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
    let local = connection.journal.borrow().client_is_local();
    let dialled = connect_to(&connection.worker, target, local, Offer::Http1).await?;
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
    let local = connection.journal.borrow().client_is_local();
    let offer = offer_to(target, worker.config.upstream_http, HttpVersion::Http1);
    let dialled = connect_to(worker, target, local, offer).await?;
    connection
        .journal
        .borrow_mut()
        .connected(dialled.connected, dialled.version);
    let transport = dialled.transport;
    let witness = Witness::One(Rc::clone(&connection.journal), Side::Up);
    let io = StampedIo::new(transport.clone(), witness, Rc::clone(&worker.scratch));
    match dialled.version {
        HttpVersion::Http1 => {
            let (sender, http) = handshake(&worker.config, io).await?;
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
pub(crate) async fn handshake(
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
    let made = builder.handshake(io).await;
    made.map_err(ExchangeError::from_hyper)
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

/// Connects to a server; `local` is whether the client is on this machine.
///
/// # Errors
/// Why there is no connection.
pub(crate) async fn connect_to(
    worker: &Worker,
    target: &Target,
    local: bool,
    offer: Offer,
) -> Result<Dialled, ExchangeError> {
    let allowed = worker.config.connect_timeout;
    if let Some(packets) = &worker.packets {
        packets.add_port(target.port);
    }
    let connecting = async {
        let addresses = resolve(target).await?;
        let chosen = worker.router.is_upstream(target);
        let guarded = !chosen && !local;
        if guarded && addresses.iter().copied().any(is_private_to_host) {
            return Err(ExchangeError::Forbidden);
        }
        connect_to_one(addresses, worker).await
    };
    let deadline = Instant::now() + allowed;
    let (socket, times) = timeout_at(deadline, connecting)
        .await
        .map_err(|_| ExchangeError::ConnectTimeout(allowed))??;
    let addresses = LegAddresses {
        local: socket.local_addr().map_err(ExchangeError::Unreachable)?,
        peer: socket.peer_addr().map_err(ExchangeError::Unreachable)?,
    };
    let mut transport = Transport::plain(socket);
    let tls = if target.tls {
        let securing = secure(&mut transport, &worker.tls_clients, target, offer);
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
        connected: Connected {
            addresses,
            times,
            tls,
        },
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

async fn resolve(target: &Target) -> Result<Vec<SocketAddr>, ExchangeError> {
    if let Ok(address) = target.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, target.port)]);
    }
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    let found = found.map(Iterator::collect).and_then(|found: Vec<_>| {
        let none = || io::Error::new(io::ErrorKind::NotFound, "no address");
        if found.is_empty() {
            Err(none())
        } else {
            Ok(found)
        }
    });
    found.map_err(|source| ExchangeError::Name {
        host: target.host.clone(),
        source,
    })
}

/// Whether an address means this machine or its link, which only clients on this machine may be
/// led to.
fn is_private_to_host(address: SocketAddr) -> bool {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local() || ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified(),
    }
}

/// Tries the addresses in order, as they were given.
async fn connect_to_one(
    addresses: Vec<SocketAddr>,
    worker: &Worker,
) -> Result<(TcpStream, ConnectTimes), ExchangeError> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        if worker.router.is_own(address) {
            return Err(ExchangeError::Loop);
        }
        match connect(address, worker.config.kernel_stamps).await {
            Ok(connected) => return Ok(connected),
            Err(error) => failure = error,
        }
    }
    Err(if failure.kind() == io::ErrorKind::ConnectionRefused {
        ExchangeError::Refused(failure)
    } else {
        ExchangeError::Unreachable(failure)
    })
}

async fn connect(address: SocketAddr, stamps: bool) -> io::Result<(TcpStream, ConnectTimes)> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_nodelay(true)?;
    bound_unsent(SockRef::from(&socket));
    if stamps && let Err(error) = enable_receive_stamps(socket.as_fd()) {
        tracing::debug!(error = %error, "no receive stamps on the connection to the server");
    }
    let mut connecting = pin!(socket.connect(address));
    let mut start = None;
    // The first poll makes the system call.
    let socket = poll_fn(|cx| {
        let before_ns = realtime_ns();
        let polled = connecting.as_mut().poll(cx);
        let after_ns = realtime_ns();
        start.get_or_insert(Departure {
            before_ns,
            after_ns,
        });
        polled
    })
    .await?;
    let connected_ns = realtime_ns();
    let at_once = Departure {
        before_ns: connected_ns,
        after_ns: connected_ns,
    };
    let times = ConnectTimes {
        start: start.unwrap_or(at_once),
        connected_ns,
    };
    Ok((socket, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_private_to_a_host_is_known_in_every_form() {
        for private in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "0.0.0.0:1",
            "169.254.169.254:80",
            "[::1]:1",
            "[::]:1",
            "[::ffff:127.0.0.1]:1",
            "[::ffff:169.254.169.254]:80",
            "[fe80::1]:1",
        ] {
            assert!(is_private_to_host(private.parse().unwrap()), "{private}");
        }
        for public in ["192.0.2.1:1", "10.0.0.1:1", "[2001:db8::1]:1"] {
            assert!(!is_private_to_host(public.parse().unwrap()), "{public}");
        }
    }
}
