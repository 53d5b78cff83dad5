//! Notices brought together by edge and cause, and when each group may be told of.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use skewtap_core::ids::{SpanId, TraceId};
use tokio::time::Instant;

use super::message::Message;
use super::notice::{GroupKey, Notice};

/// Groups held at once; notices of further ones are told of together.
const MOST_GROUPS: usize = 500;

/// Verdicts remembered, so that a revision of one is not told of again.
const REMEMBERED: usize = 10_000;

/// What stands in the key of the group for everything beyond [`MOST_GROUPS`].
const OTHER: &str = "other";

/// Every group, told of or waiting.
#[derive(Debug)]
pub(super) struct Groups {
    gather: Duration,
    every: Duration,
    groups: HashMap<GroupKey, Group>,
    told: Remembered,
}

#[derive(Debug)]
struct Group {
    /// What came since the last message.
    waiting: Option<Waiting>,
    /// The earliest time of the next message.
    not_before: Instant,
}

#[derive(Debug)]
struct Waiting {
    count: u64,
    since: Instant,
    worst: Notice,
}

impl Groups {
    /// No groups. The first notice of a group waits for `gather`; two messages about one group
    /// lie `every` apart at least.
    pub(super) fn new(gather: Duration, every: Duration) -> Self {
        Self {
            gather,
            every,
            groups: HashMap::new(),
            told: Remembered::default(),
        }
    }

    /// Takes a notice that came at `now`.
    pub(super) fn add(&mut self, notice: Notice, now: Instant) {
        let verdict = (
            notice.trace_id,
            notice.client_span_id,
            notice.key.cause.clone(),
        );
        if !self.told.remember(verdict) {
            return;
        }
        let key = self.place(&notice.key, now);
        let group = self.groups.entry(key).or_insert(Group {
            waiting: None,
            not_before: now,
        });
        match &mut group.waiting {
            Some(waiting) => {
                waiting.count += 1;
                if notice.lost_ns > waiting.worst.lost_ns {
                    waiting.worst = notice;
                }
            }
            none => {
                group.not_before = group.not_before.max(now + self.gather);
                *none = Some(Waiting {
                    count: 1,
                    since: now,
                    worst: notice,
                });
            }
        }
    }

    /// When the next message is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.groups.values().filter(|group| group.waiting.is_some());
        waiting.map(|group| group.not_before).min()
    }

    /// A message that is due at `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Message> {
        let (key, group) = self
            .groups
            .iter_mut()
            .filter(|(_, group)| group.waiting.is_some() && group.not_before <= now)
            .min_by_key(|(_, group)| group.not_before)?;
        let waiting = group.waiting.take()?;
        group.not_before = now + self.every;
        Some(message(key, waiting, now))
    }

    /// Every message there is, due or not.
    pub(super) fn take_all(mut self) -> Vec<Message> {
        let now = Instant::now();
        let groups = self.groups.drain();
        groups
            .filter_map(|(key, group)| Some(message(&key, group.waiting?, now)))
            .collect()
    }

    /// The group for `key`, which is that of all others where there are too many.
    fn place(&mut self, key: &GroupKey, now: Instant) -> GroupKey {
        if self.groups.contains_key(key) {
            return key.clone();
        }
        if self.groups.len() >= MOST_GROUPS {
            // What is neither waiting nor held back needs no remembering.
            self.groups
                .retain(|_, group| group.waiting.is_some() || group.not_before > now);
        }
        if self.groups.len() < MOST_GROUPS {
            return key.clone();
        }
        GroupKey {
            client_service: OTHER.to_owned(),
            server_service: OTHER.to_owned(),
            route: OTHER.to_owned(),
            cause: OTHER.to_owned(),
        }
    }
}

fn message(key: &GroupKey, waiting: Waiting, now: Instant) -> Message {
    Message {
        group: key.clone(),
        count: waiting.count,
        within: now.saturating_duration_since(waiting.since),
        worst: waiting.worst,
    }
}

/// What was told of, the latest [`REMEMBERED`] of it.
#[derive(Debug, Default)]
struct Remembered {
    known: HashSet<(TraceId, SpanId, String)>,
    order: VecDeque<(TraceId, SpanId, String)>,
}

impl Remembered {
    /// Whether this is new.
    fn remember(&mut self, verdict: (TraceId, SpanId, String)) -> bool {
        if !self.known.insert(verdict.clone()) {
            return false;
        }
        self.order.push_back(verdict);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests;
