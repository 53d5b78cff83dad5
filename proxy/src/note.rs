//! What a worker tells the finisher, in a queue that never makes it wait.

use skewtap_host::WatchHandle;
use tokio::sync::mpsc;

use crate::journal::OpenExchange;
use crate::moment::Arrival;

/// A piece of news about one exchange.
#[derive(Debug)]
pub(crate) enum Note {
    /// The exchange is over; all its stamps on the proxy's own sockets are there.
    Finished(Box<OpenExchange>),
    /// A watch over one of the exchange's endpoints has ended; its result is in the exchange.
    Watched {
        /// Which exchange.
        id: u64,
    },
    /// The first byte or the end of stream from the client after the response; `None` if there
    /// will be no such sign.
    Activity {
        /// Which exchange.
        id: u64,
        /// When it came.
        at: Option<Arrival>,
        /// The watch over a client that has ended or gone, which goes on by itself: the kernel
        /// knows whether the response was read before.
        watch: Option<WatchHandle>,
    },
}

/// The sending end of the queue to the finisher.
#[derive(Clone, Debug)]
pub(crate) struct Notes {
    queue: mpsc::Sender<Note>,
}

impl Notes {
    /// A queue that holds up to `room` notes.
    pub(crate) fn new(room: usize) -> (Self, mpsc::Receiver<Note>) {
        let (queue, receiver) = mpsc::channel(room);
        (Self { queue }, receiver)
    }

    /// Hands a note over without waiting; whether there was room.
    pub(crate) fn send(&self, note: Note) -> bool {
        self.queue.try_send(note).is_ok()
    }
}
