//! Records on their way to the collector, as OpenTelemetry spans over OTLP.
//!
//! Written here from the record on, not by the SDK's exporter: that copies each attribute three
//! times, and would take half of what a request costs in all. A record waits in the form in which
//! it is sent, so that nothing of an exchange is kept or copied for it.

mod envelope;
mod key_value;
mod otlp_client;
mod protobuf;
mod queue;
mod span_batch;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::metrics::{Dropped, Metrics};
use crate::record::Record;

use envelope::Envelope;
use otlp_client::OtlpClient;
use queue::Queue;
use span_batch::SpanBatch;

/// Requests made for one batch before it is dropped.
const ATTEMPTS: u32 = 60;

/// Pauses between two requests for one batch: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The way to the collector, which is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Records {
    queue: Option<Arc<Queue>>,
    metrics: Arc<Metrics>,
}

impl Records {
    /// Hands a record over without waiting.
    pub(crate) fn add(&self, record: &Record<'_>) {
        if let Some(queue) = &self.queue
            && !queue.add(record)
        {
            self.metrics.dropped(Dropped::QueueFull, 1);
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            queue.close();
        }
    }
}

/// A way to the collector, and what ships what is put there. The latter ends when the way is
/// closed and all was shipped, or when the time allowed after `ending` is over.
pub(crate) fn prepare(
    config: &Config,
    metrics: &Arc<Metrics>,
    ending: CancellationToken,
) -> (Records, impl Future<Output = ()> + Send + 'static) {
    let ends = config.otlp.as_ref().map(|endpoint| {
        let queue = Arc::new(Queue::new(config.ship_queue));
        (OtlpClient::new(endpoint), queue)
    });
    let records = Records {
        queue: ends.as_ref().map(|(_, queue)| Arc::clone(queue)),
        metrics: Arc::clone(metrics),
    };
    let metrics = Arc::clone(metrics);
    let drain_timeout = config.drain_timeout;
    let shipping = async move {
        if let Some((client, queue)) = ends {
            let shipper = Shipper {
                client,
                queue,
                metrics,
                envelope: Envelope::new(),
                in_flight: 0,
            };
            shipper.run(ending, drain_timeout).await;
        }
    };
    (records, shipping)
}

struct Shipper {
    client: OtlpClient,
    queue: Arc<Queue>,
    metrics: Arc<Metrics>,
    envelope: Envelope,
    /// Records that are being sent.
    in_flight: usize,
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
            let left = self.in_flight.saturating_add(self.queue.abandon());
            self.metrics.dropped(Dropped::Stopped, left as u64);
            tracing::warn!(records = left, "records not shipped before the end");
        }
    }

    async fn ship_all(&mut self) {
        while let Some(batch) = self.queue.next().await {
            self.in_flight = batch.len();
            self.export(batch).await;
            self.in_flight = 0;
        }
    }

    /// Sends the batch, again and again if need be.
    async fn export(&mut self, batch: SpanBatch) {
        let records = batch.len() as u64;
        let spans = batch.into_bytes();
        let dropped = self.metrics.dropped_in_all();
        let head = self.envelope.before(spans.len(), dropped);
        let mut pause = PAUSES.0;
        for attempt in 1..=ATTEMPTS {
            match self.client.export(head.clone(), spans.clone()).await {
                Ok(rejected) => {
                    if attempt > 1 {
                        tracing::info!(attempt, "collector takes records again");
                    }
                    if rejected > 0 {
                        tracing::warn!(records = rejected, "collector rejects records");
                        self.metrics.dropped(Dropped::Rejected, rejected);
                    }
                    self.metrics.shipped(records.saturating_sub(rejected));
                    self.queue.recycle(spans);
                    return;
                }
                Err(error) if attempt == 1 => {
                    let waiting = self.queue.len();
                    tracing::warn!(error = %error, waiting, "collector does not take records");
                }
                Err(error) => {
                    tracing::debug!(error = %error, attempt, "collector does not take records");
                }
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(PAUSES.1);
        }
        self.metrics.dropped(Dropped::NotTaken, records);
    }
}
