//! How far each peer's clock is from the proxy's, learnt from all its exchanges.

mod shared;

use std::collections::{BTreeSet, HashMap};

use skewtap_core::audit::{KnownClocks, Observed};
use skewtap_core::clock::{ClockOffset, Interval};
use skewtap_core::clock_consensus::{Consensus, Constraint};
use skewtap_core::exchange::{ExchangeRecord, Outcome};
use skewtap_core::peer_offset::{client_constraint, server_constraint};
use skewtap_core::reported_span::ReportedSpan;

pub(crate) use self::shared::SharedClocks;

/// Peers whose clocks are kept; beyond it the one not heard of for longest is forgotten.
const MOST_PEERS: usize = 1_000;

/// A process on one side of exchanges. One that does both is two peers: the stamps of its
/// client and server spans may come from different libraries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Peer {
    is_client: bool,
    service: String,
    instance: String,
}

/// One estimator for each peer.
#[derive(Debug)]
pub(crate) struct PeerClocks {
    drift_ppm: i64,
    known: HashMap<Peer, PeerClock>,
    /// Every peer once, by when it was last heard of on the proxy's clock.
    by_age: BTreeSet<(i64, Peer)>,
}

/// What is known of one peer's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerReport {
    /// Whether it is the client's side of a process.
    pub(crate) is_client: bool,
    /// `service.name`.
    pub(crate) service: String,
    /// What tells it from others of the same name.
    pub(crate) instance: String,
    /// When it was last heard of, in nanoseconds since the Unix epoch on the proxy's clock.
    pub(crate) heard_ns: i64,
    /// How far its clock was ahead of the proxy's then, in nanoseconds; `None` where too few
    /// exchanges agree.
    pub(crate) ahead_ns: Option<Interval>,
}

#[derive(Debug)]
struct PeerClock {
    consensus: Consensus,
    heard_ns: i64,
}

impl PeerClocks {
    /// Knows no peer. Clocks are taken to drift by at most `drift_ppm` against the proxy's.
    pub(crate) fn new(drift_ppm: i64) -> Self {
        Self {
            drift_ppm,
            known: HashMap::new(),
            by_age: BTreeSet::new(),
        }
    }

    /// Takes what a match says of its peers' clocks, if it can be relied on for that.
    pub(crate) fn learn(&mut self, observed: &Observed) {
        if !observed.exchanges.iter().all(is_ordinary) {
            return;
        }
        if let Some(span) = &observed.client {
            let constraint = client_constraint(&observed.exchanges, span);
            self.add(Peer::client(span), constraint, span);
        }
        // Under several attempts it is not certain which server's span is whose.
        if let ([exchange], [span]) = (&*observed.exchanges, &*observed.servers) {
            self.add(Peer::server(span), server_constraint(exchange, span), span);
        }
    }

    /// What is known of the clocks of a match's peers at the time of its exchanges.
    pub(crate) fn known(&self, observed: &Observed) -> KnownClocks {
        let Some(at_ns) = observed.exchanges.first().and_then(middle_ns) else {
            return KnownClocks::default();
        };
        let bounds = |peer: Option<Peer>| self.known.get(&peer?)?.consensus.bounds_at(at_ns);
        KnownClocks {
            client: bounds(observed.client.as_ref().and_then(Peer::client))
                .map(ClockOffset::within),
            server: bounds(observed.servers.last().and_then(Peer::server)).map(ClockOffset::within),
        }
    }

    fn report(&self, peer: Peer) -> Option<PeerReport> {
        let known = self.known.get(&peer)?;
        Some(PeerReport {
            is_client: peer.is_client,
            service: peer.service,
            instance: peer.instance,
            heard_ns: known.heard_ns,
            ahead_ns: known.consensus.bounds_at(known.heard_ns),
        })
    }

    fn add(&mut self, peer: Option<Peer>, constraint: Option<Constraint>, span: &ReportedSpan) {
        let (Some(peer), Some(constraint), false) = (peer, constraint, span.error) else {
            return;
        };
        let entry = self.known.entry(peer.clone()).or_insert_with(|| PeerClock {
            consensus: Consensus::new(self.drift_ppm),
            heard_ns: i64::MIN,
        });
        entry.consensus.add(constraint);
        self.by_age.remove(&(entry.heard_ns, peer.clone()));
        entry.heard_ns = entry.heard_ns.max(constraint.at_ns);
        self.by_age.insert((entry.heard_ns, peer));
        while self.known.len() > MOST_PEERS {
            let Some((_, oldest)) = self.by_age.pop_first() else {
                break;
            };
            self.known.remove(&oldest);
        }
    }
}

impl Peer {
    fn client(span: &ReportedSpan) -> Option<Self> {
        Self::of(span, true)
    }

    fn server(span: &ReportedSpan) -> Option<Self> {
        Self::of(span, false)
    }

    /// A span that does not say whose it is may come from any of several clocks.
    fn of(span: &ReportedSpan, is_client: bool) -> Option<Self> {
        (!span.instance.is_empty()).then(|| Self {
            is_client,
            service: span.service.clone(),
            instance: span.instance.clone(),
        })
    }
}

/// Whether spans of this exchange can be trusted to describe it. What was answered by
/// something in between, cut short or crossed by a step of the clock, cannot.
fn is_ordinary(exchange: &ExchangeRecord) -> bool {
    let answered = exchange
        .status
        .is_some_and(|status| status < 500 && !matches!(status, 408 | 413 | 429));
    exchange.outcome == Outcome::Complete && answered && exchange.clock_step_ns == 0
}

fn middle_ns(exchange: &ExchangeRecord) -> Option<i64> {
    let stamps = || exchange.milestones.iter().map(|(_, stamp)| stamp);
    let first = stamps().map(|stamp| stamp.lo()).min()?;
    let last = stamps().map(|stamp| stamp.hi()).max()?;
    Some(first.saturating_add(last.saturating_sub(first) / 2))
}

#[cfg(test)]
mod tests;
