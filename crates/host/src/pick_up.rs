//! From look-ups to when an application had read what was sent to it.
//!
//! Pure: answers in, outcome out. What has to be told apart:
//!
//! | the endpoint's socket | our own end | means |
//! |---|---|---|
//! | has as many bytes read as were sent | | read |
//! | fewer, and a process holds it | | unread |
//! | fewer, no process holds it, still live | | not accepted yet |
//! | fewer, no process holds it, finishing | | left unread |
//! | remembered: it closed in order, so it had read all that had come | if the endpoint finished first, all must be acknowledged | read |
//! | absent, seen unread before | remembered: it closed in order, after us | read |
//! | absent, seen unread before | anything else: it was reset, which closing with bytes unread does, and other ends do too | left unread |
//! | absent, never seen | remembered, and the endpoint's address is this machine's | read |
//! | absent, never seen | live | not here |
//! | absent, never seen | absent, and the endpoint's address is this machine's | reset before the first look: cannot be told |
//!
//! An application that ends its sending side before it reads, and goes on
//! holding its socket, is remembered in the same way as one that has read and
//! closed; where that can be the case nothing is concluded from it.

use skewtap_core::clock::{ProxyClock, Source, Stamp};
use skewtap_core::endpoint::{QueueOutcome, QueueWatch};

use crate::sock_diag::{Look, OpenSocket, State};
use crate::watch::WatchRequest;

/// A look-up with the clock read before and after it, `CLOCK_REALTIME` in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    pub(crate) before_ns: i64,
    pub(crate) after_ns: i64,
    pub(crate) look: Look,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Bytes are unread: look again after a while.
    Unread,
    /// Nothing can be said yet: look again after a while.
    LookAgain,
    /// Look up our own end, and hand that to [`PickUp::own_end`].
    AskOwnEnd,
    /// The watch is over.
    Over,
}

/// What is known of one message.
#[derive(Debug)]
pub(crate) struct PickUp {
    sent: u64,
    sent_before_ns: i64,
    watch_accept: bool,
    /// The endpoint ended its sending side while it went on holding its socket.
    half_closed: bool,
    same_machine: bool,
    seen: bool,
    unread_ns: Option<i64>,
    unaccepted_ns: Option<i64>,
    accepted: Option<Stamp<ProxyClock>>,
    polls: u32,
    unread_polls: u32,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Read { hi_ns: i64 },
    LeftUnread,
    NotHere,
    CannotTell,
}

impl PickUp {
    pub(crate) fn new(request: &WatchRequest) -> Self {
        let peer = request.peer.ip().to_canonical();
        Self {
            sent: request.bytes_sent,
            sent_before_ns: request.sent_before_ns,
            watch_accept: request.watch_accept,
            half_closed: request.peer_had_ended,
            same_machine: peer.is_loopback() || peer == request.local.ip().to_canonical(),
            seen: false,
            unread_ns: None,
            unaccepted_ns: None,
            accepted: None,
            polls: 0,
            unread_polls: 0,
            end: None,
        }
    }

    /// Takes in a look-up of the endpoint's socket.
    pub(crate) fn look(&mut self, looked: &Looked) -> Next {
        self.polls = self.polls.saturating_add(1);
        match looked.look {
            Look::Open(socket) => self.open(looked, &socket),
            Look::Remembered(_) if self.half_closed => self.over(End::CannotTell),
            Look::Remembered(State::TimeWait) => self.over(End::Read {
                hi_ns: looked.after_ns,
            }),
            Look::Remembered(State::Finishing) | Look::Absent => Next::AskOwnEnd,
            Look::Remembered(_) => Next::LookAgain,
            Look::Refused(_) => self.over(End::CannotTell),
        }
    }

