//! What has come so far of one client span.

use std::cmp::Ordering;
use std::time::Duration;

use skewtap_core::audit::Observed;
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::ids::SpanId;
use skewtap_core::milestone::Milestone;
use skewtap_core::reported_span::{ReportedSpan, SpanKind};

use super::held_exchange::HeldExchange;
use super::placement::{Side, side};
use super::side_list::{Added, add_exchange, add_span};
use super::{Match, MatchKey, MatchKind, MatcherLimits, Past, server_choice};
use crate::store::packed::Packer;

/// The sides of one client span, as far as they have come.
#[derive(Debug)]
pub(super) struct OpenMatch {
    exchanges: Vec<HeldExchange>,
    /// More than one only where spans of different content claim one id.
    clients: Vec<ReportedSpan>,
    /// Servers' spans that are children of the client's.
    servers: Vec<ReportedSpan>,
    /// Servers' spans that have the id of the client's.
    shared: Vec<ReportedSpan>,
    first_batch: i64,
    last_change_ns: i64,
    judged_evidence: i64,
    /// Evidence of an earlier verdict whose observations were not all kept.
    carried: i64,
    looked_back: bool,
}

/// What to do about an open match when its time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Judge what is there.
    Judge,
    /// See whether there is an earlier verdict that this belongs to.
    LookBack,
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
            shared: Vec::new(),
            first_batch: batch,
            last_change_ns: i64::MIN,
            judged_evidence: 0,
            carried: 0,
            looked_back: false,
        }
    }

    /// Adds one side, which came in batch number `batch` at `now_ns`; an exchange is packed where
    /// there is a `packer`.
    pub(super) fn add(
        &mut self,
        side: Side,
        batch: i64,
        now_ns: i64,
        packer: Option<&mut Packer>,
    ) -> Added {
        self.first_batch = self.first_batch.min(batch);
        let added = self.put(side, packer);
        if added == Added::New || self.last_change_ns == i64::MIN {
            self.last_change_ns = self.last_change_ns.max(now_ns);
        }
        added
    }

    fn put(&mut self, side: Side, packer: Option<&mut Packer>) -> Added {
        match side {
            Side::Exchange(record) => {
                add_exchange(&mut self.exchanges, HeldExchange::new(record, packer))
            }
            Side::Client(span) => add_span(&mut self.clients, *span),
            Side::Server(span) => add_span(&mut self.servers, *span),
            Side::Shared(span) => add_span(&mut self.shared, *span),
        }
    }

    /// Puts what an earlier verdict rests on before what has come since, or takes note that there
    /// is no such verdict. Gives how many observations have no room beside it.
    pub(super) fn look_back(&mut self, past: Option<Past>, key: MatchKey) -> u64 {
        self.looked_back = true;
        self.judged_evidence = 0;
        let Some(past) = past else {
            return 0;
        };
        let since = std::mem::replace(self, Self::new(self.first_batch));
        for observation in past.observations {
            if let Some(side) = side(observation, key) {
                self.put(side, None);
            }
        }
        self.carried = past.evidence.saturating_sub(self.evidence());
        self.judged_evidence = past.evidence;
        self.last_change_ns = since.last_change_ns;
        self.looked_back = true;
        let exchanges = since.exchanges.into_iter();
        let exchanges = exchanges.map(|held| add_exchange(&mut self.exchanges, held));
        let mut added: Vec<Added> = exchanges.collect();
        for (list, spans) in [
            (&mut self.clients, since.clients),
            (&mut self.servers, since.servers),
            (&mut self.shared, since.shared),
        ] {
            added.extend(spans.into_iter().map(|span| add_span(list, span)));
        }
        let crowded_out = added.iter().filter(|added| **added == Added::NoRoom);
        u64::try_from(crowded_out.count()).unwrap_or(u64::MAX)
    }

    /// Whether an earlier verdict may rest on what is not here.
    pub(super) const fn may_look_back(&self) -> bool {
        !self.looked_back && self.judged_evidence == 0
    }

    /// The number of the first batch that holds something of it.
    pub(super) const fn first_batch(&self) -> i64 {
        self.first_batch
    }

    /// Whether no exchange has come.
    pub(super) fn is_lone(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Whether nothing is left of it.
    pub(super) fn is_empty(&self) -> bool {
        self.is_lone()
            && self.clients.is_empty()
            && self.servers.is_empty()
            && self.shared.is_empty()
    }

    /// Whether it was given out for judgement before.
    pub(super) const fn was_judged(&self) -> bool {
        self.judged_evidence > 0
    }

    /// Whether all that is here was given out for judgement.
    pub(super) fn is_settled(&self) -> bool {
        self.was_judged() && self.evidence() <= self.judged_evidence
    }

    /// Whether a client says that the id is its own.
    pub(super) fn has_client(&self) -> bool {
        self.clients.iter().any(|c| c.kind == SpanKind::Client)
    }

    /// Whether a server's span here has the id `id`.
    pub(super) fn has_server(&self, id: SpanId) -> bool {
        self.servers.iter().any(|span| span.span_id == id)
    }

    /// Takes out the servers' spans whose own id is `id`, because they belong elsewhere. A
    /// verdict that rests on them is due again.
    pub(super) fn take_servers(&mut self, id: SpanId) -> Vec<ReportedSpan> {
        let before = self.evidence();
        let is_shared = |span: &mut ReportedSpan| span.span_id == id;
        let taken = self.servers.extract_if(.., is_shared).collect();
        if self.was_judged() {
            self.carried += before - self.evidence() + 1;
        }
        taken
    }

    /// What to do next, and when.
    pub(super) fn next_step(&self, limits: &MatcherLimits) -> (i64, NextStep) {
        let after = |wait: Duration| {
            let wait = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
            self.last_change_ns.saturating_add(wait)
        };
        let kind = self.kind();
        if kind.is_some() && self.evidence() > self.judged_evidence {
            let wait = match kind {
                Some(MatchKind::Complete) => limits.linger,
                _ => limits.settle,
            };
            (after(wait), NextStep::Judge)
        } else if kind.is_none() && self.may_look_back() {
            (after(limits.settle), NextStep::LookBack)
        } else if kind == Some(MatchKind::Complete) {
            (after(limits.keep_complete), NextStep::LetGo)
        } else if self.clients.is_empty() && self.servers.is_empty() && self.is_lone() {
            // A server's root span; hardly ever is there a client that shares its id.
            (after(limits.settle), NextStep::LetGo)
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
        let revises = std::mem::replace(&mut self.judged_evidence, evidence);
        let (observed, others) = self.observed();
        Some(Match {
            key,
            observed,
            others,
            evidence,
            revises,
            kind,
        })
    }

    /// What a verdict rests on, and the spans that it does not rest on.
    fn observed(&self) -> (Observed, Vec<ReportedSpan>) {
        let exchanges = self.exchanges.iter().filter_map(HeldExchange::record);
        let mut exchanges: Vec<ExchangeRecord> = exchanges.collect();
        exchanges.sort_by_key(|exchange| (first_byte_ns(exchange), exchange.span_id));
        let mut clients = self.clients.clone();
        clients.sort_by(|a, b| {
            let is_other = |span: &ReportedSpan| span.kind != SpanKind::Client;
            is_other(a).cmp(&is_other(b)).then_with(|| by_start(a, b))
        });
        let mut clients = clients.into_iter();
        // Of several spans that claim the id, a client's before others, then the earliest.
        let client = clients.next();
        let mut servers = self.answering().to_vec();
        servers.sort_by(by_start);
        let chosen = server_choice::choose(&exchanges, servers);
        let all = self.servers.iter().chain(&self.shared);
        let mut others: Vec<ReportedSpan> =
            all.filter(|span| !chosen.contains(span)).cloned().collect();
        others.sort_by(by_start);
        others.extend(clients);
        let observed = Observed {
            exchanges,
            client,
            servers: chosen,
        };
        (observed, others)
    }

    /// The spans of those that answered. Where the client's id is shared, its children are what
    /// the server asked for in turn. A server's span that no client shares is no answer to an
    /// exchange of its id: it may just as well have asked.
    fn answering(&self) -> &[ReportedSpan] {
        if self.shared.is_empty() || !self.has_client() {
            &self.servers
        } else {
            &self.shared
        }
    }

    /// Which sides are there, or `None` where there is nothing to judge.
    fn kind(&self) -> Option<MatchKind> {
        let servers = self.answering().len();
        if self.exchanges.is_empty() {
            let both = servers > 0 && self.has_client();
            return both.then_some(MatchKind::NoExchange);
        }
        let mut exchanges = self.exchanges.iter();
        let client_expected = exchanges.any(HeldExchange::client_expected);
        let expecting = self.exchanges.iter().filter(|held| held.server_expected());
        let client = !client_expected || !self.clients.is_empty();
        let server = servers >= expecting.count();
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
        let spans = self.clients.len() + self.servers.len() + self.shared.len();
        let stamps = self.exchanges.iter().map(|held| 1 + held.stamps());
        let here = i64::try_from(spans + stamps.sum::<usize>()).unwrap_or(i64::MAX);
        here.saturating_add(self.carried)
    }
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
