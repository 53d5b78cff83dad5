//! What the collector counts, as Prometheus reads it.

mod clock_gauges;
mod onward_metrics;
mod proxy_drops;
mod verdict_metrics;

use std::fmt;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

pub(crate) use self::onward_metrics::{ExportCounts, ExportDrop, WebhookCounts};
use self::proxy_drops::ProxyDrops;
pub(crate) use self::verdict_metrics::VerdictMetrics;
use crate::matcher::MatcherCounts;
use crate::otlp_decode::{RejectReason, Rejected};
use crate::receive::Refusal;

/// A counter for each value of one label.
type Labelled<L> = Family<L, Counter>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TransportLabel {
    pub(crate) transport: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ReasonLabel {
    pub(crate) reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct SignalLabel {
    pub(crate) signal: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OriginLabel {
    pub(crate) origin: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct OutcomeLabel {
    pub(crate) outcome: &'static str,
}

/// Every metric, and the registry they are read from.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Spans in acknowledged requests, those rejected included.
    pub(crate) spans_received: Labelled<TransportLabel>,
    /// Spans in acknowledged requests that cannot be used.
    pub(crate) spans_rejected: Labelled<ReasonLabel>,
    /// Requests that got an error.
    pub(crate) requests_refused: Labelled<ReasonLabel>,
    /// Requests of signals that are acknowledged and not kept.
    pub(crate) requests_ignored: Labelled<SignalLabel>,
    /// What proxies could not send.
    pub(crate) proxies: ProxyDrops,
    /// What the pipeline did.
    pub(crate) pipeline: PipelineMetrics,
    /// What the verdicts say.
    pub(crate) verdicts: VerdictMetrics,
    /// What was sent on.
    pub(crate) export: ExportCounts,
    /// Whom flagged verdicts were told.
    pub(crate) webhook: WebhookCounts,
}

/// Counters and gauges of the pipeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct PipelineMetrics {
    /// Batches in the log that could not be read as a request.
    pub(crate) unreadable_batches: Counter,
    /// Client spans held.
    pub(crate) open: Gauge,
    /// Bytes of batches not settled.
    pub(crate) log_bytes: Gauge,
    /// Times in which the store refused results.
    pub(crate) store_retries: Counter,
    duplicates: Counter,
    unjoinable: Counter,
    crowded_out: Counter,
    evicted: Counter,
    unmatched: Counter,
}

impl PipelineMetrics {
    /// Adds what the matcher did between two looks at its counts.
    pub(crate) fn add(&self, before: MatcherCounts, after: MatcherCounts) {
        let add = |counter: &Counter, before: u64, after: u64| {
            counter.inc_by(after.saturating_sub(before));
        };
        add(&self.duplicates, before.duplicates, after.duplicates);
        add(&self.unjoinable, before.unjoinable, after.unjoinable);
        add(&self.crowded_out, before.crowded_out, after.crowded_out);
        add(&self.evicted, before.evicted, after.evicted);
        add(&self.unmatched, before.unmatched, after.unmatched);
    }
}

impl Metrics {
    /// All metrics at nought. `most_edges` caps the combinations of client, server and route.
    pub(crate) fn new(most_edges: usize) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("skewtap"),
            spans_received: Family::default(),
            spans_rejected: Family::default(),
            requests_refused: Family::default(),
            requests_ignored: Family::default(),
            proxies: ProxyDrops::default(),
            pipeline: PipelineMetrics::default(),
            verdicts: VerdictMetrics::new(most_edges),
            export: ExportCounts::default(),
            webhook: WebhookCounts::default(),
        };
        metrics.start_at_nought();
        metrics.register_receivers();
        metrics.proxies.register(&mut metrics.registry);
        metrics.register_pipeline();
        metrics.verdicts.register(&mut metrics.registry);
        metrics.export.register(&mut metrics.registry);
        metrics.webhook.register(&mut metrics.registry);
        metrics
    }

    /// A counter that is there before it counts can be seen to count for the first time.
    fn start_at_nought(&self) {
        for reason in Refusal::ALL.map(Refusal::name) {
            drop(self.requests_refused.get_or_create(&ReasonLabel { reason }));
        }
        for reason in RejectReason::ALL.map(RejectReason::name) {
            drop(self.spans_rejected.get_or_create(&ReasonLabel { reason }));
        }
    }

    /// Counts an acknowledged request of `spans` spans.
    pub(crate) fn count_request(&self, transport: &'static str, spans: u64, rejected: &Rejected) {
        self.spans_received
            .get_or_create(&TransportLabel { transport })
            .inc_by(spans);
        for (reason, count) in &rejected.by_reason {
            let reason = reason.name();
            self.spans_rejected
                .get_or_create(&ReasonLabel { reason })
                .inc_by(*count);
        }
    }

    /// Counts a request that got an error.
    pub(crate) fn count_refusal(&self, refusal: Refusal) {
        let reason = refusal.name();
        self.requests_refused
            .get_or_create(&ReasonLabel { reason })
            .inc();
    }

    /// Counts a request of a signal that is not kept.
    pub(crate) fn count_ignored(&self, signal: &'static str) {
        self.requests_ignored
            .get_or_create(&SignalLabel { signal })
            .inc();
    }

    /// All of them in the text format of OpenMetrics 1.0.
    ///
    /// # Errors
    /// When a label cannot be written, which the text format allows for.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn register_receivers(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "spans_received",
            "Spans in acknowledged OTLP requests",
            self.spans_received.clone(),
        );
        registry.register(
            "spans_rejected",
            "Spans in acknowledged OTLP requests that cannot be used",
            self.spans_rejected.clone(),
        );
        registry.register(
            "otlp_requests_refused",
            "OTLP requests answered with an error",
            self.requests_refused.clone(),
        );
        registry.register(
            "otlp_requests_ignored",
            "OTLP requests of signals that are acknowledged and not kept",
            self.requests_ignored.clone(),
        );
    }

    fn register_pipeline(&mut self) {
        let (registry, pipeline) = (&mut self.registry, &self.pipeline);
        let counters = [
            (
                "unreadable_batches",
                "Batches of the observation log that could not be read",
                &pipeline.unreadable_batches,
            ),
            (
                "store_retries",
                "Times the store refused results of the pipeline",
                &pipeline.store_retries,
            ),
            (
                "duplicate_observations",
                "Observations that were there already",
                &pipeline.duplicates,
            ),
            (
                "unjoinable_spans",
                "Spans that no exchange could ever join",
                &pipeline.unjoinable,
            ),
            (
                "crowded_out_observations",
                "Observations dropped because their client span had too many",
                &pipeline.crowded_out,
            ),
            (
                "evicted_client_spans",
                "Client spans let go early to make room",
                &pipeline.evicted,
            ),
            (
                "unmatched_client_spans",
                "Spans let go because nothing came that belongs to them",
                &pipeline.unmatched,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "open_client_spans",
            "Client spans held until they are settled",
            pipeline.open.clone(),
        );
        registry.register_with_unit(
            "observation_log",
            "Size of the batches that are not settled",
            prometheus_client::registry::Unit::Bytes,
            pipeline.log_bytes.clone(),
        );
    }
}
