//! The watches over the receive queues of both endpoints.

use std::sync::Arc;

use skewtap_host::{WatchHandle, WatchRequest};

use super::open_exchange::{OpenExchange, WatchSlot};
use crate::moment::{Arrival, Departure};
use crate::note::Note;
use crate::worker::Worker;

/// The watches that run now; at most one of each kind.
#[derive(Debug, Default)]
pub(super) struct Watches {
    client: Option<WatchHandle>,
    server: Option<WatchHandle>,
}

impl Watches {
    /// Watches the server until it has read the request whose last byte, just before offset
    /// `end`, has left.
    pub(super) fn server(
        &mut self,
        worker: &Worker,
        exchange: &mut OpenExchange,
        end: u64,
        last: Departure,
    ) {
        let Some(up) = &exchange.up else { return };
        let Some(ends) = up.ends.over_tcp() else {
            return;
        };
        let request = WatchRequest {
            peer: ends.peer,
            local: ends.local,
            bytes_sent: end,
            sent_before_ns: last.before_ns,
            watch_accept: up.earlier == 0,
            peer_had_ended: up.closed_ns.is_some(),
        };
        (exchange.server_watch, self.server) = watch(worker, exchange.id, request).unzip();
    }

    /// The server has begun to answer.
    pub(super) fn server_answered(&mut self, exchange: &OpenExchange, at: Arrival) {
        let Some(watch) = self.server.take() else {
            return;
        };
        // An answer proves that the head was read, not that all of a body was.
        let request = exchange.up.as_ref().and_then(|up| up.request);
        if request.is_some_and(|request| request.end == Some(request.head_end)) {
            watch.end_as_read(at.latest_ns());
        }
    }

    /// Watches the client until it has read the response whose last byte, just before offset
    /// `end`, has left.
    pub(super) fn client(
        &mut self,
        worker: &Worker,
        exchange: &mut OpenExchange,
        (end, last): (u64, Departure),
        ended: bool,
    ) {
        let request = WatchRequest {
            peer: exchange.down.peer,
            local: exchange.down.meant,
            bytes_sent: end,
            sent_before_ns: last.before_ns,
            watch_accept: false,
            peer_had_ended: ended,
        };
        (exchange.client_watch, self.client) = watch(worker, exchange.id, request).unzip();
    }

    /// The client sent more, which proves that it had read the response by then.
    pub(super) fn client_went_on(&mut self, at: Arrival) {
        if let Some(watch) = self.client.take() {
            watch.end_as_read(at.latest_ns());
        }
    }

    /// Gives the watch over the client away.
    pub(super) fn take_client(&mut self) -> Option<WatchHandle> {
        self.client.take()
    }
}

fn watch(worker: &Worker, id: u64, request: WatchRequest) -> Option<(WatchSlot, WatchHandle)> {
    let watcher = worker.watcher.as_ref()?;
    let slot = WatchSlot::default();
    let result_slot = Arc::clone(&slot);
    let notes = worker.notes.clone();
    let handle = watcher.watch(request, move |result| {
        // The slot is this watch's own, so it is empty.
        let (Ok(()) | Err(_)) = result_slot.set(result);
        // A refused note only makes the finisher wait for its deadline.
        notes.send(Note::Watched { id });
    });
    Some((slot, handle))
}
