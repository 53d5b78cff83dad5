//! What is counted of everything that leaves the collector by itself.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Labelled, OriginLabel, OutcomeLabel, ReasonLabel};

/// Why spans were not sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportDrop {
    /// Too much was waiting.
    QueueFull,
    /// The backend said that it will never take the request.
    Refused,
    /// The backend took the request but for these.
    Rejected,
    /// The backend asked for another try for too long.
    GaveUp,
    /// The collector stopped.
    Stopped,
}

impl ExportDrop {
    /// Every reason.
    const ALL: [Self; 5] = [
        Self::QueueFull,
        Self::Refused,
        Self::Rejected,
        Self::GaveUp,
        Self::Stopped,
    ];

    /// The name used in metrics.
    const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::GaveUp => "gave_up",
            Self::Stopped => "stopped",
        }
    }
}

/// What became of spans that were to be sent on; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExportCounts {
    sent: Labelled<OriginLabel>,
    dropped: Labelled<ReasonLabel>,
    pushes: Labelled<OutcomeLabel>,
    /// Tries that have to be made again.
    pub(crate) retries: Counter,
    /// Spans that wait.
    pub(crate) waiting: Gauge,
}

impl ExportCounts {
    /// Counts spans in requests that the backend acknowledged.
    pub(crate) fn sent(&self, origin: &'static str, spans: u64) {
        self.sent
            .get_or_create(&OriginLabel { origin })
            .inc_by(spans);
    }

    /// Counts spans that the backend will not have.
    pub(crate) fn dropped(&self, reason: ExportDrop, spans: u64) {
        let reason = reason.name();
        self.dropped
            .get_or_create(&ReasonLabel { reason })
            .inc_by(spans);
    }

    /// Counts a push of metrics.
    pub(crate) fn pushed(&self, was_taken: bool) {
        let outcome = if was_taken { "sent" } else { "failed" };
        self.pushes.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Makes them readable, from the first drop on.
    pub(super) fn register(&self, registry: &mut Registry) {
        for reason in ExportDrop::ALL.map(ExportDrop::name) {
            drop(self.dropped.get_or_create(&ReasonLabel { reason }));
        }
        registry.register(
            "export_metrics_pushes",
            "Pushes of the collector's metrics to the export backend",
            self.pushes.clone(),
        );
        registry.register(
            "export_spans",
            "Spans in requests that the export backend acknowledged",
            self.sent.clone(),
        );
        registry.register(
            "export_dropped_spans",
            "Spans that the export backend did not get or did not take",
            self.dropped.clone(),
        );
        registry.register(
            "export_retries",
            "Requests to the export backend that have to be made again",
            self.retries.clone(),
        );
        registry.register(
            "export_waiting_spans",
            "Spans that wait for the export backend",
            self.waiting.clone(),
        );
    }
}

/// What became of messages about flagged verdicts; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookCounts {
    messages: Labelled<OutcomeLabel>,
    /// Flagged verdicts that no message will speak of, because too many came at once.
    pub(crate) dropped_verdicts: Counter,
}

impl WebhookCounts {
    /// Counts a message that was taken.
    pub(crate) fn sent(&self) {
        self.count("sent");
    }

    /// Counts a message that was given up.
    pub(crate) fn failed(&self) {
        self.count("failed");
    }

    fn count(&self, outcome: &'static str) {
        self.messages.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// Makes them readable, from the first message on.
    pub(super) fn register(&self, registry: &mut Registry) {
        for outcome in ["sent", "failed"] {
            drop(self.messages.get_or_create(&OutcomeLabel { outcome }));
        }
        registry.register(
            "webhook_messages",
            "Webhook messages about flagged verdicts",
            self.messages.clone(),
        );
        registry.register(
            "webhook_dropped_verdicts",
            "Flagged verdicts that no webhook message speaks of",
            self.dropped_verdicts.clone(),
        );
    }
}
