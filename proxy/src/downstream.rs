//! One client connection, from its first byte to its last.

use std::future::poll_fn;
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::server::conn::http1::Builder;
use skewtap_sockstamp::realtime_ns;
use socket2::SockRef;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::journal::{Journal, LegAddresses, Side};
use crate::moment::Read;
use crate::service_stack;
use crate::stamped_io::StampedIo;
use crate::worker::Worker;

/// Serves one client until either side closes. `stop` lets the exchange under way end and
/// closes the connection after it.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    socket: TcpStream,
    addresses: LegAddresses,
    accepted_ns: i64,
    stop: CancellationToken,
) {
    let journal = Journal::new(Rc::clone(&worker), addresses, accepted_ns);
    let connection = Rc::new(Connection::new(worker, journal));
    let closing = Closing(Rc::clone(&connection));
    let socket = Rc::new(socket);
    let io = StampedIo::new(
        Rc::clone(&socket),
        Side::Down,
        Rc::clone(&connection.journal),
        Rc::clone(&connection.worker.scratch),
    );
    let http = Builder::new()
        .half_close(true)
        .preserve_header_case(true)
        .auto_date_header(false)
        .header_read_timeout(None)
        .max_header_size(connection.worker.config.max_head_bytes)
        .max_buf_size(connection.worker.config.max_head_bytes)
        .serve_connection(io, service_stack::of(&connection));
    let mut http = pin!(http);
    let mut stopped = pin!(stop.cancelled_owned());
    let mut mirror = Mirror::default();
    let ended = poll_fn(|cx| {
        if !mirror.stopping && stopped.as_mut().poll(cx).is_ready() {
            mirror.stopping = true;
            http.as_mut().graceful_shutdown();
        }
        loop {
            if let Poll::Ready(ended) = http.as_mut().poll(cx) {
                return Poll::Ready(ended);
            }
            let seen = connection.journal.borrow().up_reads();
            mirror.server_closed |= connection.poll_server(cx).is_ready();
            let idle = connection.journal.borrow().is_idle();
            if mirror.server_closed && idle && !mirror.stopping {
                mirror.stopping = true;
                http.as_mut().graceful_shutdown();
            } else if connection.journal.borrow().up_reads() == seen {
                break;
            }
        }
        match mirror.poll_client(cx, &connection, &socket) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    })
    .await;
    send_what_is_owed(&connection).await;
    if let Err(error) = ended {
        connection.worker.metrics.connection_error(&error);
        tracing::debug!(error = %error, "connection from a client ended");
    }
    drop(closing);
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
    /// Set while a head is on its way.
    head_deadline: Option<Pin<Box<Sleep>>>,
}

impl Mirror {
    /// Looks at the client where hyper does not; ready when the connection is to be dropped.
    fn poll_client(
        &mut self,
        cx: &mut Context<'_>,
        connection: &Connection,
        socket: &TcpStream,
    ) -> Poll<()> {
        if self.poll_head_deadline(cx, connection).is_ready() {
            return Poll::Ready(());
        }
        if connection.journal.borrow().client_waits() {
            let before_ns = realtime_ns();
            let mut byte = [0];
            match socket.poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
                Poll::Ready(Ok(0)) => connection.journal.borrow_mut().client_ended(Read {
                    kernel_ns: None,
                    before_ns,
                    after_ns: realtime_ns(),
                    drained: true,
                }),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                _ => {}
            }
        }
        if !self.half_closed && connection.journal.borrow().half_close_is_due() {
            self.half_closed = true;
            if let Some(server) = connection.server_socket()
                && let Err(error) = SockRef::from(&*server).shutdown(Shutdown::Write)
            {
                tracing::debug!(error = %error, "half close not passed on");
            }
        }
        Poll::Pending
    }

    fn poll_head_deadline(&mut self, cx: &mut Context<'_>, connection: &Connection) -> Poll<()> {
        if !connection.journal.borrow().head_is_open() {
            self.head_deadline = None;
            return Poll::Pending;
        }
        let allowed = connection.worker.config.head_timeout;
        let deadline = self
            .head_deadline
            .get_or_insert_with(|| Box::pin(sleep(allowed)));
        deadline.as_mut().poll(cx)
    }
}
