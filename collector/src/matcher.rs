//! Brings together what belongs to one client span: the span itself, the exchanges that
//! name it, and the servers' spans under it.
//!
//! Pure: it is told the time and the place in the log, and asks for neither. The order and
//! the number of times in which observations come do not change what is matched in the end, nor
//! does it matter whether a verdict was given before the last of them: what it rests on is then
//! recalled from the store.

mod found;
mod held_exchange;
mod limits;
mod open_match;
mod placement;
mod server_choice;
mod side_list;

use std::collections::{BTreeSet, HashMap, VecDeque};

use skewtap_core::reported_span::{ReportedSpan, SpanKind};

pub use self::found::{Match, MatchKey, MatchKind, Past};
pub use self::limits::MatcherLimits;
use self::open_match::{NextStep, OpenMatch};
use self::placement::{Side, own_key, parent_key, place};
use self::side_list::Added;
use crate::observation::Observation;
use crate::store::packed::Packer;

/// Open matches up to which exchanges are held as they are; those that come while there are more
/// are packed: less memory for more time.
const HELD_PLAIN: usize = 4_000;

/// What a matcher did with observations so far, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatcherCounts {
    /// Observations that were there already.
    pub duplicates: u64,
    /// Spans that no exchange could ever join: those of consumers.
    pub unjoinable: u64,
    /// Observations dropped because their client span had too many already.
    pub crowded_out: u64,
    /// Client spans let go early to make room.
    pub evicted: u64,
    /// Spans let go because neither an exchange nor the other side came.
    pub unmatched: u64,
}

/// Matches given to be judged at once. A verdict takes a few times what was matched, so what is due
/// together is not judged together.
pub const MOST_AT_ONCE: usize = 1_000;

/// Holds what has not been settled yet.
#[derive(Debug)]
pub struct Matcher {
    limits: MatcherLimits,
    open: HashMap<MatchKey, OpenMatch>,
    /// Every open key once, by the time at which something is to be done about it.
    schedule: BTreeSet<(i64, MatchKey)>,
    /// The keys of which all that is there was judged, by that same time: the first to go when room
    /// is short, since the store has what later observations are joined with.
    settled: BTreeSet<(i64, MatchKey)>,
    /// The keys without an exchange, likewise: the next to go.
    lone: BTreeSet<(i64, MatchKey)>,
    /// Every open key once, by the first batch that holds something of it.
    needed: BTreeSet<(i64, MatchKey)>,
    /// What is to be let go early, until it is given to be judged.
    evicted: VecDeque<(MatchKey, OpenMatch)>,
    /// Made when it is first needed.
    packer: Option<Packer>,
    counts: MatcherCounts,
}

impl Matcher {
    /// An empty matcher.
    #[must_use]
    pub fn new(limits: MatcherLimits) -> Self {
        Self {
            limits,
            open: HashMap::new(),
            schedule: BTreeSet::new(),
            settled: BTreeSet::new(),
            lone: BTreeSet::new(),
            needed: BTreeSet::new(),
            evicted: VecDeque::new(),
            packer: None,
            counts: MatcherCounts::default(),
        }
    }

    /// Takes an observation that came in batch number `batch` at `now_ns`.
    pub fn offer(&mut self, observation: Observation, batch: i64, now_ns: i64) {
        let Some((key, side)) = place(observation) else {
            self.counts.unjoinable += 1;
            return;
        };
        let (key, side) = self.at_its_client(key, side);
        if let Side::Client(span) = &side
            && let Some((first_batch, shared)) = self.take_shared(span)
        {
            for span in shared {
                self.add(key, Side::Shared(Box::new(span)), first_batch, now_ns);
            }
        }
        self.add(key, side, batch, now_ns);
        while self.open.len() > self.limits.most_open {
            self.evict();
        }
    }

    /// Gives what is ready to be judged at `now_ns`, at most [`MOST_AT_ONCE`], and lets go what has
    /// been kept long enough. [`Matcher::is_due`] says whether there is more.
    ///
    /// Whatever is given stays open until the next call. `recall` gives what the store has of a
    /// match; it is asked about what may belong to a verdict of before.
    pub fn take_due(
        &mut self,
        now_ns: i64,
        mut recall: impl FnMut(MatchKey) -> Option<Past>,
    ) -> Vec<Match> {
        let mut due = self.settle_evicted(&mut recall);
        let mut judged = Vec::new();
        while due.len() < MOST_AT_ONCE
            && let Some((at, key)) = self.schedule.first().copied()
            && at <= now_ns
        {
            let Some(mut entry) = self.unschedule(key) else {
                break;
            };
            match entry.next_step(&self.limits).1 {
                NextStep::Judge => {
                    due.extend(entry.judge(key));
                    judged.push((key, entry));
                }
                NextStep::LookBack => {
                    self.counts.crowded_out += entry.look_back(recall(key), key);
                    self.schedule(key, entry);
                }
                NextStep::LetGo => {
                    if !entry.was_judged() {
                        self.counts.unmatched += 1;
                    }
                }
            }
        }
        for (key, entry) in judged {
            self.schedule(key, entry);
        }
        due
    }

