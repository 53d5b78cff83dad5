//! What passes on the connection to the server.

use std::os::fd::BorrowedFd;

use skewtap_core::exchange::Outcome;

use super::Journal;
use super::leg::ReadBytes;
use crate::message_log::Passed;
use crate::moment::{Departure, Read};

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
        let span = (up.responses.offset(), bytes.len());
        let this_read = ReadBytes::new(up.bounds, read, span, socket);
        watches.server_answered(exchange, this_read.latest());
        up.responses.feed(
            bytes,
            |offset| this_read.at(offset),
            this_read.latest(),
            |passed, head| match passed {
                Passed::Interim { message, status } => {
                    exchange.interim_arrived(message, status);
                    if exchange.takes_interim() {
                        interim.push(head);
                    }
                }
                Passed::Head { message, status } => exchange.answer_began(message, status),
                Passed::End { end, last, .. } => {
                    exchange.answer_ended(end, last, this_read.figures());
                }
            },
        );
        if up.responses.is_malformed() {
            exchange.fault(Outcome::UpstreamMalformed);
        }
        let (bounds, figures) = this_read.done();
        (up.bounds, up.tcp) = (bounds, figures.or(up.tcp));
    }

    pub(super) fn server_ended(&mut self, read: Read) {
        self.up_ended = true;
        if let (Some(up), Some(exchange)) = (&mut self.up, self.open.back_mut()) {
            exchange.server_closed(read.after_ns);
            up.responses.end_of_stream(|passed| {
                if let Passed::End { end, last, .. } = passed {
                    exchange.answer_ended(end, last, None);
                }
            });
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
        if up.requests.between_messages() {
            // A response cannot have come before its request left.
            up.bounds.nothing_before(when.before_ns);
        }
        let (responses, ciphertext) = (&mut up.responses, up.ciphertext);
        let mut ended = false;
        up.requests.feed(
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
        if ended {
            self.finish_if_over();
        }
    }
}
