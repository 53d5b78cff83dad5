//! What passes on the connections that belong together.

use std::os::fd::BorrowedFd;

use skewtap_core::exchange::Outcome;
use skewtap_sockstamp::tcp_info;

use super::{Multiplexed, Open};
use crate::journal::leg::{ReadBytes, Talk};
use crate::moment::{Departure, Read};
use crate::stream_log::StreamPassed;

impl Multiplexed {
    pub(super) fn read_down(&mut self, bytes: &[u8], read: Read, socket: BorrowedFd<'_>) {
        if bytes.is_empty() {
            self.client_left();
            return;
        }
        let span = (self.down.requests.offset(), bytes.len());
        let this_read = ReadBytes::new(self.down.bounds, read, span, socket);
        let mut found = Vec::new();
        self.down.requests.feed(
            bytes,
            |offset| this_read.at(offset),
            |passed| found.push(passed),
        );
        this_read.keep_counting(self.down.tls);
        let (bounds, figures) = this_read.done();
        (self.down.bounds, self.down.tcp) = (bounds, figures.or(self.down.tcp));
        for passed in found {
            if let StreamPassed::Reset { stream } = passed {
                let is_over = self.down.requests.get(stream).is_none();
                self.taken_back += u64::from(!is_over);
                self.fault(stream, Outcome::ClientGone);
                self.with(stream, |open| open.reset = true);
                self.finish_if_over(stream);
            }
        }
    }

    pub(super) fn wrote_down(&mut self, bytes: &[u8], when: Departure, socket: BorrowedFd<'_>) {
        let mut found = Vec::new();
        let responses = &mut self.down.responses;
        responses.feed(bytes, |_| when, |passed| found.push(passed));
        for passed in found {
            match passed {
                StreamPassed::End { stream, end, last } => {
                    self.down.tcp = tcp_info(socket).ok().or(self.down.tcp);
                    self.response_ended(stream, end, last);
                }
                // One that never became an exchange was refused by the HTTP library.
                StreamPassed::Reset { stream } if !self.open.contains_key(&stream) => {
                    self.down.requests.forget(stream);
                }
                StreamPassed::Reset { stream } => {
                    self.with(stream, |open| open.reset = true);
                    self.finish_if_over(stream);
                }
            }
        }
    }

    fn response_ended(&mut self, stream: u32, end: u64, last: Departure) {
        self.gather(stream);
        let Self {
            down, open, worker, ..
        } = self;
        if let Some(open) = open.get_mut(&stream) {
            let sent = down.ciphertext.unwrap_or(end);
            let ended = self.down_ended;
            open.watches
                .client(worker, &mut open.exchange, (sent, last), ended);
        }
        self.finish_if_over(stream);
    }

    pub(super) fn read_up(
        &mut self,
        number: u64,
        bytes: &[u8],
        read: Read,
        socket: BorrowedFd<'_>,
    ) {
        if bytes.is_empty() {
            self.server_ended(number, read);
            return;
        }
        let Some(server) = self.servers.get_mut(&number) else {
            return;
        };
        if let Talk::Messages { .. } = server.leg.talk {
            let current = server.current.and_then(|stream| self.open.get_mut(&stream));
            if let Some(Open {
                exchange, watches, ..
            }) = current
            {
                let read = (bytes, read, socket);
                server.leg.answered(exchange, watches, read, |_| {});
            }
            return;
        }
        for passed in server.leg.stream_answers(bytes, read, socket) {
            let (StreamPassed::End { stream, .. } | StreamPassed::Reset { stream }) = passed;
            let ours = self.servers.get(&number);
            if let Some(ours) = ours.and_then(|server| server.streams.get(&stream)).copied() {
                self.gather(ours);
            }
        }
    }

    fn server_ended(&mut self, number: u64, read: Read) {
        for stream in self.streams_of(number) {
            self.gather(stream);
            let (Some(open), Some(server)) =
                (self.open.get_mut(&stream), self.servers.get_mut(&number))
            else {
                continue;
            };
            server.leg.ended(&mut open.exchange, read);
            open.exchange.fault(Outcome::UpstreamBroken);
        }
    }

    pub(super) fn wrote_up(&mut self, number: u64, bytes: &[u8], when: Departure) {
        let Some(server) = self.servers.get_mut(&number) else {
            return;
        };
        let worker = &self.worker;
        if let Talk::Messages { .. } = server.leg.talk {
            let current = server.current.and_then(|stream| self.open.get_mut(&stream));
            if let Some(Open {
                exchange, watches, ..
            }) = current
            {
                server.leg.asked(exchange, watches, worker, (bytes, when));
            }
            return;
        }
        let ciphertext = server.leg.ciphertext;
        for passed in server.leg.stream_asks(bytes, when) {
            let StreamPassed::End { stream, end, last } = passed else {
                continue;
            };
            let ours = server.streams.get(&stream);
            if let Some(open) = ours.and_then(|ours| self.open.get_mut(ours)) {
                if let Some(side) = &mut open.exchange.up {
                    side.gather(&server.leg);
                }
                let sent = ciphertext.unwrap_or(end);
                open.watches.server(worker, &mut open.exchange, sent, last);
            }
        }
    }
}
