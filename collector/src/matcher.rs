//! Brings together what belongs to one client span: the span itself, the exchanges that
//! name it, and the servers' spans under it.
//!
//! Pure: it is told the time and the place in the log, and asks for neither. The order and
//! the number of times in which observations come do not change what is matched in the end.

mod open_match;
mod server_choice;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use skewtap_core::audit::Observed;
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::reported_span::SpanKind;

use self::open_match::{Added, NextStep, OpenMatch};
use crate::observation::Observation;

/// How long to wait, and how much to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatcherLimits {
    /// How long to wait for more once an exchange and all its spans are there; 0 to 1 s,
    /// 500 ms by default.
    pub linger: Duration,
    /// How long to wait for missing sides before judging what is there; 1 s to 5 minutes,
    /// 15 s by default. Exporters hold spans back for up to 5 s.
    pub settle: Duration,
    /// How long a complete match is kept for what comes late; 30 s by default.
    pub keep_complete: Duration,
    /// How long anything else is kept for what comes late; 150 s by default: batch delay,
    /// export timeout, retries and tail sampling of common exporters together.
    pub keep_incomplete: Duration,
    /// Client spans held at once; above 0, 100,000 by default. Beyond it the one that would
    /// be let go first is let go early.
    pub most_open: usize,
}

impl Default for MatcherLimits {
    fn default() -> Self {
        Self {
            linger: Duration::from_millis(500),
            settle: Duration::from_secs(15),
            keep_complete: Duration::from_secs(30),
            keep_incomplete: Duration::from_secs(150),
            most_open: 100_000,
        }
    }
}

/// What names one match: a trace, and the span id that its sides share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatchKey {
    /// The trace.
    pub trace_id: TraceId,
    /// The client's span: the server's parent, and what the exchange was asked under.
    pub span_id: SpanId,
}

/// What belongs to one client span, ready to be judged.
#[derive(Clone, Debug)]
pub struct Match {
    /// What names it.
    pub key: MatchKey,
    /// What was seen and said.
    pub observed: Observed,
    /// How much that is: observations and stamps. A later match of the same key has more.
    pub evidence: i64,
    /// Which sides are there.
    pub kind: MatchKind,
}

/// Which sides a match has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchKind {
    /// Everything that could be expected.
    Complete,
    /// The client's span is missing.
    NoClient,
    /// At least one server's span is missing.
    NoServer,
    /// Both sides' spans are missing.
    ExchangeOnly,
    /// Both sides' spans are there, but no exchange.
    NoExchange,
}

impl MatchKind {
    /// The name used in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::NoClient => "no_client",
            Self::NoServer => "no_server",
            Self::ExchangeOnly => "exchange_only",
            Self::NoExchange => "no_exchange",
        }
    }
}

/// What a matcher did with observations so far, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatcherCounts {
    /// Observations that were there already.
    pub duplicates: u64,
    /// Spans that no exchange could ever join: server spans without a parent, consumers.
    pub unjoinable: u64,
    /// Observations dropped because their client span had too many already.
    pub crowded_out: u64,
    /// Client spans let go early to make room.
    pub evicted: u64,
    /// Spans let go because neither an exchange nor the other side came.
    pub unmatched: u64,
}

