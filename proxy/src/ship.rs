//! Records on their way to the collector, as OpenTelemetry spans over OTLP.

mod span;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanExporter as _};
use skewtap_core::exchange::ExchangeRecord;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use crate::config::Config;
use crate::metrics::{Dropped, Metrics};
use crate::proxy::StartError;

/// Most records of one request to the collector.
const BATCH: usize = 512;

/// How long the first record of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_millis(200);

/// Longest time for one request to the collector.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests made for one batch before it is dropped.
const ATTEMPTS: u32 = 60;

/// Pauses between two requests for one batch: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The name of the proxy as a service.
const SERVICE: &str = "skewtap-proxy";

/// Where records go.
#[derive(Debug)]
pub(crate) struct Exporter(SpanExporter);

impl Exporter {
    /// An exporter for `endpoint`; it connects when first used.
    ///
    /// # Errors
    /// When the endpoint cannot be used.
    pub(crate) fn new(endpoint: &Url) -> Result<Self, StartError> {
        let mut exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint.as_str())
            .with_timeout(EXPORT_TIMEOUT)
            .build()
            .map_err(|source| StartError::Export {
                endpoint: endpoint.to_string(),
                source,
            })?;
        exporter.set_resource(&resource());
        Ok(Self(exporter))
    }
}

/// The queue to the collector.
#[derive(Debug)]
pub(crate) struct Records {
    queue: Option<mpsc::Sender<ExchangeRecord>>,
    metrics: Arc<Metrics>,
}

impl Records {
    /// Hands a record over without waiting.
    pub(crate) fn send(&self, record: ExchangeRecord) {
        if let Some(queue) = &self.queue
            && queue.try_send(record).is_err()
        {
            self.metrics.dropped(Dropped::QueueFull, 1);
        }
    }
}

/// Starts to ship. The task ends when the queue is dropped and empty, or the time allowed for
/// that is over.
pub(crate) fn start(
    config: &Config,
    exporter: Option<Exporter>,
    metrics: &Arc<Metrics>,
) -> (Records, JoinHandle<()>) {
    let (queue, records) = mpsc::channel(config.ship_queue);
    let shipped = Records {
        queue: exporter.is_some().then_some(queue),
        metrics: Arc::clone(metrics),
    };
    let metrics = Arc::clone(metrics);
    let drain_timeout = config.drain_timeout;
    let task = tokio::spawn(async move {
        if let Some(exporter) = exporter {
            ship(&exporter, records, &metrics, drain_timeout).await;
        }
    });
    (shipped, task)
}

async fn ship(
    exporter: &Exporter,
    mut records: mpsc::Receiver<ExchangeRecord>,
    metrics: &Metrics,
    drain_timeout: Duration,
) {
    let mut stop_by = None;
    while let Some(batch) = next_batch(&mut records).await {
        if records.is_closed() {
            let until = *stop_by.get_or_insert_with(|| Instant::now() + drain_timeout);
            let sending = export(exporter, &batch, &mut records, metrics);
            if timeout_at(until, sending).await.is_err() {
                let left = batch.len().saturating_add(records.len());
                metrics.dropped(Dropped::Stopped, left as u64);
                tracing::warn!(records = left, "records not shipped before the end");
                return;
            }
        } else {
            export(exporter, &batch, &mut records, metrics).await;
        }
    }
}

/// The next records, at least one; `None` when there will be no more.
async fn next_batch(records: &mut mpsc::Receiver<ExchangeRecord>) -> Option<Vec<ExchangeRecord>> {
    let mut batch = Vec::new();
    if records.recv_many(&mut batch, BATCH).await == 0 {
        return None;
    }
    let until = Instant::now() + BATCH_WAIT;
    while let Some(room) = BATCH.checked_sub(batch.len()).filter(|room| *room > 0) {
        match timeout_at(until, records.recv_many(&mut batch, room)).await {
            Ok(taken) if taken > 0 => {}
            _ => break,
        }
    }
    Some(batch)
}

/// Sends one batch, again and again if need be.
async fn export(
    exporter: &Exporter,
    batch: &[ExchangeRecord],
    records: &mut mpsc::Receiver<ExchangeRecord>,
    metrics: &Metrics,
) {
    let mut pause = PAUSES.0;
    for attempt in 1..=ATTEMPTS {
        // Made anew for each attempt: as a rule there is one, and a copy costs as much.
        let spans = batch.iter().map(span::of).collect();
        match exporter.0.export(spans).await {
            Ok(()) => {
                if attempt > 1 {
                    tracing::info!(attempt, "collector takes records again");
                }
                metrics.shipped(batch.len() as u64);
                return;
            }
            Err(error) if attempt == 1 => {
                tracing::warn!(error = %error, waiting = records.len(), "collector does not take records");
            }
            Err(error) => {
                tracing::debug!(error = %error, attempt, "collector does not take records")
            }
        }
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSES.1);
    }
    metrics.dropped(Dropped::NotTaken, batch.len() as u64);
}

fn resource() -> Resource {
    let instance = RandomIdGenerator::default().new_trace_id();
    let mut attributes = vec![KeyValue::new("service.instance.id", instance.to_string())];
    if let Ok(name) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        attributes.push(KeyValue::new("host.name", name.trim().to_owned()));
    }
    Resource::builder_empty()
        .with_service_name(SERVICE)
        .with_attributes(attributes)
        .build()
}
