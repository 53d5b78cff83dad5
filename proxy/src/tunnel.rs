//! Carries bytes both ways once a connection has left HTTP: after `CONNECT` and after 101.
//!
//! Nothing is looked at. Bytes go on as they come, a close of one half is passed on when all
//! that came before it has been, and a broken connection breaks the other one too.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::IoSlice;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};

use crate::journal::{Journal, Side};
use crate::stamped_io::Scratch;
use crate::transport::Transport;

/// One end of a tunnel.
#[derive(Debug)]
pub(crate) struct End {
    /// The connection.
    pub(crate) transport: Transport,
    /// What came on it before the tunnel stood, not yet passed on.
    pub(crate) early: Bytes,
}

/// Carries bytes until both sides have closed, or one broke.
pub(crate) async fn run(journal: &RefCell<Journal>, scratch: &Scratch, client: End, server: End) {
    let (down, up) = (client.transport, server.transport);
    let mut to_server = Way::new(Side::Down, client.early);
    let mut to_client = Way::new(Side::Up, server.early);
    let broken = poll_fn(|cx| {
        let there = to_server.poll(cx, (&down, &up), (journal, scratch));
        let back = to_client.poll(cx, (&up, &down), (journal, scratch));
        match (there, back) {
            (Poll::Ready(Err(side)), _) | (_, Poll::Ready(Err(side))) => Poll::Ready(Some(side)),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    })
    .await;
    if let Some(side) = broken {
        journal.borrow_mut().tunnel_broke(side);
        match side {
            Side::Down => up.reset_on_close(),
            Side::Up => down.reset_on_close(),
        }
    }
}

/// One direction.
struct Way {
    from: Side,
    unsent: Bytes,
    ended: bool,
    closed: bool,
}

impl Way {
    fn new(from: Side, early: Bytes) -> Self {
        Self {
            from,
            unsent: early,
            ended: false,
            closed: false,
        }
    }

    /// Ready when the end has been passed on, or with the side that broke.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        (from, to): (&Transport, &Transport),
        (journal, scratch): (&RefCell<Journal>, &Scratch),
    ) -> Poll<Result<(), Side>> {
        let (source, sink) = (self.from, self.from.other());
        loop {
            if self.closed {
                return Poll::Ready(Ok(()));
            }
            while !self.unsent.is_empty() {
                let piece = [IoSlice::new(&self.unsent)];
                let (sent, _) = ready!(to.poll_send(cx, &piece)).map_err(|_| sink)?;
                self.unsent.advance(sent);
            }
            if self.ended {
                ready!(to.poll_close(cx)).map_err(|_| sink)?;
                self.closed = true;
                continue;
            }
            let mut space = scratch.borrow_mut();
            let (count, read) = ready!(from.poll_receive(cx, &mut space)).map_err(|_| source)?;
            let mut bytes = space.get(..count).unwrap_or_default();
            self.ended = bytes.is_empty();
            let mut journal = journal.borrow_mut();
            journal.tunnelled(source, count, read, from.socket());
            // Mostly all of it can go on at once, without being kept.
            while !bytes.is_empty() {
                match to.poll_send(cx, &[IoSlice::new(bytes)]) {
                    Poll::Ready(Ok((sent, _))) => bytes.advance(sent.min(bytes.len())),
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(sink)),
                    Poll::Pending => {
                        self.unsent = Bytes::copy_from_slice(bytes);
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}
