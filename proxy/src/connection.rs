//! What the two legs of one client connection share.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::client::conn::http1::{Connection as HttpConnection, SendRequest};
use tokio::net::TcpStream;

use crate::journal::Journal;
use crate::relayed_body::RequestBody;
use crate::stamped_io::StampedIo;
use crate::target::Target;
use crate::worker::Worker;

/// One client connection and, once needed, its connection to the server.
pub(crate) struct Connection {
    pub(crate) worker: Rc<Worker>,
    pub(crate) journal: Rc<RefCell<Journal>>,
    server: RefCell<Option<Server>>,
}

/// The connection to the server.
struct Server {
    target: Target,
    socket: Rc<TcpStream>,
    /// Not here while an exchange uses it.
    sender: Option<SendRequest<RequestBody>>,
    http: Pin<Box<HttpConnection<StampedIo, RequestBody>>>,
}

impl Connection {
    pub(crate) fn new(worker: Rc<Worker>, journal: Journal) -> Self {
        Self {
            worker,
            journal: Rc::new(RefCell::new(journal)),
            server: RefCell::new(None),
        }
    }

    /// Puts a new connection to the server in place of the one there was, which is closed.
    pub(crate) fn install(
        &self,
        target: Target,
        socket: Rc<TcpStream>,
        sender: SendRequest<RequestBody>,
        http: HttpConnection<StampedIo, RequestBody>,
    ) {
        *self.server.borrow_mut() = Some(Server {
            target,
            socket,
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
        *slot = None;
        drop(slot);
        self.journal.borrow_mut().server_gone();
        Poll::Ready(())
    }

    /// The socket to the server.
    pub(crate) fn server_socket(&self) -> Option<Rc<TcpStream>> {
        let server = self.server.borrow();
        server.as_ref().map(|server| Rc::clone(&server.socket))
    }
}
