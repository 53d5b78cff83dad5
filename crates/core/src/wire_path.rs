//! The way of one exchange through the proxy, as instants in order.

use crate::clock::{ProxyClock, Stamp};
use crate::exchange::ExchangeRecord;
use crate::milestone::Milestone;

/// The instants that the rows of a ledger lie between. What was not stamped is `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WirePath {
    /// First request byte from the client.
    pub(crate) request_first: Option<Stamp<ProxyClock>>,
    /// The request from the client is complete; its head, if the answer came before the rest.
    pub(crate) request_in: Option<Stamp<ProxyClock>>,
    /// First request byte to the server.
    pub(crate) asked_first: Option<Stamp<ProxyClock>>,
    /// The same as `request_in`, sent on to the server.
    pub(crate) asked: Option<Stamp<ProxyClock>>,
    /// First byte of the final response from the server.
    pub(crate) answer_first: Option<Stamp<ProxyClock>>,
    /// Last byte of the response from the server.
    pub(crate) answered: Option<Stamp<ProxyClock>>,
    /// Last byte of the response to the client.
    pub(crate) response_out: Option<Stamp<ProxyClock>>,
    /// The client's application has read it.
    pub(crate) picked_up: Option<Stamp<ProxyClock>>,
    /// Whether the response began before the request was complete.
    pub(crate) early_answer: bool,
}

impl WirePath {
    pub(crate) fn of(exchange: &ExchangeRecord) -> Self {
        let best = |milestone| exchange.milestones.best(milestone);
        let answer_first = best(Milestone::UpResponseFirst);
        let last_out = best(Milestone::UpRequestLast);
        let early_answer = match (answer_first, last_out) {
            (Some(answer), Some(last)) => answer.hi() < last.lo(),
            (Some(_), None) => true,
            (None, _) => false,
        };
        let (request_in, asked) = if early_answer {
            (
                best(Milestone::DownRequestHead),
                best(Milestone::UpRequestHead),
            )
        } else {
            (best(Milestone::DownRequestLast), last_out)
        };
        Self {
            request_first: best(Milestone::DownRequestFirst),
            request_in,
            asked_first: best(Milestone::UpRequestFirst),
            asked,
            answer_first,
            answered: best(Milestone::UpResponseLast),
            response_out: best(Milestone::DownResponseLast),
            picked_up: best(Milestone::ClientPickedUp),
            early_answer,
        }
    }

    /// The latest instant at which the client had not more than begun to use the response.
    pub(crate) fn end(&self) -> Option<Stamp<ProxyClock>> {
        self.picked_up.or(self.response_out)
    }
}
