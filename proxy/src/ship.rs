//! Records on their way to the collector, as OpenTelemetry spans over OTLP.
//!
//! Written here from the record on, not by the SDK's exporter: that copies each attribute three
//! times, and would take half of what a request costs in all.

mod otlp_client;
mod protobuf;
mod span_batch;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use skewtap_core::exchange::ExchangeRecord;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::metrics::{Dropped, Metrics};

use otlp_client::OtlpClient;
use span_batch::SpanBatch;

/// Most records of one request to the collector.
const BATCH: usize = 512;

/// How long the first record of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_millis(200);

/// Requests made for one batch before it is dropped.
const ATTEMPTS: u32 = 60;

/// Pauses between two requests for one batch: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

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

/// A queue to the collector, and what ships it. The latter ends when the queue is dropped and
/// empty, or when the time allowed after `ending` is over.
pub(crate) fn prepare(
    config: &Config,
    metrics: &Arc<Metrics>,
    ending: CancellationToken,
) -> (Records, impl Future<Output = ()> + Send + 'static) {
    let (queue, records) = mpsc::channel(config.ship_queue);
    let client = config.otlp.as_ref().map(OtlpClient::new);
    let sender = Records {
        queue: client.is_some().then_some(queue),
        metrics: Arc::clone(metrics),
    };
    let metrics = Arc::clone(metrics);
    let drain_timeout = config.drain_timeout;
    let shipping = async move {
        if let Some(client) = client {
            let shipper = Shipper {
                client,
                records,
                metrics,
                batch: SpanBatch::new(),
            };
            shipper.run(ending, drain_timeout).await;
        }
    };
    (sender, shipping)
}

struct Shipper {
    client: OtlpClient,
    records: mpsc::Receiver<ExchangeRecord>,
    metrics: Arc<Metrics>,
    /// What is being sent.
    batch: SpanBatch,
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
        let mut taken = Vec::with_capacity(BATCH);
        while self.next_batch(&mut taken).await {
            self.export().await;
            self.batch.clear();
        }
    }

    /// Fills the batch with at least one record; whether there was one. `taken` is empty before
    /// and after.
    async fn next_batch(&mut self, taken: &mut Vec<ExchangeRecord>) -> bool {
        if self.records.recv_many(taken, BATCH).await == 0 {
            return false;
        }
        let until = Instant::now() + BATCH_WAIT;
        loop {
            for record in taken.drain(..) {
                self.batch.add(&record);
            }
            let room = BATCH.saturating_sub(self.batch.len());
            if room == 0 {
                return true;
            }
            match timeout_at(until, self.records.recv_many(taken, room)).await {
                Ok(more) if more > 0 => {}
                Ok(_) | Err(_) => return true,
            }
        }
    }

    /// Sends the batch, again and again if need be.
    async fn export(&mut self) {
        let records = self.batch.len() as u64;
        let message = self.batch.message(self.metrics.dropped_in_all());
        let mut pause = PAUSES.0;
        for attempt in 1..=ATTEMPTS {
            match self.client.export(message.clone()).await {
                Ok(rejected) => {
                    if attempt > 1 {
                        tracing::info!(attempt, "collector takes records again");
                    }
                    if rejected > 0 {
                        tracing::warn!(records = rejected, "collector rejects records");
                        self.metrics.dropped(Dropped::Rejected, rejected);
                    }
                    self.metrics.shipped(records.saturating_sub(rejected));
                    return;
                }
                Err(error) if attempt == 1 => {
                    let waiting = self.records.len();
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

#[cfg(test)]
mod tests;
