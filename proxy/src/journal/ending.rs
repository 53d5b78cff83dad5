//! How a connection ends, and what that makes of the exchanges still open on it.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use skewtap_core::exchange::Outcome;

use super::{Journal, Side};

/// Whether the peer broke the connection, rather than some timer or this machine.
pub(crate) fn is_reset(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

/// Closes what is open of a journal, also when its task is dropped.
pub(crate) struct Closing(pub(crate) Rc<RefCell<Journal>>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.borrow_mut().close();
    }
}

impl Journal {
    /// The side that broke its connection with a reset, if that is to be passed on: the proxy's own
    /// answer stands in the place of a server's reset.
    pub(crate) fn reset_by(&self) -> Option<Side> {
        self.reset_by
            .filter(|side| *side == Side::Down || !self.own_answer)
    }

    /// Whether the client sends no more.
    pub(crate) fn client_has_ended(&self) -> bool {
        self.down_ended
    }

    /// Whether the server sends no more.
    pub(crate) fn server_has_ended(&self) -> bool {
        self.up_ended
    }

    /// Whether the latest answer was the proxy's own.
    pub(crate) fn answered_by_proxy(&self) -> bool {
        self.own_answer
    }

    /// Bytes sent to a client that had closed its half before it was sent the response, as its
    /// socket counts them; `None` if there was no such response.
    pub(crate) fn sent_on_socket(&self) -> Option<u64> {
        let oldest = self.open.front();
        let written = oldest.is_some_and(|open| open.response_was_written());
        written.then(|| self.down.ciphertext.unwrap_or(self.sent_to_client()))
    }

    /// Notes that the response found nobody left to take it.
    pub(crate) fn client_refused(&mut self) {
        if let Some(exchange) = self.open.front_mut() {
            exchange.outcome = Some(Outcome::ClientGone);
        }
    }

    /// Closes whatever is still open when the connection ends.
    pub(crate) fn close(&mut self) {
        while let Some(mut exchange) = self.open.pop_front() {
            if self.worker.cuts_off() {
                exchange.cut_off();
            }
            exchange.settle();
            let id = exchange.id;
            self.hand_over(exchange);
            self.no_activity(id);
        }
        if let Some((id, _)) = self.listening_for.take() {
            self.no_activity(id);
        }
    }
}
