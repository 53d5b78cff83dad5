//! What the two legs of one client connection share.

use std::cell::RefCell;
use std::future::Future as _;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::exchange_error::HttpError;
use crate::http2::{Pump, PumpError, StreamConnection};
use crate::journal::{Journal, Side};
use crate::relayed_body::RequestBody;
use crate::stamped_io::{StampedIo, Witness};
use crate::target::Target;
use crate::transport::Transport;
use crate::tunnel::End;
use crate::upstream;
use crate::worker::Worker;
use bytes::Bytes;
use h2::SendStream;
use hyper::client::conn::http1::{Connection as HttpConnection, SendRequest};
use rustls::ServerConfig;

/// One client connection and, once needed, its connection to the server.
pub(crate) struct Connection {
    pub(crate) worker: Rc<Worker>,
    pub(crate) journal: Rc<RefCell<Journal>>,
    /// The one server for all plain paths, where the client named that before HTTP began.
    pub(crate) destination: Option<Target>,
    server: RefCell<Option<Server>>,
    /// The server's socket once HTTP is over on it, until the client's is too.
    left_by_http: RefCell<Option<Transport>>,
    /// What the client gets to once its connection has left HTTP.
    beyond: RefCell<Option<Beyond>>,
}

/// What comes after HTTP on a connection.
pub(crate) enum Beyond {
    /// Bytes that nobody looks at, to and from this end.
    Tunnel(End),
    /// TLS that the proxy opens in the server's place, and HTTP inside.
    Intercepted(Target, Arc<ServerConfig>),
}

/// The connection to the server.
struct Server {
    target: Target,
    transport: Transport,
    /// Not here while an exchange uses it.
    sender: Option<Sender>,
    http: ServerHttp,
    /// The request's body on its way on a stream.
    upload: Option<Upload>,
}

/// What sends requests to a server.
pub(crate) enum Sender {
    /// As messages of HTTP/1.
    Messages(SendRequest<RequestBody>),
    /// As streams of HTTP/2.
    Streams(h2::client::SendRequest<Bytes>),
}

/// What drives a connection to a server.
pub(crate) enum ServerHttp {
    Messages(Pin<Box<HttpConnection<StampedIo, RequestBody>>>),
    Streams(Box<StreamConnection>),
    /// Nothing does, as no message is under way; messages can begin again.
    AtRest,
}

/// A request's body with the stream that it goes out on.
pub(crate) struct Upload {
    pump: Pump<RequestBody>,
    stream: SendStream<Bytes>,
}

impl Connection {
    pub(crate) fn new(worker: Rc<Worker>, journal: Journal, destination: Option<Target>) -> Self {
        Self {
            worker,
            journal: Rc::new(RefCell::new(journal)),
            server: RefCell::new(None),
            left_by_http: RefCell::new(None),
            destination,
            beyond: RefCell::new(None),
        }
    }

    /// Puts a new connection to the server in place of the one there was, which is closed.
    pub(crate) fn install(
        &self,
        target: Target,
        transport: Transport,
        sender: Sender,
        http: impl Into<ServerHttp>,
    ) {
        self.forget_server();
        *self.server.borrow_mut() = Some(Server {
            target,
            transport,
            sender: Some(sender),
            http: http.into(),
            upload: None,
        });
    }

    /// Sends a request's body in place of the one before.
    pub(crate) fn upload(&self, upload: Option<Upload>) {
        if let Some(server) = self.server.borrow_mut().as_mut() {
            server.upload = upload;
        }
    }

    /// Takes what sends requests to `target`, if the connection there is goes there.
    pub(crate) fn take_sender(&self, target: &Target) -> Option<Sender> {
        let mut server = self.server.borrow_mut();
        let server = server.as_mut().filter(|server| server.target == *target)?;
        self.rouse(server);
        server.sender.take()
    }

    /// Gives back what [`Connection::take_sender`] took.
    pub(crate) fn return_sender(&self, sender: Sender) {
        if let Some(server) = self.server.borrow_mut().as_mut() {
            server.sender = Some(sender);
        }
    }

    /// Gives the buffers back that messages to and from the server need; only while there is none.
    pub(crate) fn rest(&self) {
        if let Some(server) = self.server.borrow_mut().as_mut()
            && let ServerHttp::Messages(_) = server.http
            && server.sender.as_ref().is_some_and(Sender::is_idle)
        {
            server.sender = None;
            server.http = ServerHttp::AtRest;
        }
    }

    /// Lets messages begin again after a rest.
    fn rouse(&self, server: &mut Server) {
        if let ServerHttp::AtRest = server.http {
            let io = self.io_of_server(&server.transport);
            match upstream::handshake(&self.worker.config, io) {
                Ok((sender, http)) => {
                    server.sender = Some(Sender::Messages(sender));
                    server.http = http.into();
                }
                Err(error) => tracing::debug!(error = %error, "connection not used again"),
            }
        }
    }

