//! What has come so far of one client span.

use std::cmp::Ordering;
use std::time::Duration;

use skewtap_core::audit::Observed;
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::milestone::Milestone;
use skewtap_core::reported_span::{ReportedSpan, SpanKind};

use super::{Match, MatchKey, MatchKind, MatcherLimits, Side, server_choice};

/// Observations of one side that one client span can have.
const MOST_OF_A_SIDE: usize = 64;

/// The sides of one client span, as far as they have come.
#[derive(Debug)]
pub(super) struct OpenMatch {
    exchanges: Vec<ExchangeRecord>,
    /// More than one only where spans of different content claim one id.
    clients: Vec<ReportedSpan>,
    servers: Vec<ReportedSpan>,
    first_batch: i64,
    last_change_ns: i64,
    judged_evidence: i64,
}

/// What became of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It was not there before.
    New,
    /// It was.
    Duplicate,
    /// There are too many of its side.
    NoRoom,
}

/// What to do about an open match when its time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Judge what is there.
    Judge,
    /// Forget it.
    LetGo,
}

impl OpenMatch {
    /// A match of which something came in batch number `batch`.
    pub(super) const fn new(batch: i64) -> Self {
        Self {
            exchanges: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
            first_batch: batch,
            last_change_ns: i64::MIN,
            judged_evidence: 0,
        }
    }

    /// Adds one side, which came in batch number `batch` at `now_ns`.
    pub(super) fn add(&mut self, side: Side, batch: i64, now_ns: i64) -> Added {
        self.first_batch = self.first_batch.min(batch);
        let added = match side {
            Side::Exchange(record) => add_exchange(&mut self.exchanges, *record),
            Side::Client(span) => add_span(&mut self.clients, *span),
            Side::Server(span) => add_span(&mut self.servers, *span),
        };
        if added == Added::New || self.last_change_ns == i64::MIN {
            self.last_change_ns = self.last_change_ns.max(now_ns);
        }
        added
    }

    /// The number of the first batch that holds something of it.
    pub(super) const fn first_batch(&self) -> i64 {
        self.first_batch
    }

