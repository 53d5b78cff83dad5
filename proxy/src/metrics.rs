//! What the proxy counts of itself, in the form Prometheus reads.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use skewtap_capture::live::CaptureStats;
use skewtap_core::exchange::Outcome;
use skewtap_host::WatcherCounters;
use skewtap_sockstamp::realtime_ns;

use crate::delay_histogram::DelayHistogram;

/// Why a record was not shipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The queue to the finisher was full.
    FinisherFull,
    /// The queue to the collector was full.
    QueueFull,
    /// The collector did not take it in several attempts.
    NotTaken,
    /// The collector took the batch but not this record.
    Rejected,
    /// The proxy stopped before the collector took it.
    Stopped,
}

impl Dropped {
    const fn name(self) -> &'static str {
        match self {
            Self::FinisherFull => "finisher-full",
            Self::QueueFull => "queue-full",
            Self::NotTaken => "not-taken",
            Self::Rejected => "rejected",
            Self::Stopped => "stopped",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// All counters; safe to use from every thread.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    exchanges: [Counter; Outcome::ALL.len()],
    shipped: Counter,
    dropped: Family<ReasonLabel, Counter>,
    /// All of them, for whoever does not read metrics.
    dropped_in_all: AtomicU64,
    malformed: Counter,
    heads_cut_short: Counter,
    handshakes_failed: Counter,
    messages_lost: Counter,
    open_connections: Gauge,
    resting_connections: Gauge,
    connections: Counter,
    scheduling_delay: DelayHistogram,
    reload_successful: Gauge,
    reload_time: Gauge,
    capture: [Counter; 2],
    watches: [Counter; 3],
    watching_cpu: Counter<f64, AtomicU64>,
}

/// Counts one connection for as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Counted {
    fn among(all: &Gauge) -> Self {
        all.inc();
        Self(all.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("skewtap_proxy");
        let by_outcome = Family::<OutcomeLabel, Counter>::default();
        let exchanges = Outcome::ALL.map(|outcome| {
            by_outcome.get_or_create_owned(&OutcomeLabel {
                outcome: outcome.name(),
            })
        });
        registry.register("exchanges", "Exchanges that ended, by outcome", by_outcome);
        let mut metrics = Self {
            registry,
            exchanges,
            shipped: Counter::default(),
            dropped: Family::default(),
            dropped_in_all: AtomicU64::new(0),
            malformed: Counter::default(),
            heads_cut_short: Counter::default(),
            handshakes_failed: Counter::default(),
            messages_lost: Counter::default(),
            open_connections: Gauge::default(),
            resting_connections: Gauge::default(),
            connections: Counter::default(),
            scheduling_delay: DelayHistogram::default(),
            reload_successful: Gauge::default(),
            reload_time: Gauge::default(),
            capture: Default::default(),
            watches: Default::default(),
            watching_cpu: Counter::default(),
        };
        metrics.register();
        metrics.register_settings();
        metrics.register_watching();
        metrics.reloaded();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "records_shipped",
            "Records that the collector took",
            self.shipped.clone(),
        );
        registry.register(
            "records_dropped",
            "Records that were not shipped, by reason",
            self.dropped.clone(),
        );
        registry.register(
            "malformed_requests",
            "Requests, or connections of HTTP/2, that were not HTTP",
            self.malformed.clone(),
        );
        registry.register(
            "requests_cut_short",
            "Requests of which not even the head came to its end",
            self.heads_cut_short.clone(),
        );
        registry.register(
            "tls_handshakes_failed",
            "TLS handshakes with clients that came to nothing",
            self.handshakes_failed.clone(),
        );
        registry.register(
            "unstamped_requests",
            "Pipelined requests, or streams, whose stamps found no room",
            self.messages_lost.clone(),
        );
        registry.register(
            "open_connections",
            "Client connections open now",
            self.open_connections.clone(),
        );
        registry.register(
            "resting_connections",
            "Client connections open now that hold no buffers, because nothing goes on",
            self.resting_connections.clone(),
        );
        registry.register(
            "connections",
            "Client connections accepted",
            self.connections.clone(),
        );
        registry.register_with_unit(
            "scheduling_delay",
            "From the kernel's stamp of arrived bytes to the proxy's read of them",
            Unit::Seconds,
            self.scheduling_delay.clone(),
        );
    }