    /// Puts what the store turned out to have of a match before what was judged of it, so that
    /// it is judged anew where that makes a difference.
    pub fn look_back(&mut self, key: MatchKey, past: Option<Past>) {
        if let Some(mut entry) = self.unschedule(key) {
            self.counts.crowded_out += entry.look_back(past, key);
            self.schedule(key, entry);
        }
    }

    /// Lets go everything that has something in a batch before number `batch`, so that the log
    /// can be cut off there. What can be judged of it is due at once.
    pub fn give_up_before(&mut self, batch: i64) {
        while let Some((needed, key)) = self.needed.first().copied() {
            if needed >= batch {
                break;
            }
            self.let_go_early(key);
        }
    }

    /// Whether [`Matcher::take_due`] has something to do at `now_ns`.
    #[must_use]
    pub fn is_due(&self, now_ns: i64) -> bool {
        !self.evicted.is_empty() || self.next_due_ns().is_some_and(|at| at <= now_ns)
    }

    /// When it next has something to do, but for what is to be let go early.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<i64> {
        self.schedule.first().map(|(at, _)| *at)
    }

    /// The number of the first batch that a restart would need to get to the same state.
    #[must_use]
    pub fn needed_from(&self) -> Option<i64> {
        let open = self.needed.first().map(|(batch, _)| *batch);
        let evicted = self.evicted.iter().map(|(_, entry)| entry.first_batch());
        open.into_iter().chain(evicted).min()
    }

    /// Client spans held.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// What was done with observations so far.
    #[must_use]
    pub const fn counts(&self) -> MatcherCounts {
        self.counts
    }

    fn evict(&mut self) {
        if let Some((_, key)) = self.settled.first().copied() {
            self.unschedule(key);
            return;
        }
        let first = self.lone.first().or_else(|| self.schedule.first());
        if let Some((_, key)) = first.copied() {
            self.let_go_early(key);
        }
    }

    fn let_go_early(&mut self, key: MatchKey) {
        if let Some(entry) = self.unschedule(key) {
            self.counts.evicted += 1;
            self.evicted.push_back((key, entry));
        }
    }

    fn settle_evicted(&mut self, recall: &mut impl FnMut(MatchKey) -> Option<Past>) -> Vec<Match> {
        let mut due = Vec::new();
        while due.len() < MOST_AT_ONCE
            && let Some((key, mut entry)) = self.evicted.pop_front()
        {
            if entry.may_look_back() {
                self.counts.crowded_out += entry.look_back(recall(key), key);
            }
            due.extend(entry.judge(key));
        }
        due
    }

    /// A server's span whose id a client says is its own belongs to that client.
    fn at_its_client(&self, key: MatchKey, side: Side) -> (MatchKey, Side) {
        match side {
            Side::Server(span) => {
                let own = own_key(&span);
                if self.open.get(&own).is_some_and(OpenMatch::has_client) {
                    (own, Side::Shared(span))
                } else {
                    (key, Side::Server(span))
                }
            }
            side => (key, side),
        }
    }

    /// Servers' spans that went under their parent before this client said that their id is its
    /// own; with the first batch in which they can be.
    fn take_shared(&mut self, client: &ReportedSpan) -> Option<(i64, Vec<ReportedSpan>)> {
        let parent = parent_key(client).filter(|_| client.kind == SpanKind::Client)?;
        let there = self.open.get(&parent)?;
        if !there.has_server(client.span_id) {
            return None;
        }
        let mut there = self.unschedule(parent)?;
        let shared = there.take_servers(client.span_id);
        let first_batch = there.first_batch();
        if !there.is_empty() {
            self.schedule(parent, there);
        }
        Some((first_batch, shared))
    }

    fn add(&mut self, key: MatchKey, side: Side, batch: i64, now_ns: i64) {
        if self.packer.is_none() && self.open.len() >= HELD_PLAIN {
            // Without one, exchanges are held as they are.
            self.packer = Packer::new().ok();
        }
        let mut entry = match self.unschedule(key) {
            Some(entry) => entry,
            None => OpenMatch::new(batch),
        };
        let packer = self.packer.as_mut();
        let packer = packer.filter(|_| self.open.len() >= HELD_PLAIN);
        match entry.add(side, batch, now_ns, packer) {
            Added::New => {}
            Added::Duplicate => self.counts.duplicates += 1,
            Added::NoRoom => self.counts.crowded_out += 1,
        }
        self.schedule(key, entry);
    }

    fn schedule(&mut self, key: MatchKey, entry: OpenMatch) {
        let (at, _) = entry.next_step(&self.limits);
        self.schedule.insert((at, key));
        self.needed.insert((entry.first_batch(), key));
        if entry.is_settled() {
            self.settled.insert((at, key));
        }
        if entry.is_lone() {
            self.lone.insert((at, key));
        }
        self.open.insert(key, entry);
    }

    fn unschedule(&mut self, key: MatchKey) -> Option<OpenMatch> {
        let entry = self.open.remove(&key)?;
        let (at, _) = entry.next_step(&self.limits);
        self.schedule.remove(&(at, key));
        self.needed.remove(&(entry.first_batch(), key));
        self.settled.remove(&(at, key));
        self.lone.remove(&(at, key));
        Some(entry)
    }
}
