//! The end of a client's connection: what either side did to close is done to the other, when it
//! happens and as it happened.
//!
//! HTTP is over by then. Bytes that still come are of no use to anybody; they are taken and dropped,
//! because a close over unread bytes is a reset, and that could cost the client a response that it
//! has not read yet.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use crate::connection::Connection;
use crate::journal::{Side, is_reset};
use crate::moment::Read;
use crate::stamped_io::Scratch;
use crate::transport::Transport;

/// How long one side may be silent after the other has closed, and how long it may go on sending.
const SILENT: Duration = Duration::from_secs(2);
const SENDING: Duration = Duration::from_secs(30);

/// How long the kernel of a client that had closed its half may take to say whether anybody is
/// still there.
const CONFIRMED: Duration = Duration::from_secs(1);

/// Why HTTP is over on a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// One of the two sides wants no more.
    ByThem,
    /// The proxy wants no more.
    ByProxy,
}

/// Passes on how the connection ends.
pub(crate) async fn say(
    connection: &Connection,
    client: &Transport,
    ended: Ended,
    stop: &CancellationToken,
) {
    let server = connection.server_transport();
    if let Some(side) = connection.journal.borrow().reset_by() {
        pass_reset_on(side, client, server.as_ref());
        return;
    }
    let (client_left, own_answer) = {
        let journal = connection.journal.borrow();
        (journal.client_has_ended(), journal.answered_by_proxy())
    };
    let theirs = ended == Ended::ByThem && !client_left && !own_answer && !stop.is_cancelled();
    match server.filter(|_| theirs && !connection.server_waits_for_close()) {
        Some(server) => {
            let closing = Closing::new(connection, client, server).run();
            stop.run_until_cancelled(closing).await;
        }
        None => {
            close(client).await;
            if let Some(server) = connection.server_transport() {
                close(&server).await;
            }
        }
    }
    if client_left && is_refused(connection, client).await {
        connection.journal.borrow_mut().client_refused();
    }
}

fn pass_reset_on(side: Side, client: &Transport, server: Option<&Transport>) {
    match side {
        Side::Down => {
            if let Some(server) = server {
                server.reset_on_close();
            }
        }
        Side::Up => client.reset_on_close(),
    }
}

/// Closes the sending half, if that can be done at once.
async fn close(transport: &Transport) {
    poll_fn(|cx| {
        close_at_once(transport, cx);
        Poll::Ready(())
    })
    .await;
}

fn close_at_once(transport: &Transport, cx: &mut Context<'_>) {
    if let Poll::Ready(Err(error)) = transport.poll_close(cx) {
        tracing::debug!(error = %error, "a side not told of the end");
    }
}

/// Whether the client's kernel answers the end of a response with a reset: there was nobody left
/// to take it.
async fn is_refused(connection: &Connection, client: &Transport) -> bool {
    let Some(sent) = connection.journal.borrow().sent_on_socket() else {
        return false;
    };
    let (deadline, mut pause) = (Instant::now() + CONFIRMED, Duration::from_micros(500));
    loop {
        if client.has_failed() {
            return true;
        }
        if client.acknowledged().is_none_or(|bytes| bytes >= sent) || Instant::now() >= deadline {
            return false;
        }
        sleep(pause).await;
        pause *= 2;
    }
}

/// Both connections, until both sides have closed.
struct Closing<'a> {
    connection: &'a Connection,
    client: Half,
    server: Half,
    /// When the first side closed.
    since: Option<Instant>,
}

/// One side, as far as it sends.
struct Half {
    transport: Transport,
    ended: bool,
}

/// What a side has done since it was looked at last.
enum News {
    Nothing,
    Sent,
    Ended(Option<Read>),
    Reset,
}

impl<'a> Closing<'a> {
    fn new(connection: &'a Connection, client: &Transport, server: Transport) -> Self {
        let half = |transport, ended| Half { transport, ended };
        let server_has_ended = connection.journal.borrow().server_has_ended();
        Self {
            connection,
            client: half(client.clone(), false),
            server: half(server, server_has_ended),
            since: None,
        }
    }

    async fn run(mut self) {
        let mut deadline = pin!(sleep(self.connection.worker.config.idle_timeout));
        poll_fn(|cx| self.poll(cx, deadline.as_mut())).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>, mut deadline: Pin<&mut Sleep>) -> Poll<()> {
        let scratch = &self.connection.worker.scratch;
        let heard = match self.client.news(cx, scratch) {
            News::Nothing => false,
            News::Sent => true,
            News::Ended(read) => {
                if let Some(read) = read {
                    self.connection.journal.borrow_mut().client_ended(read);
                }
                true
            }
            News::Reset => {
                self.server.transport.reset_on_close();
                return Poll::Ready(());
            }
        };
        if let News::Reset = self.server.news(cx, scratch) {
            self.client.transport.reset_on_close();
            return Poll::Ready(());
        }
        if self.client.ended {
            close_at_once(&self.server.transport, cx);
        }
        if self.server.ended {
            close_at_once(&self.client.transport, cx);
        }
        match (self.client.ended, self.server.ended) {
            (true, true) => return Poll::Ready(()),
            (false, false) => {}
            _ => {
                let now = Instant::now();
                let first = self.since.is_none();
                let since = *self.since.get_or_insert(now);
                if first || heard {
                    deadline.as_mut().reset((now + SILENT).min(since + SENDING));
                }
            }
        }
        deadline.as_mut().poll(cx)
    }
}

impl Half {
    /// Takes what has come and drops it.
    fn news(&mut self, cx: &mut Context<'_>, scratch: &Scratch) -> News {
        if self.ended {
            return News::Nothing;
        }
        let mut news = News::Nothing;
        let mut space = scratch.borrow_mut();
        loop {
            match self.transport.poll_receive(cx, &mut space) {
                Poll::Pending => return news,
                Poll::Ready(Ok((1.., _))) => news = News::Sent,
                Poll::Ready(Ok((0, read))) => {
                    self.ended = true;
                    return News::Ended(Some(read));
                }
                Poll::Ready(Err(error)) => {
                    self.ended = true;
                    return if is_reset(&error) {
                        News::Reset
                    } else {
                        News::Ended(None)
                    };
                }
            }
        }
    }
}