    /// What HTTP reads and writes on a connection to a server.
    pub(crate) fn io_of_server(&self, transport: &Transport) -> StampedIo {
        let witness = Witness::One(Rc::clone(&self.journal), Side::Up);
        let scratch = Rc::clone(&self.worker.scratch);
        StampedIo::new(transport.clone(), witness, scratch)
    }

    /// Drives the connection to the server; ready when it came to its end just now.
    pub(crate) fn poll_server(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.server.borrow_mut();
        let Some(server) = slot.as_mut() else {
            return Poll::Pending;
        };
        if let ServerHttp::AtRest = server.http {
            ready!(server.transport.poll_sign(cx));
            self.rouse(server);
        }
        let upload = server.upload.as_mut();
        if upload.is_some_and(|upload| upload.poll(cx).is_ready()) {
            server.upload = None;
        }
        let Poll::Ready(outcome) = server.http.poll(cx) else {
            return Poll::Pending;
        };
        if let Err(error) = outcome {
            tracing::debug!(error = %error, "connection to the server ended");
        }
        let gone = slot.take();
        drop(slot);
        if self.journal.borrow().is_tunnel() {
            // It left HTTP, and only then.
            let end = gone.and_then(Server::into_end);
            *self.beyond.borrow_mut() = end.map(Beyond::Tunnel);
            return Poll::Ready(());
        }
        *self.left_by_http.borrow_mut() = gone.map(|server| server.transport);
        self.journal.borrow_mut().server_gone();
        Poll::Ready(())
    }

    /// The socket to the server.
    pub(crate) fn server_transport(&self) -> Option<Transport> {
        let server = self.server.borrow();
        let server = server.as_ref().map(|server| server.transport.clone());
        server.or_else(|| self.left_by_http.borrow().clone())
    }

    /// Whether the server keeps its connection open until the proxy closes it, because streams
    /// come and go on it without a word about its end.
    pub(crate) fn server_waits_for_close(&self) -> bool {
        let server = self.server.borrow();
        server
            .as_ref()
            .is_some_and(|server| matches!(server.http, ServerHttp::Streams(_)))
    }

    /// Closes the socket of a server that HTTP has left.
    pub(crate) fn forget_server(&self) {
        *self.left_by_http.borrow_mut() = None;
    }

    /// Takes what comes after the exchange now being served, in place of the connection to a
    /// server that there was.
    pub(crate) fn go_beyond(&self, beyond: Beyond) {
        *self.server.borrow_mut() = None;
        self.forget_server();
        *self.beyond.borrow_mut() = Some(beyond);
        self.journal.borrow_mut().tunnel_is_made();
    }

    /// Gives what comes after HTTP.
    pub(crate) fn take_beyond(&self) -> Option<Beyond> {
        self.beyond.borrow_mut().take()
    }
}

impl Server {
    /// The end of a tunnel; only a connection of HTTP/1 can become one.
    fn into_end(self) -> Option<End> {
        let ServerHttp::Messages(http) = self.http else {
            return None;
        };
        Some(End {
            transport: self.transport,
            early: Pin::into_inner(http).into_parts().read_buf,
        })
    }
}

impl Sender {
    /// Whether its connection waits for a request.
    fn is_idle(&self) -> bool {
        match self {
            Self::Messages(sender) => sender.is_ready(),
            Self::Streams(_) => false,
        }
    }

    /// Waits until it can send; `None` when its connection is gone.
    pub(crate) async fn ready(self) -> Option<Self> {
        match self {
            Self::Messages(mut sender) => {
                let ready = sender.ready().await;
                ready.ok().map(|()| Self::Messages(sender))
            }
            Self::Streams(sender) => sender.ready().await.ok().map(Self::Streams),
        }
    }
}

impl ServerHttp {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        match self {
            Self::Messages(http) => http.as_mut().poll(cx).map_err(HttpError::from),
            Self::Streams(http) => Pin::new(http).poll(cx).map_err(HttpError::from),
            Self::AtRest => Poll::Pending,
        }
    }
}

impl From<HttpConnection<StampedIo, RequestBody>> for ServerHttp {
    fn from(http: HttpConnection<StampedIo, RequestBody>) -> Self {
        Self::Messages(Box::pin(http))
    }
}

impl From<StreamConnection> for ServerHttp {
    fn from(http: StreamConnection) -> Self {
        Self::Streams(Box::new(http))
    }
}

impl Upload {
    /// The body of a request whose head has been given to `stream`.
    pub(crate) fn new(body: RequestBody, stream: SendStream<Bytes>) -> Self {
        let pump = Pump::new(body);
        Self { pump, stream }
    }

    /// Ready when no more can be sent.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ended = std::task::ready!(self.pump.poll(cx, &mut self.stream));
        if let Err(PumpError::Source(error)) = ended {
            tracing::debug!(error = %error, "the client stopped sending");
            self.stream.send_reset(h2::Reason::CANCEL);
        }
        Poll::Ready(())
    }
}
