//! Finished exchanges that wait for what others have still to tell of them.

use std::collections::{BTreeSet, HashMap, VecDeque};
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
    /// Of those that wait for more than packets.
    deadlines: BTreeSet<(Instant, u64)>,
    /// Those that wait for packets only. All wait equally long, so they come out as they went in.
    settled: VecDeque<(Instant, u64)>,
}

#[derive(Debug)]
struct Entry {
    exchange: Box<OpenExchange>,
    finished: Instant,
    /// `None` while it may still come.
    activity: Option<Option<Arrival>>,
    /// Dropping it ends the watch.
    watch: Option<WatchHandle>,
    /// `None` once it waits for packets only.
    deadline: Option<Instant>,
}

impl Pending {
    pub(crate) fn new(waits: Waits) -> Self {
        Self {
            waits,
            exchanges: HashMap::new(),
            deadlines: BTreeSet::new(),
            settled: VecDeque::new(),
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
        let mut entry = Entry {
            exchange,
            finished: now,
            activity: None,
            watch: None,
            deadline: None,
        };
        entry.deadline = entry.waits_until(self.waits);
        self.wait(entry.deadline, id, now);
        self.exchanges.insert(id, entry);
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
        let Some(entry) = self.exchanges.get_mut(&id) else {
            return;
        };
        let Some(before) = entry.deadline else { return };
        let deadline = entry.waits_until(self.waits);
        if deadline != Some(before) {
            entry.deadline = deadline;
            self.deadlines.remove(&(before, id));
            self.wait(deadline, id, now);
        }
    }

    /// Has an exchange wait until `deadline`, or for packets only.
    fn wait(&mut self, deadline: Option<Instant>, id: u64, now: Instant) {
        match deadline {
            Some(deadline) => {
                self.deadlines.insert((deadline, id));
            }
            None => self.settled.push_back((now + self.waits.packets, id)),
        }
    }

    /// When to call [`Pending::due`] next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let nexts = [self.deadlines.first(), self.settled.front()];
        nexts.into_iter().flatten().map(|(due, _)| *due).min()
    }

    /// The next exchange whose waiting is over at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Complete> {
        while let Some(&(deadline, id)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            // What has not come by now will not be waited for.
            self.wait(None, id, now);
            if let Some(entry) = self.exchanges.get_mut(&id) {
                entry.deadline = None;
            }
        }
        let (_, id) = self.settled.pop_front_if(|(due, _)| *due <= now)?;
        let entry = self.exchanges.remove(&id)?;
        Some(Complete {
            exchange: entry.exchange,
            activity: entry.activity.flatten(),
        })
    }
}

impl Entry {
    /// Until when it waits for more than packets; `None` if it does not.
    fn waits_until(&self, waits: Waits) -> Option<Instant> {
        let exchange = &self.exchange;
        let watches = [&exchange.client_watch, &exchange.server_watch];
        if watches
            .into_iter()
            .flatten()
            .any(|slot| slot.get().is_none())
        {
            return Some(self.finished + waits.watch + WATCH_SLACK);
        }
        let client = exchange.client_watch.as_ref().and_then(|slot| slot.get());
        let settled = client.is_some_and(|watch| match watch.queue.outcome {
            QueueOutcome::Read | QueueOutcome::LeftUnread => true,
            QueueOutcome::StillUnread | QueueOutcome::NotHere | QueueOutcome::NotWatched => false,
        });
        if settled || self.activity.is_some() {
            None
        } else {
            Some(self.finished + waits.activity)
        }
    }
}

#[cfg(test)]
mod tests;
