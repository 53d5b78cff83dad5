//! What passes on a connection to a server.

use std::os::fd::BorrowedFd;

use skewtap_core::exchange::Outcome;

use super::Journal;
use super::leg::{ReadBytes, Talk, UpLeg};
use super::open_exchange::OpenExchange;
use super::watches::Watches;
use crate::message_log::Passed;
use crate::moment::{Arrival, Departure, Read};
use crate::stream_log::StreamPassed;
use crate::worker::Worker;

impl Journal {
    pub(super) fn read_up(&mut self, bytes: &[u8], read: Read, socket: BorrowedFd<'_>) {
        self.up_reads += 1;
        if bytes.is_empty() {
            self.server_ended(read);
            return;
        }
        let Self {
            up,
            open,
            interim,
            watches,
            ..
        } = self;
        let (Some(up), Some(exchange)) = (up, open.back_mut()) else {
            return;
        };
        up.answered(exchange, watches, (bytes, read, socket), |head| {
            interim.push(head);
        });
    }

    pub(super) fn server_ended(&mut self, read: Read) {
        self.up_ended = true;
        if let (Some(up), Some(exchange)) = (&mut self.up, self.open.back_mut()) {
            up.ended(exchange, read);
        }
        self.fault(Outcome::UpstreamBroken);
    }

    pub(super) fn wrote_up(&mut self, bytes: &[u8], when: Departure) {
        let Self {
            up,
            open,
            watches,
            worker,
            ..
        } = self;
        let (Some(up), Some(exchange)) = (up, open.back_mut()) else {
            return;
        };
        if up.asked(exchange, watches, worker, (bytes, when)) {
            self.finish_if_over();
        }
    }

    /// Ties the exchange now being served to a stream of the connection to the server.
    pub(crate) fn sent_up_on(&mut self, stream: u32) {
        if let (Some(exchange), Some(up)) = (self.open.back_mut(), &mut self.up) {
            exchange.up = Some(up.begin(Some(stream)));
        }
    }

    /// Takes the status of a response that came on a stream, be it interim or final.
    pub(crate) fn stream_responds(&mut self, status: u16) {
        if let (Some(exchange), Some(up)) = (self.open.back_mut(), &self.up) {
            up.responds(exchange, &mut self.watches, status);
        }
    }

    /// Takes an interim response in the form of HTTP/1, if the client's version has any.
    pub(crate) fn relay_interim(&mut self, head: &[u8]) {
        let newest = self.open.back();
        if newest.is_some_and(|exchange| exchange.takes_interim()) {
            self.interim.push(head);
        }
    }
}

