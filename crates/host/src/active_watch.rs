//! One running watch: what it asks, what it knows, whom it tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use skewtap_core::endpoint::QueueOutcome;

use crate::owner::Wanted;
use crate::pick_up::{Looked, Next, PickUp};
use crate::sample_target::SampleTarget;
use crate::sock_diag::{Ask, Look, OpenSocket};
use crate::thread_files::timeslices;
use crate::watch::{EndSignal, WatchRequest, WatchResult};
use crate::watch_schedule::next_interval;

/// Whom to tell how a watch ended.
pub(crate) type Done = Box<dyn FnOnce(WatchResult) + Send>;

/// A place among the watches that may run at once; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes a place, if fewer than `most` are taken.
    pub(crate) fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let place = Self(Arc::clone(taken));
        // A place that is one too many is given back by its drop.
        (taken.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A running watch.
pub(crate) struct ActiveWatch {
    request: WatchRequest,
    pick_up: PickUp,
    ask: Ask,
    began: Instant,
    interval: Option<Duration>,
    due: Instant,
    last_look: bool,
    end: Arc<EndSignal>,
    sampling: Sampling,
    done: Done,
    place: Place,
}

enum Sampling {
    NotYet,
    Running(Arc<SampleTarget>),
    /// It is switched off, or was refused.
    Never,
}

/// What a watch wants after a look-up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wants {
    /// To be looked at again when it is due.
    NextLook,
    /// Its own end looked up, for what this look-up found.
    OwnEnd(Looked),
    /// The holder of this socket sampled.
    Sampling(OpenSocket, Looked),
    /// Nothing any more.
    Nothing,
}

impl ActiveWatch {
    pub(crate) fn new(
        request: WatchRequest,
        end: Arc<EndSignal>,
        done: Done,
        place: Place,
        sample: bool,
    ) -> Self {
        let now = Instant::now();
        Self {
            request,
            pick_up: PickUp::new(&request),
            ask: Ask {
                of: request.peer,
                to: request.local,
                cookie: None,
            },
            began: now,
            interval: None,
            due: now,
            last_look: false,
            end,
            sampling: if sample {
                Sampling::NotYet
            } else {
                Sampling::Never
            },
            done,
            place,
        }
    }

    /// When to look next.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }

    /// Whether to look now: what is due soon is looked at together with what is due, because
    /// waking up costs more than looking.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due <= now + self.interval.unwrap_or_default() / 4
    }

    /// Whether it is to end without a further look.
    pub(crate) fn must_end(&self, now: Instant, longest: Duration) -> bool {
        (self.end.ended() && self.end.read_by_ns().is_some())
            || now.saturating_duration_since(self.began) > longest
    }

    /// Makes a look due that is the last, if the caller ended the watch without a word on what
    /// had been read: an endpoint that reads and closes at once does both between two looks.
    pub(crate) fn look_a_last_time_if_ended(&mut self, now: Instant) {
        if self.end.ended() {
            self.last_look = true;
            self.due = now;
        }
    }

    /// Whether the look that was made is the last.
    pub(crate) const fn has_looked_last(&self) -> bool {
        self.last_look
    }

    /// The look-up of the endpoint's socket.
    pub(crate) const fn ask(&self) -> Ask {
        self.ask
    }

    /// The look-up of our own end.
    pub(crate) const fn ask_own_end(&self) -> Ask {
        Ask {
            of: self.request.local,
            to: self.request.peer,
            cookie: None,
        }
    }

    /// The look-up of the listener that the endpoint's connection waits in.
    pub(crate) fn ask_listener(&self) -> Ask {
        Ask::listener(self.request.peer)
    }

    /// Takes in a look-up of the endpoint's socket; `sample_after` is how long bytes must have
    /// lain unread for its process to be sampled.
    pub(crate) fn look(&mut self, looked: &Looked, sample_after: Duration) -> Wants {
        if let Look::Open(socket) = &looked.look {
            self.ask.cookie = Some(socket.cookie);
        }
        match (self.pick_up.look(looked), looked.look) {
            (Next::Over, _) => Wants::Nothing,
            (Next::AskOwnEnd, _) => Wants::OwnEnd(*looked),
            (Next::Unread, Look::Open(socket)) => {
                self.schedule();
                match &self.sampling {
                    Sampling::NotYet if self.began.elapsed() >= sample_after => {
                        Wants::Sampling(socket, *looked)
                    }
                    Sampling::Running(target) => {
                        // Until it is accepted, the listener goes on standing in for it.
                        if socket.inode != 0 {
                            target.note_socket(Wanted::from(&socket));
                        }
                        target.note_unread(looked.before_ns);
                        Wants::NextLook
                    }
                    Sampling::NotYet | Sampling::Never => Wants::NextLook,
                }
            }
            (Next::Unread | Next::LookAgain, _) => {
                self.schedule();
                Wants::NextLook
            }
        }
    }

    /// Takes in a look-up of our own end; says whether the watch goes on.
    pub(crate) fn own_end(&mut self, endpoint: &Looked, own: &Look) -> bool {
        let goes_on = self.pick_up.own_end(endpoint, own) == Next::LookAgain;
        self.schedule();
        goes_on
    }

    /// An answer was lost: the look-up is made again when due.
    pub(crate) fn schedule(&mut self) {
        let interval = next_interval(self.interval, self.began.elapsed());
        self.interval = Some(interval);
        self.due = Instant::now() + interval;
    }

    /// Notes that its process is being sampled, or that it will not be.
    pub(crate) fn sampled_by(&mut self, target: Option<Arc<SampleTarget>>) {
        self.sampling = target.map_or(Sampling::Never, Sampling::Running);
    }

    /// Ends the watch and tells the caller.
    pub(crate) fn finish(mut self) {
        self.pick_up.end_now(self.end.read_by_ns());
        let has_read = self.pick_up.queue().outcome == QueueOutcome::Read;
        let timeslices_now = |pid, tid| has_read.then(|| timeslices(pid, tid)).flatten();
        let (process, process_missing) = match &self.sampling {
            Sampling::Running(target) => {
                target.finish();
                match target.log().finish(timeslices_now) {
                    Ok(process) => (Some(process), None),
                    Err(why) => (None, why),
                }
            }
            Sampling::NotYet | Sampling::Never => (None, None),
        };
        // Whoever is told may want to watch again at once.
        drop(self.place);
        (self.done)(WatchResult {
            queue: self.pick_up.queue(),
            picked_up: self.pick_up.picked_up(),
            accepted: self.pick_up.accepted(),
            process,
            process_missing,
        });
    }
}