    fn register_settings(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "config_last_reload_successful",
            "Whether the last attempt to take on new settings succeeded",
            self.reload_successful.clone(),
        );
        registry.register_with_unit(
            "config_last_reload_success_timestamp",
            "When settings were last taken on, at the start or later",
            Unit::Seconds,
            self.reload_time.clone(),
        );
    }

    fn register_watching(&mut self) {
        let registry = &mut self.registry;
        let [received, dropped] = self.capture.clone();
        registry.register("capture_packets", "Packets captured", received);
        registry.register("capture_drops", "Packets lost to the capture", dropped);
        let [watched, refused, polls] = self.watches.clone();
        registry.register("watches", "Watches over receive queues", watched);
        registry.register("watches_refused", "Watches refused, too many ran", refused);
        registry.register("queue_lookups", "Look-ups of receive queues", polls);
        registry.register_with_unit(
            "watching_cpu",
            "CPU time of watching queues and processes",
            Unit::Seconds,
            self.watching_cpu.clone(),
        );
    }

    /// Notes that new settings are in use.
    pub(crate) fn reloaded(&self) {
        self.reload_successful.set(1);
        self.reload_time.set(realtime_ns() / 1_000_000_000);
    }

    /// Notes that new settings could not be used.
    pub(crate) fn reload_failed(&self) {
        self.reload_successful.set(0);
    }

    /// Takes over what the capture has counted.
    pub(crate) fn capture(&self, stats: CaptureStats) {
        let dropped = stats.dropped.saturating_add(stats.dropped_by_interface);
        for (counter, value) in self.capture.iter().zip([stats.received, dropped]) {
            counter.inner().store(value, Relaxed);
        }
    }

    /// Takes over what the watcher has counted.
    pub(crate) fn watcher(&self, counts: WatcherCounters) {
        let values = [counts.watched, counts.refused, counts.polls];
        for (counter, value) in self.watches.iter().zip(values) {
            counter.inner().store(value, Relaxed);
        }
        let cpu_ns = counts.watcher_cpu_ns.saturating_add(counts.sampler_cpu_ns);
        self.watching_cpu
            .inner()
            .store(seconds(cpu_ns).to_bits(), Relaxed);
    }

    /// The text of `/metrics`.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    pub(crate) fn exchange(&self, outcome: Outcome) {
        let counters = Outcome::ALL.iter().zip(&self.exchanges);
        for (_, counter) in counters.filter(|(of, _)| **of == outcome) {
            counter.inc();
        }
    }

    pub(crate) fn shipped(&self, records: u64) {
        self.shipped.inc_by(records);
    }

    pub(crate) fn dropped(&self, reason: Dropped, records: u64) {
        let reason = reason.name();
        self.dropped
            .get_or_create(&ReasonLabel { reason })
            .inc_by(records);
        self.dropped_in_all.fetch_add(records, Relaxed);
    }

    /// Records that were not shipped, for whatever reason.
    pub(crate) fn dropped_in_all(&self) -> u64 {
        self.dropped_in_all.load(Relaxed)
    }

    pub(crate) fn head_cut_short(&self) {
        self.heads_cut_short.inc();
    }

    pub(crate) fn handshake_failed(&self) {
        self.handshakes_failed.inc();
    }

    pub(crate) fn messages_lost(&self, messages: u64) {
        if messages > 0 {
            self.messages_lost.inc_by(messages);
        }
    }

    pub(crate) fn connection_opened(&self) -> Counted {
        self.connections.inc();
        Counted::among(&self.open_connections)
    }

    pub(crate) fn connection_rests(&self) -> Counted {
        Counted::among(&self.resting_connections)
    }

    pub(crate) fn connection_error(&self, error: &hyper::Error) {
        if error.is_parse() {
            self.malformed.inc();
        }
    }

    pub(crate) fn stream_connection_error(&self, error: &h2::Error) {
        if error.is_library() {
            self.malformed.inc();
        }
    }

    /// Nanoseconds from arrival to read; negative ones, left by a clock that was set, count as none.
    pub(crate) fn scheduling_delay(&self, ns: i64) {
        self.scheduling_delay.observe(ns.max(0).unsigned_abs());
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a counter of seconds needs no more than 53 bits"
)]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