impl UpLeg {
    /// Takes a read that concerns `exchange`, the only one under way here; interim responses of
    /// HTTP/1 for a client that takes them go to `interim`.
    pub(super) fn answered(
        &mut self,
        exchange: &mut OpenExchange,
        watches: &mut Watches,
        (bytes, read, socket): (&[u8], Read, BorrowedFd<'_>),
        mut interim: impl FnMut(&[u8]),
    ) {
        let Talk::Messages { responses, .. } = &mut self.talk else {
            let passed = self.stream_answers(bytes, read, socket);
            if let Some(side) = &mut exchange.up {
                side.gather(self);
                let ours = side
                    .stream
                    .map(|part| StreamPassed::Reset { stream: part.id });
                if passed.iter().any(|passed| Some(*passed) == ours) {
                    exchange.fault(Outcome::UpstreamBroken);
                }
            }
            return;
        };
        let span = (responses.offset(), bytes.len());
        let this_read = ReadBytes::new(self.bounds, read, span, socket);
        watches.server_answered(exchange, this_read.latest());
        responses.feed(
            bytes,
            |offset| this_read.at(offset),
            this_read.latest(),
            |passed, head| match passed {
                Passed::Interim { message, status } => {
                    exchange.interim_arrived(message, status);
                    if exchange.takes_interim() {
                        interim(head);
                    }
                }
                Passed::Head { message, status } => exchange.answer_began(message, status),
                Passed::End { end, last, .. } => {
                    exchange.answer_ended(end, last, this_read.figures());
                }
            },
        );
        if responses.is_malformed() {
            exchange.fault(Outcome::UpstreamMalformed);
        }
        let (bounds, figures) = this_read.done();
        (self.bounds, self.tcp) = (bounds, figures.or(self.tcp));
    }

    /// Takes the end of what the server sends.
    pub(super) fn ended(&mut self, exchange: &mut OpenExchange, read: Read) {
        exchange.server_closed(read.after_ns);
        let Talk::Messages { responses, .. } = &mut self.talk else {
            return;
        };
        responses.end_of_stream(|passed| {
            if let Passed::End { end, last, .. } = passed {
                exchange.answer_ended(end, last, None);
            }
        });
    }

    /// Takes a write that belongs to `exchange`, the only one under way here; whether it had
    /// the last byte of the request.
    pub(super) fn asked(
        &mut self,
        exchange: &mut OpenExchange,
        watches: &mut Watches,
        worker: &Worker,
        (bytes, when): (&[u8], Departure),
    ) -> bool {
        let ciphertext = self.ciphertext;
        let Talk::Messages {
            requests,
            responses,
        } = &mut self.talk
        else {
            let ended = self.stream_asks(bytes, when).pop();
            if let Some(side) = &mut exchange.up {
                side.gather(self);
            }
            let Some(StreamPassed::End { end, last, .. }) = ended else {
                return false;
            };
            watches.server(worker, exchange, ciphertext.unwrap_or(end), last);
            return true;
        };
        if requests.between_messages() {
            // A response cannot have come before its request left.
            self.bounds.nothing_before(when.before_ns);
        }
        let mut ended = false;
        requests.feed(
            bytes,
            |_| when,
            |passed, head| match passed {
                Passed::Head { message, .. } => {
                    responses.expect_response_to(head.method);
                    exchange.ask_began(message);
                }
                Passed::Interim { .. } => {}
                Passed::End { end, last, .. } => {
                    exchange.ask_ended(end, last);
                    watches.server(worker, exchange, ciphertext.unwrap_or(end), last);
                    ended = true;
                }
            },
        );
        ended
    }

    /// Takes a read of frames; gives what it completed.
    pub(super) fn stream_answers(
        &mut self,
        bytes: &[u8],
        read: Read,
        socket: BorrowedFd<'_>,
    ) -> Vec<StreamPassed<Arrival>> {
        let mut found = Vec::new();
        let Talk::Streams { responses, .. } = &mut self.talk else {
            return found;
        };
        let span = (responses.offset(), bytes.len());
        let this_read = ReadBytes::new(self.bounds, read, span, socket);
        responses.feed(
            bytes,
            |offset| this_read.at(offset),
            |passed| found.push(passed),
        );
        this_read.keep_counting(self.tls);
        let (bounds, figures) = this_read.done();
        (self.bounds, self.tcp) = (bounds, figures.or(self.tcp));
        found
    }

    /// Takes a write of frames; gives what it completed.
    pub(super) fn stream_asks(
        &mut self,
        bytes: &[u8],
        when: Departure,
    ) -> Vec<StreamPassed<Departure>> {
        let mut found = Vec::new();
        if let Talk::Streams { requests, .. } = &mut self.talk {
            requests.feed(bytes, |_| when, |passed| found.push(passed));
        }
        found
    }

    /// Takes the status of a response that came on the stream of `exchange`.
    pub(super) fn responds(&self, exchange: &mut OpenExchange, watches: &mut Watches, status: u16) {
        let Some(side) = &mut exchange.up else { return };
        if let Some(part) = &mut side.stream {
            part.responds(status);
        }
        side.gather(self);
        let response = side.response.or(side.got_continue);
        if let Some(response) = response {
            watches.server_answered(exchange, response.first);
        }
    }
}