    /// Takes in a look-up of our own end, after `endpoint` had said [`Next::AskOwnEnd`].
    pub(crate) fn own_end(&mut self, endpoint: &Looked, own: &Look) -> Next {
        let read = End::Read {
            hi_ns: endpoint.after_ns,
        };
        let remembered = matches!(own, Look::Remembered(_));
        if matches!(endpoint.look, Look::Remembered(_)) {
            // It closed with nothing unread; what had not arrived by then is not acknowledged.
            return match own {
                Look::Open(socket) if socket.unacknowledged > 0 => Next::LookAgain,
                Look::Open(_) | Look::Remembered(_) => self.over(read),
                Look::Absent | Look::Refused(_) => self.over(End::CannotTell),
            };
        }
        self.over(match own {
            Look::Refused(_) => End::CannotTell,
            _ if self.seen && remembered && !self.half_closed => read,
            _ if self.seen => End::LeftUnread,
            Look::Remembered(_) if self.same_machine && !self.half_closed => read,
            Look::Absent if self.same_machine => End::CannotTell,
            _ => End::NotHere,
        })
    }

    fn open(&mut self, looked: &Looked, socket: &OpenSocket) -> Next {
        self.seen = true;
        self.note_accept(looked, socket);
        if socket.read() >= self.sent {
            return self.over(End::Read {
                hi_ns: looked.after_ns,
            });
        }
        let held = socket.inode != 0;
        match socket.state {
            State::Finishing | State::Closing | State::TimeWait if !held => {
                return self.over(End::LeftUnread);
            }
            State::Finishing => self.half_closed = true,
            _ => {}
        }
        self.unread_ns = Some(looked.before_ns);
        self.unread_polls = self.unread_polls.saturating_add(1);
        Next::Unread
    }

    fn note_accept(&mut self, looked: &Looked, socket: &OpenSocket) {
        if !self.watch_accept || self.accepted.is_some() {
            return;
        }
        if socket.inode == 0 {
            if socket.state == State::Live {
                self.unaccepted_ns = Some(looked.before_ns);
            }
        } else if let Some(lo_ns) = self.unaccepted_ns {
            self.accepted = Some(Stamp::between(lo_ns, looked.after_ns, Source::Queue));
        }
    }

    fn over(&mut self, end: End) -> Next {
        self.end = Some(end);
        Next::Over
    }

    /// Ends the watch from outside. `read_by_ns` is the caller's word that all had been read by
    /// then; it closes a bracket that look-ups opened and adds nothing to a watch that saw none.
    pub(crate) fn end_now(&mut self, read_by_ns: Option<i64>) {
        if self.end.is_none()
            && let (Some(lo_ns), Some(hi_ns)) = (self.unread_ns, read_by_ns)
            && lo_ns <= hi_ns
        {
            self.end = Some(End::Read { hi_ns });
        }
    }

    /// How the watch ended, or stands.
    pub(crate) fn queue(&self) -> QueueWatch {
        let unread_last = self.unread_polls > 0;
        QueueWatch {
            outcome: match self.end {
                Some(End::Read { .. }) => QueueOutcome::Read,
                Some(End::LeftUnread) => QueueOutcome::LeftUnread,
                Some(End::NotHere) => QueueOutcome::NotHere,
                None | Some(End::CannotTell) if unread_last => QueueOutcome::StillUnread,
                None | Some(End::CannotTell) => QueueOutcome::NotWatched,
            },
            polls: self.polls,
            unread_polls: self.unread_polls,
        }
    }

    /// When the application had read everything, if it had.
    pub(crate) fn picked_up(&self) -> Option<Stamp<ProxyClock>> {
        let Some(End::Read { hi_ns }) = self.end else {
            return None;
        };
        let lo_ns = self.unread_ns.unwrap_or(self.sent_before_ns);
        Some(Stamp::between(lo_ns, hi_ns, Source::Queue))
    }

    /// When the application accepted the connection, if that was seen.
    pub(crate) const fn accepted(&self) -> Option<Stamp<ProxyClock>> {
        self.accepted
    }
}

#[cfg(test)]
mod tests;
