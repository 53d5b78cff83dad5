//! What the verdicts say, by who called whom.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::registry::{Registry, Unit};
use skewtap_core::verdict::Verdict;

use super::clock_gauges::ClockGauges;
use crate::matcher::MatchKind;
use crate::store::verdict_row::Written;

/// What stands for every edge beyond the cap.
const OVERFLOW: &str = "other";

/// What stands for a service or a route that nothing names.
const UNKNOWN: &str = "unknown";

/// Upper bounds of the buckets, in seconds: from what a healthy exchange loses to a time-out.
const BUCKETS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Who called whom, for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Edge {
    client_service: String,
    server_service: String,
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SegmentOfEdge {
    segment: &'static str,
    client_service: String,
    server_service: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlaggedLabel {
    flagged: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseOnEdge {
    cause: &'static str,
    client_service: String,
    server_service: String,
}

/// Leads from a bucket to an exchange that fell into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ExchangeLabel {
    trace_id: String,
    span_id: String,
}

type Histogram = HistogramWithExemplars<ExchangeLabel>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Copy, Debug)]
struct InBuckets;

impl MetricConstructor<Histogram> for InBuckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(BUCKETS.into_iter())
    }
}

/// Metrics of the verdicts. Each client span counts once, by its first verdict; each cause of it
/// once, with the first verdict that names it.
#[derive(Debug)]
pub(crate) struct VerdictMetrics {
    most_edges: usize,
    known_edges: Mutex<HashSet<Edge>>,
    gap: Family<Edge, Histogram, InBuckets>,
    negative_gaps: Family<Edge, Counter>,
    unexplained: Family<Edge, Histogram, InBuckets>,
    segments: Family<SegmentOfEdge, Histogram, InBuckets>,
    findings: Family<CauseOnEdge, Counter>,
    exchanges: Family<FlaggedLabel, Counter>,
    matches: Family<KindLabel, Counter>,
    written: Family<OutcomeLabel, Counter>,
    clocks: ClockGauges,
}

impl VerdictMetrics {
    pub(super) fn new(most_edges: usize) -> Self {
        let new = Self {
            most_edges,
            known_edges: Mutex::new(HashSet::new()),
            gap: Family::new_with_constructor(InBuckets),
            negative_gaps: Family::default(),
            unexplained: Family::new_with_constructor(InBuckets),
            segments: Family::new_with_constructor(InBuckets),
            findings: Family::default(),
            exchanges: Family::default(),
            matches: Family::default(),
            written: Family::default(),
            clocks: ClockGauges::new(most_edges),
        };
        new.start_at_nought();
        new
    }

    /// A counter that is there before it counts can be seen to count for the first time.
    fn start_at_nought(&self) {
        for flagged in [false, true] {
            drop(self.exchanges.get_or_create(&FlaggedLabel { flagged }));
        }
        for kind in MatchKind::ALL.map(MatchKind::name) {
            drop(self.matches.get_or_create(&KindLabel { kind }));
        }
        for outcome in ["new", "revised", "kept", "outdated"] {
            drop(self.written.get_or_create(&OutcomeLabel { outcome }));
        }
    }

    /// Counts a verdict that was given to the store. Of one that replaces another, only the
    /// causes count that the other had not found.
    pub(crate) fn count(&self, verdict: &Verdict, kind: MatchKind, written: &Written) {
        let outcome = outcome(written);
        self.written.get_or_create(&OutcomeLabel { outcome }).inc();
        if !written.is_news() {
            return;
        }
        self.clocks.note(verdict);
        let edge = self.edge(verdict);
        for finding in &verdict.findings {
            let before = written.before();
            if !before.is_some_and(|before| before.found(finding.cause)) {
                self.count_finding(finding.cause, &edge);
            }
        }
        if written.before().is_none() {
            let flagged = FlaggedLabel {
                flagged: verdict.flagged,
            };
            self.exchanges.get_or_create(&flagged).inc();
            let kind = kind.name();
            self.matches.get_or_create(&KindLabel { kind }).inc();
            self.observe_times(verdict, &edge);
        }
    }