    /// Whether no exchange has come.
    pub(super) fn is_lone(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Whether it was given out for judgement before.
    pub(super) const fn was_judged(&self) -> bool {
        self.judged_evidence > 0
    }

    /// What to do next, and when.
    pub(super) fn next_step(&self, limits: &MatcherLimits) -> (i64, NextStep) {
        let after = |wait: Duration| {
            let wait = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
            self.last_change_ns.saturating_add(wait)
        };
        let complete = self.kind() == Some(MatchKind::Complete);
        if self.kind().is_some() && self.evidence() > self.judged_evidence {
            let wait = if complete {
                limits.linger
            } else {
                limits.settle
            };
            (after(wait), NextStep::Judge)
        } else if complete {
            (after(limits.keep_complete), NextStep::LetGo)
        } else {
            (after(limits.keep_incomplete), NextStep::LetGo)
        }
    }

    /// What is there, unless that is nothing to judge or was judged before.
    pub(super) fn judge(&mut self, key: MatchKey) -> Option<Match> {
        let kind = self.kind()?;
        let evidence = self.evidence();
        if evidence <= self.judged_evidence {
            return None;
        }
        self.judged_evidence = evidence;
        Some(Match {
            key,
            observed: self.observed(),
            evidence,
            kind,
        })
    }

    fn observed(&self) -> Observed {
        let mut exchanges = self.exchanges.clone();
        exchanges.sort_by_key(|exchange| (first_byte_ns(exchange), exchange.span_id));
        let mut servers = self.servers.clone();
        servers.sort_by(by_start);
        Observed {
            servers: server_choice::choose(&exchanges, servers),
            client: self.best_client().cloned(),
            exchanges,
        }
    }

    /// Of several spans that claim the id, a client's before others, then the earliest.
    fn best_client(&self) -> Option<&ReportedSpan> {
        self.clients.iter().min_by(|a, b| {
            (a.kind != SpanKind::Client)
                .cmp(&(b.kind != SpanKind::Client))
                .then_with(|| by_start(a, b))
        })
    }

    /// Which sides are there, or `None` where there is nothing to judge.
    fn kind(&self) -> Option<MatchKind> {
        if self.exchanges.is_empty() {
            let both =
                !self.servers.is_empty() && self.clients.iter().any(|c| c.kind == SpanKind::Client);
            return both.then_some(MatchKind::NoExchange);
        }
        // Where the proxy had to add the context, the client has no span of this id.
        let client_expected = self
            .exchanges
            .iter()
            .any(|exchange| exchange.sampled && exchange.parent_span_id.is_some());
        let servers_expected = self
            .exchanges
            .iter()
            .filter(|exchange| exchange.sampled && exchange.up.is_some())
            .count();
        let client = !client_expected || !self.clients.is_empty();
        let server = self.servers.len() >= servers_expected;
        Some(match (client, server) {
            (true, true) => MatchKind::Complete,
            (true, false) if self.clients.is_empty() => MatchKind::ExchangeOnly,
            (true, false) => MatchKind::NoServer,
            (false, true) => MatchKind::NoClient,
            (false, false) => MatchKind::ExchangeOnly,
        })
    }

    /// Grows with every observation, and with every stamp of an exchange.
    fn evidence(&self) -> i64 {
        let spans = self.exchanges.len() + self.clients.len() + self.servers.len();
        let stamps: usize = self.exchanges.iter().map(stamps).sum();
        i64::try_from(spans + stamps).unwrap_or(i64::MAX)
    }
}

/// Of two forms of one exchange the one with more stamps stays: a proxy may send it again
/// once packets have told more.
fn add_exchange(exchanges: &mut Vec<ExchangeRecord>, record: ExchangeRecord) -> Added {
    let same = exchanges
        .iter_mut()
        .find(|known| known.span_id == record.span_id);
    if let Some(known) = same {
        return choose_fuller(known, record);
    }
    if exchanges.len() >= MOST_OF_A_SIDE {
        return Added::NoRoom;
    }
    push_exactly(exchanges, record);
    Added::New
}

fn choose_fuller(known: &mut ExchangeRecord, record: ExchangeRecord) -> Added {
    match stamps(known).cmp(&stamps(&record)) {
        Ordering::Less => {
            *known = record;
            Added::New
        }
        // Any choice will do that does not depend on which came first.
        Ordering::Equal if format!("{known:?}") < format!("{record:?}") => {
            *known = record;
            Added::Duplicate
        }
        Ordering::Equal | Ordering::Greater => Added::Duplicate,
    }
}

fn add_span(spans: &mut Vec<ReportedSpan>, span: ReportedSpan) -> Added {
    if spans.contains(&span) {
        Added::Duplicate
    } else if spans.len() < MOST_OF_A_SIDE {
        push_exactly(spans, span);
        Added::New
    } else {
        Added::NoRoom
    }
}

/// Adds to a list that seldom has a second element: a list grown as usual would make room for
/// four at once, and there is one for each side of everything that is open.
fn push_exactly<T>(list: &mut Vec<T>, element: T) {
    list.reserve_exact(1);
    list.push(element);
}

fn stamps(exchange: &ExchangeRecord) -> usize {
    exchange.milestones.iter().count()
}

fn first_byte_ns(exchange: &ExchangeRecord) -> i64 {
    exchange
        .milestones
        .best(Milestone::DownRequestFirst)
        .or_else(|| exchange.milestones.iter().map(|(_, stamp)| stamp).next())
        .map_or(i64::MAX, |stamp| stamp.lo())
}

/// By start, then by whatever else tells two spans apart, so that the order is always the same.
fn by_start(a: &ReportedSpan, b: &ReportedSpan) -> Ordering {
    (a.start_ns, a.end_ns, a.span_id)
        .cmp(&(b.start_ns, b.end_ns, b.span_id))
        .then_with(|| format!("{a:?}").cmp(&format!("{b:?}")))
}