/// Holds what has not been settled yet.
#[derive(Debug)]
pub struct Matcher {
    limits: MatcherLimits,
    open: HashMap<MatchKey, OpenMatch>,
    /// Every open key once, by the time at which something is to be done about it.
    schedule: BTreeSet<(i64, MatchKey)>,
    /// The keys without an exchange, by that same time: the first to go when room is short.
    lone: BTreeSet<(i64, MatchKey)>,
    /// Every open key once, by the first batch that holds something of it.
    needed: BTreeSet<(i64, MatchKey)>,
    /// What was let go early, until it is collected.
    evicted: Vec<Match>,
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
            lone: BTreeSet::new(),
            needed: BTreeSet::new(),
            evicted: Vec::new(),
            counts: MatcherCounts::default(),
        }
    }

    /// Takes an observation that came in batch number `batch` at `now_ns`.
    pub fn offer(&mut self, observation: Observation, batch: i64, now_ns: i64) {
        let Some((key, side)) = place(observation) else {
            self.counts.unjoinable += 1;
            return;
        };
        let mut entry = match self.unschedule(key) {
            Some(entry) => entry,
            None => OpenMatch::new(batch),
        };
        match entry.add(side, batch, now_ns) {
            Added::New => {}
            Added::Duplicate => self.counts.duplicates += 1,
            Added::NoRoom => self.counts.crowded_out += 1,
        }
        self.schedule(key, entry);
        while self.open.len() > self.limits.most_open {
            self.evict();
        }
    }

    /// Gives what is ready to be judged at `now_ns`, and lets go what has been kept long enough.
    pub fn take_due(&mut self, now_ns: i64) -> Vec<Match> {
        let mut due = std::mem::take(&mut self.evicted);
        while let Some((at, key)) = self.schedule.first().copied() {
            if at > now_ns {
                break;
            }
            let Some(mut entry) = self.unschedule(key) else {
                break;
            };
            match entry.next_step(&self.limits).1 {
                NextStep::Judge => {
                    due.extend(entry.judge(key));
                    self.schedule(key, entry);
                }
                NextStep::LetGo => {
                    if !entry.was_judged() {
                        self.counts.unmatched += 1;
                    }
                }
            }
        }
        due
    }

    /// Lets go everything that has something in a batch before number `batch`, giving what
    /// can be judged; so that the log can be cut off there.
    pub fn give_up_before(&mut self, batch: i64) -> Vec<Match> {
        while let Some((needed, key)) = self.needed.first().copied() {
            if needed >= batch {
                break;
            }
            self.let_go_early(key);
        }
        std::mem::take(&mut self.evicted)
    }

    /// When [`Matcher::take_due`] next has something to do.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<i64> {
        self.schedule.first().map(|(at, _)| *at)
    }

    /// The number of the first batch that a restart would need to get to the same state.
    #[must_use]
    pub fn needed_from(&self) -> Option<i64> {
        self.needed.first().map(|(batch, _)| *batch)
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
        let first = self.lone.first().or_else(|| self.schedule.first());
        if let Some((_, key)) = first.copied() {
            self.let_go_early(key);
        }
    }

    fn let_go_early(&mut self, key: MatchKey) {
        if let Some(mut entry) = self.unschedule(key) {
            self.counts.evicted += 1;
            self.evicted.extend(entry.judge(key));
        }
    }

    fn schedule(&mut self, key: MatchKey, entry: OpenMatch) {
        let (at, _) = entry.next_step(&self.limits);
        self.schedule.insert((at, key));
        self.needed.insert((entry.first_batch(), key));
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
        self.lone.remove(&(at, key));
        Some(entry)
    }
}

/// The side of a match that an observation is.
#[derive(Debug)]
enum Side {
    Exchange(Box<skewtap_core::exchange::ExchangeRecord>),
    Client(Box<skewtap_core::reported_span::ReportedSpan>),
    Server(Box<skewtap_core::reported_span::ReportedSpan>),
}

/// Where an observation belongs, or `None` where nothing could ever join it.
fn place(observation: Observation) -> Option<(MatchKey, Side)> {
    match observation {
        Observation::Exchange(record) => {
            let key = MatchKey {
                trace_id: record.trace_id,
                span_id: record.join_span_id(),
            };
            Some((key, Side::Exchange(record)))
        }
        Observation::Span(span) => match span.kind {
            SpanKind::Server => {
                let key = MatchKey {
                    trace_id: span.trace_id,
                    span_id: span.parent_span_id?,
                };
                Some((key, Side::Server(span)))
            }
            // An application may send its context from within a span of another kind.
            SpanKind::Client | SpanKind::Producer | SpanKind::Internal | SpanKind::Unspecified => {
                let key = MatchKey {
                    trace_id: span.trace_id,
                    span_id: span.span_id,
                };
                Some((key, Side::Client(span)))
            }
            SpanKind::Consumer => None,
        },
    }
}