    fn count_finding(&self, cause: &'static str, edge: &Edge) {
        let cause = CauseOnEdge {
            cause,
            client_service: edge.client_service.clone(),
            server_service: edge.server_service.clone(),
        };
        self.findings.get_or_create(&cause).inc();
    }

    fn observe_times(&self, verdict: &Verdict, edge: &Edge) {
        let observe = |histogram: &Histogram, ns| {
            let exchange = ExchangeLabel {
                trace_id: verdict.trace_id.to_string(),
                span_id: verdict.client_span_id.to_string(),
            };
            histogram.observe(seconds(ns), Some(exchange), None);
        };
        match verdict.gap_ns() {
            // A histogram's sum must not fall, so what is below nought is counted apart.
            Some(gap) if gap < 0 => {
                self.negative_gaps.get_or_create(edge).inc();
            }
            Some(gap) => observe(&self.gap.get_or_create(edge), gap),
            None => {}
        }
        let Some(ledger) = &verdict.ledger else {
            return;
        };
        let unexplained = ledger.unexplained_ns().max(0);
        observe(&self.unexplained.get_or_create(edge), unexplained);
        for row in ledger.rows.iter().filter(|row| row.within.lo() >= 0) {
            let segment = SegmentOfEdge {
                segment: row.segment.name(),
                client_service: edge.client_service.clone(),
                server_service: edge.server_service.clone(),
            };
            observe(&self.segments.get_or_create(&segment), row.within.lo());
        }
    }

    /// The labels of a verdict, or those of the overflow once there are too many.
    fn edge(&self, verdict: &Verdict) -> Edge {
        let known = |name: &Option<String>| {
            name.as_deref()
                .filter(|name| !name.is_empty())
                .unwrap_or(UNKNOWN)
                .to_owned()
        };
        let edge = Edge {
            client_service: known(&verdict.client_service),
            server_service: known(&verdict.server_service),
            route: known(&verdict.route),
        };
        let mut known_edges = self
            .known_edges
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known_edges.contains(&edge) {
            edge
        } else if known_edges.len() < self.most_edges {
            known_edges.insert(edge.clone());
            edge
        } else {
            Edge {
                client_service: OVERFLOW.to_owned(),
                server_service: OVERFLOW.to_owned(),
                route: OVERFLOW.to_owned(),
            }
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "gap",
            "Client-observed minus server-observed time, where it is not negative",
            Unit::Seconds,
            self.gap.clone(),
        );
        registry.register(
            "negative_gaps",
            "Exchanges of which the server's span is longer than the client's",
            self.negative_gaps.clone(),
        );
        registry.register_with_unit(
            "unexplained",
            "Time that nothing explains",
            Unit::Seconds,
            self.unexplained.clone(),
        );
        registry.register_with_unit(
            "segment",
            "Proven length of the parts of an exchange",
            Unit::Seconds,
            self.segments.clone(),
        );
        registry.register("findings", "Causes found", self.findings.clone());
        registry.register(
            "exchanges",
            "Client spans judged, each counted once",
            self.exchanges.clone(),
        );
        registry.register(
            "matches",
            "Client spans judged, by which sides were there",
            self.matches.clone(),
        );
        registry.register(
            "verdicts",
            "Verdicts given to the store, by what became of them",
            self.written.clone(),
        );
        self.clocks.register(registry);
    }
}

/// The name used in metrics.
const fn outcome(written: &Written) -> &'static str {
    match written {
        Written::New => "new",
        Written::Revised(_) => "revised",
        Written::Kept => "kept",
        Written::Outdated => "outdated",
    }
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: i64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a double has more digits than a bucket needs"
    )]
    let ns = ns as f64;
    ns / 1e9
}
