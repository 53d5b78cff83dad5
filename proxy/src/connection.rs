//! What the two legs of one client connection share.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::journal::Journal;
use crate::relayed_body::RequestBody;
use crate::stamped_io::StampedIo;
use crate::target::Target;
use crate::transport::Transport;
use crate::tunnel::End;
use crate::worker::Worker;
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
    sender: Option<SendRequest<RequestBody>>,
    http: Pin<Box<HttpConnection<StampedIo, RequestBody>>>,
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
        sender: SendRequest<RequestBody>,
        http: HttpConnection<StampedIo, RequestBody>,
    ) {
        self.forget_server();
        *self.server.borrow_mut() = Some(Server {
            target,
            transport,
            sender: Some(sender),
            http: Box::pin(http),
        });
    }

    /// Takes what sends requests to `target`, if the connection there is goes there.
    pub(crate) fn take_sender(&self, target: &Target) -> Option<SendRequest<RequestBody>> {
        let mut server = self.server.borrow_mut();
        let server = server.as_mut().filter(|server| server.target == *target)?;
        server.sender.take()
    }

    /// Gives back what [`Connection::take_sender`] took.
    pub(crate) fn return_sender(&self, sender: SendRequest<RequestBody>) {
        if let Some(server) = self.server.borrow_mut().as_mut() {
            server.sender = Some(sender);
        }
    }

    /// Drives the connection to the server; ready when it came to its end just now.
    pub(crate) fn poll_server(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.server.borrow_mut();
        let Some(server) = slot.as_mut() else {
            return Poll::Pending;
        };
        let Poll::Ready(outcome) = server.http.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        if let Err(error) = outcome {
            tracing::debug!(error = %error, "connection to the server ended");
        }
        let gone = slot.take();
        drop(slot);
        if self.journal.borrow().is_tunnel() {
            // It left HTTP, and only then.
            let end = gone.map(Server::into_end);
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
    fn into_end(self) -> End {
        let parts = Pin::into_inner(self.http).into_parts();
        End {
            transport: self.transport,
            early: parts.read_buf,
        }
    }
}
