//! What passes on the connection from the client.

use std::os::fd::BorrowedFd;

use skewtap_core::exchange::Outcome;
use skewtap_sockstamp::tcp_info;

use super::Journal;
use super::leg::ReadBytes;
use crate::message_log::Passed;
use crate::moment::{Arrival, Departure, Read};
use crate::note::Note;
use crate::strict_head;

impl Journal {
    pub(super) fn read_down(&mut self, bytes: &[u8], read: Read, socket: BorrowedFd<'_>) {
        if bytes.is_empty() {
            self.client_ended(read);
            return;
        }
        let span = (self.down.requests.offset(), bytes.len());
        let this_read = ReadBytes::new(self.down.bounds, read, span, socket);
        if self.listening_for.is_some() {
            self.heard_from_client(this_read.first());
        }
        let Self {
            down,
            waiting,
            open,
            served,
            head_fault,
            ..
        } = self;
        let responses = &mut down.responses;
        let (mut heads, mut refused, mut ended) = (0_u64, 0_u64, false);
        down.requests.feed(
            bytes,
            |offset| this_read.at(offset),
            |passed, head| match passed {
                Passed::Head { message, .. } => {
                    responses.expect_response_to(head.method);
                    if let (None, Err(fault)) = (&head_fault, strict_head::check(head.bytes)) {
                        *head_fault = Some((message.index, fault));
                    }
                    heads += 1;
                    refused += u64::from(!waiting.push(message));
                }
                Passed::Interim { .. } => {}
                Passed::End { index, end, last } if index < *served => {
                    if let Some(exchange) = open.back_mut() {
                        exchange.request_ended(end, last);
                        ended = true;
                    }
                }
                Passed::End { index, end, last } => waiting.end(index, end, last),
            },
        );
        let (bounds, figures) = this_read.done();
        (down.bounds, down.tcp) = (bounds, figures.or(down.tcp));
        self.pipelines |= heads > 1 || (heads > 0 && !self.open.is_empty());
        self.worker.metrics.messages_lost(refused);
        if ended {
            self.finish_if_over();
        }
    }

    pub(super) fn wrote_down(&mut self, bytes: &[u8], when: Departure, socket: BorrowedFd<'_>) {
        let Self { down, open, .. } = self;
        let mut ended = None;
        down.responses.feed(
            bytes,
            |_| when,
            when,
            |passed, _| match passed {
                Passed::Interim { message, status } => {
                    if let Some(exchange) = open.front_mut() {
                        exchange.interim_sent(message, status);
                    }
                }
                Passed::Head { message, status } => {
                    if let Some(exchange) = open.front_mut() {
                        exchange.response_began(message, status);
                    }
                }
                Passed::End { end, last, .. } => ended = Some((end, last)),
            },
        );
        if let Some((end, last)) = ended {
            self.down.tcp = tcp_info(socket).ok().or(self.down.tcp);
            self.response_ended(end, last);
        }
    }

    pub(super) fn response_ended(&mut self, end: u64, last: Departure) {
        if let Some(exchange) = self.open.front_mut() {
            exchange.response_ended(end, last);
            let sent = self.down.ciphertext.unwrap_or(end);
            self.watches
                .client(&self.worker, exchange, (sent, last), self.down_ended);
            self.finish_if_over();
        }
    }

    /// Takes the client's next sign of life after a response, be it bytes or the end.
    pub(super) fn heard_from_client(&mut self, at: Arrival) {
        if let Some((id, response)) = self.listening_for.take() {
            // What had come before the response left proves nothing, then or later.
            self.pipelines |= at.latest_ns() < response.before_ns;
            let at = (!self.pipelines).then_some(at);
            if let (Some(at), false) = (at, self.down_ended) {
                self.watches.client_went_on(at);
            }
            let watch = self.watches.take_client();
            self.tell(Note::Activity { id, at, watch });
        }
    }

    pub(super) fn client_left(&mut self) {
        if !self.down_ended && self.head_is_open() {
            self.worker.metrics.head_cut_short();
        }
        self.down_ended = true;
        self.fault(Outcome::ClientGone);
    }
}
