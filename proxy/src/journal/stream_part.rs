//! The stream of an HTTP/2 connection that a part of an exchange took.

use super::leg::{Talk, UpLeg};
use super::open_exchange::{OpenExchange, UpSide};
use crate::moment::{Arrival, Departure};
use crate::stream_log::StreamLog;

/// A stream, with what tells its header blocks apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamPart {
    /// The stream's number.
    pub(crate) id: u32,
    /// Where the oldest message begins that may still be asked for, when the exchange ended:
    /// offsets among the requests and among the responses.
    pub(crate) floor: (u64, u64),
    /// How many interim responses there have been.
    interims: usize,
    /// How many of them came before the first `100 Continue`.
    continue_after: Option<usize>,
    /// The status of the final response, once that is the next header block, or was.
    status: Option<u16>,
}

impl StreamPart {
    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            floor: (0, 0),
            interims: 0,
            continue_after: None,
            status: None,
        }
    }

    /// Takes the status of the next response on the stream.
    pub(super) fn responds(&mut self, status: u16) {
        match status {
            100..200 => {
                if status == 100 {
                    self.continue_after.get_or_insert(self.interims);
                }
                self.interims += 1;
            }
            _ => self.status = Some(status),
        }
    }

    /// Notes how far the messages before it need no longer be kept.
    pub(super) fn ends<Q: Copy, S: Copy>(
        &mut self,
        requests: &StreamLog<Q>,
        responses: &StreamLog<S>,
    ) {
        self.floor = (requests.floor(), responses.floor());
    }
}

impl OpenExchange {
    /// Takes over what the logs of the client's connection have of the exchange.
    pub(super) fn gather(
        &mut self,
        requests: &StreamLog<Arrival>,
        responses: &StreamLog<Departure>,
    ) {
        let Some(part) = self.stream else { return };
        self.request = requests.get(part.id).and_then(|track| track.message(0));
        let Some(track) = responses.get(part.id) else {
            return;
        };
        let at = part.continue_after;
        self.sent_continue = at.and_then(|at| track.interim(at));
        if let Some(status) = part.status {
            self.response = track.message(part.interims);
            self.status = self.response.map(|_| status);
        }
    }
}

impl UpSide {
    /// Takes over what the logs of the connection to the server have of the exchange.
    pub(super) fn gather(&mut self, leg: &UpLeg) {
        let (
            Some(part),
            Talk::Streams {
                requests,
                responses,
            },
        ) = (self.stream, &leg.talk)
        else {
            return;
        };
        self.request = requests.get(part.id).and_then(|track| track.message(0));
        let Some(track) = responses.get(part.id) else {
            return;
        };
        let at = part.continue_after;
        self.got_continue = at.and_then(|at| track.interim(at));
        self.response = part.status.and_then(|_| track.message(part.interims));
        self.tcp.after = leg.tcp.filter(|_| self.response.is_some());
    }
}
