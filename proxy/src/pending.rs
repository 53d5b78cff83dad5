//! Finished exchanges that wait for what others have still to tell of them.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use skewtap_core::endpoint::QueueOutcome;
use skewtap_host::WatchHandle;
use tokio::time::Instant;

use crate::journal::OpenExchange;
use crate::moment::Arrival;

/// Most exchanges that wait; one more is given out at once with what is known.
const MOST_WAITING: usize = 65_536;

/// Longest time that a watch may take to call back after it was ended.
const WATCH_SLACK: Duration = Duration::from_secs(2);

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// For a watch to end by itself.
    pub(crate) watch: Duration,
    /// For the client's next sign of life, where nothing better tells of the pick-up.
    pub(crate) activity: Duration,
    /// For packets, after everything else.
    pub(crate) packets: Duration,
}

/// An exchange of which all is known that will be.
#[derive(Debug)]
pub(crate) struct Complete {
    pub(crate) exchange: Box<OpenExchange>,
    pub(crate) activity: Option<Arrival>,
}

/// The exchanges that wait.
#[derive(Debug)]
pub(crate) struct Pending {
    waits: Waits,
    exchanges: HashMap<u64, Entry>,
    deadlines: BTreeSet<(Instant, u64)>,
}

#[derive(Debug)]
struct Entry {
    exchange: Box<OpenExchange>,
    finished: Instant,
    /// `None` while it may still come.
    activity: Option<Option<Arrival>>,
    /// Dropping it ends the watch.
    watch: Option<WatchHandle>,
    deadline: Instant,
    only_packets: bool,
}

impl Pending {
    pub(crate) fn new(waits: Waits) -> Self {
        Self {
            waits,
            exchanges: HashMap::new(),
            deadlines: BTreeSet::new(),
        }
    }

    /// Takes a finished exchange; gives it back if there is no room for it.
    pub(crate) fn finished(
        &mut self,
        exchange: Box<OpenExchange>,
        now: Instant,
    ) -> Option<Complete> {
        if self.exchanges.len() >= MOST_WAITING {
            return Some(Complete {
                exchange,
                activity: None,
            });
        }
        let id = exchange.id;
        let deadline = now + self.waits.watch + WATCH_SLACK;
        self.deadlines.insert((deadline, id));
        let entry = Entry {
            exchange,
            finished: now,
            activity: None,
            watch: None,
            deadline,
            only_packets: false,
        };
        self.exchanges.insert(id, entry);
        self.look_again(id, now);
        None
    }

    /// Takes the client's next sign of life, or that none will come; and keeps its watch going.
    pub(crate) fn activity(
        &mut self,
        id: u64,
        at: Option<Arrival>,
        watch: Option<WatchHandle>,
        now: Instant,
    ) {
        if let Some(entry) = self.exchanges.get_mut(&id) {
            entry.activity.get_or_insert(at);
            entry.watch = watch;
        }
        self.look_again(id, now);
    }

    /// Takes the news that a watch over this exchange has ended.
    pub(crate) fn look_again(&mut self, id: u64, now: Instant) {
        let waits = self.waits;
        let Some(entry) = self.exchanges.get_mut(&id) else {
            return;
        };
        if entry.only_packets {
            return;
        }
        let (deadline, only_packets) = match entry.still_waits() {
            Waiting::Watch => return,
            Waiting::Activity => (entry.finished + waits.activity, false),
            Waiting::Nothing => (now + waits.packets, true),
        };
        entry.only_packets = only_packets;
        self.deadlines.remove(&(entry.deadline, id));
        entry.deadline = deadline;
        self.deadlines.insert((deadline, id));
    }

    /// When to call [`Pending::due`] next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The next exchange whose waiting is over at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Complete> {
        loop {
            let (deadline, id) = *self.deadlines.first()?;
            if deadline > now {
                return None;
            }
            self.deadlines.remove(&(deadline, id));
            let entry = self.exchanges.get_mut(&id)?;
            if entry.only_packets {
                let entry = self.exchanges.remove(&id)?;
                return Some(Complete {
                    exchange: entry.exchange,
                    activity: entry.activity.flatten(),
                });
            }
            // What has not come by now will not be waited for.
            entry.only_packets = true;
            entry.deadline = now + self.waits.packets;
            self.deadlines.insert((entry.deadline, id));
        }
    }
}

enum Waiting {
    Watch,
    Activity,
    Nothing,
}

impl Entry {
    fn still_waits(&self) -> Waiting {
        let exchange = &self.exchange;
        let watches = [&exchange.client_watch, &exchange.server_watch];
        if watches
            .into_iter()
            .flatten()
            .any(|slot| slot.get().is_none())
        {
            return Waiting::Watch;
        }
        let client = exchange.client_watch.as_ref().and_then(|slot| slot.get());
        let settled = client.is_some_and(|watch| match watch.queue.outcome {
            QueueOutcome::Read | QueueOutcome::LeftUnread => true,
            QueueOutcome::StillUnread | QueueOutcome::NotHere | QueueOutcome::NotWatched => false,
        });
        if settled || self.activity.is_some() {
            Waiting::Nothing
        } else {
            Waiting::Activity
        }
    }
}

#[cfg(test)]
mod tests;
