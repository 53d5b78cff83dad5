//! Records on their way to the collector, as OpenTelemetry spans over OTLP.

mod span;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanExporter as _};
use skewtap_core::exchange::ExchangeRecord;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::{Config, without_secrets};
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
                endpoint: without_secrets(endpoint),
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

/// Starts to ship. The task ends when the queue is dropped and empty, or when the time allowed
/// after `ending` is over.
pub(crate) fn start(
    config: &Config,
    exporter: Option<Exporter>,
    metrics: &Arc<Metrics>,
    ending: CancellationToken,
) -> (Records, JoinHandle<()>) {
    let (queue, records) = mpsc::channel(config.ship_queue);
    let sender = Records {
        queue: exporter.is_some().then_some(queue),
        metrics: Arc::clone(metrics),
    };
    let metrics = Arc::clone(metrics);
    let drain_timeout = config.drain_timeout;
    let task = tokio::spawn(async move {
        if let Some(exporter) = exporter {
            let shipper = Shipper {
                exporter,
                records,
                metrics,
                batch: Vec::with_capacity(BATCH),
            };
            shipper.run(ending, drain_timeout).await;
        }
    });
    (sender, task)
}

struct Shipper {
    exporter: Exporter,
    records: mpsc::Receiver<ExchangeRecord>,
    metrics: Arc<Metrics>,
    /// What is being sent.
    batch: Vec<SpanData>,
}

impl Shipper {
    async fn run(mut self, ending: CancellationToken, drain_timeout: Duration) {
        let cut_off = async {
            ending.cancelled().await;
            sleep(drain_timeout).await;
        };
        let all_sent = tokio::select! {
            () = self.ship_all() => true,
            () = cut_off => false,
        };
        if !all_sent {
            let left = self.batch.len().saturating_add(self.records.len());
            self.metrics.dropped(Dropped::Stopped, left as u64);
            tracing::warn!(records = left, "records not shipped before the end");
        }
    }

    async fn ship_all(&mut self) {
        while self.next_batch().await {
            self.export().await;
            self.batch.clear();
        }
    }

    /// Fills the batch with at least one record; whether there was one.
    async fn next_batch(&mut self) -> bool {
        let Some(first) = self.records.recv().await else {
            return false;
        };
        self.batch.push(span::of(&first));
        let until = Instant::now() + BATCH_WAIT;
        while self.batch.len() < BATCH {
            match timeout_at(until, self.records.recv()).await {
                Ok(Some(record)) => self.batch.push(span::of(&record)),
                Ok(None) | Err(_) => break,
            }
        }
        true
    }

    /// Sends the batch, again and again if need be.
    async fn export(&self) {
        let mut pause = PAUSES.0;
        for attempt in 1..=ATTEMPTS {
            let Err(error) = self.exporter.0.export(self.batch.clone()).await else {
                if attempt > 1 {
                    tracing::info!(attempt, "collector takes records again");
                }
                self.metrics.shipped(self.batch.len() as u64);
                return;
            };
            if attempt == 1 {
                tracing::warn!(error = %error, "collector does not take records, trying again");
            } else {
                tracing::debug!(error = %error, attempt, "collector does not take records");
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(PAUSES.1);
        }
        self.metrics
            .dropped(Dropped::NotTaken, self.batch.len() as u64);
    }
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
