//! Sending a request on, over the one connection to the server.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{EXPECT, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Beyond, Connection};
use crate::exchange_error::ExchangeError;
use crate::journal::Side;
use crate::moment::Read;
use crate::reach::{Reached, reach};
use crate::relayed_body::{RequestBody, ResponseBody};
use crate::stamped_io::StampedIo;
use crate::target::Target;
use crate::tls::{Clients, TlsSession};
use crate::transport::Transport;
use crate::tunnel::End;

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
        let (mut sender, fresh) = sender_to(&connection, &target).await?;
        connection.journal.borrow_mut().sent_up();
        match sender.try_send_request(request).await {
            Ok(response) => {
                if response.status() == StatusCode::SWITCHING_PROTOCOLS && !asks_to_switch {
                    return Err(ExchangeError::Unasked);
                }
                connection.return_sender(sender);
                interim_responses_first(&connection).await;
                return Ok(ResponseBody::of_server(response));
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
    let transport = connect_to(connection, target).await?;
    connection.journal.borrow_mut().sent_up();
    connection.go_beyond(Beyond::Tunnel(End {
        transport,
        early: Bytes::new(),
    }));
    Ok(Response::new(ResponseBody::Own(None)))
}

/// The sender of the connection there is, or of a new one; and whether it is new.
async fn sender_to(
    connection: &Connection,
    target: &Target,
) -> Result<(SendRequest<RequestBody>, bool), ExchangeError> {
    if let Some(mut sender) = connection.take_sender(target)
        && sender.ready().await.is_ok()
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
    let transport = connect_to(connection, target).await?;
    let io = StampedIo::new(
        transport.clone(),
        Side::Up,
        Rc::clone(&connection.journal),
        Rc::clone(&worker.scratch),
    );
    let (sender, http) = Builder::new()
        .preserve_header_case(true)
        .max_buf_size(worker.config.max_head_bytes)
        .handshake(io)
        .await
        .map_err(ExchangeError::from_hyper)?;
    connection.install(target.clone(), transport, sender, http);
    Ok(())
}

/// Makes the connection to the server, and notes it.
async fn connect_to(connection: &Connection, target: &Target) -> Result<Transport, ExchangeError> {
    let worker = &connection.worker;
    let allowed = worker.config.connect_timeout;
    let (client, client_is_local) = {
        let journal = connection.journal.borrow();
        (journal.client(), journal.client_is_local())
    };
    if worker.own.as_ref().is_some_and(|own| own.has(client)) {
        return Err(ExchangeError::Loop);
    }
    let deadline = Instant::now() + allowed;
    let Reached {
        socket,
        ends,
        times,
    } = timeout_at(deadline, reach(target, worker, client_is_local))
        .await
        .map_err(|_| ExchangeError::ConnectTimeout(allowed))??;
    let mut transport = Transport::plain(socket);
    let tls = if target.tls {
        let securing = secure(&mut transport, worker.serving.clients_for(target), target);
        let secured = timeout_at(deadline, securing).await;
        Some(secured.map_err(|_| ExchangeError::ConnectTimeout(allowed))??)
    } else {
        None
    };
    connection.journal.borrow_mut().connected(ends, times, tls);
    Ok(transport)
}

/// Puts TLS round the connection; gives the read that ended the handshake.
async fn secure(
    transport: &mut Transport,
    clients: &Clients,
    target: &Target,
) -> Result<Read, ExchangeError> {
    let config = clients.config().await.map_err(ExchangeError::TlsSettings)?;
    let name = ServerName::try_from(target.host.clone());
    let name = name.map_err(|error| ExchangeError::Tls(io::Error::other(error)))?;
    let session = TlsSession::connect(config, name).map_err(ExchangeError::Tls)?;
    transport.secure(session).await.map_err(ExchangeError::Tls)
}
