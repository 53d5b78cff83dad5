//! The task that sends what waits, again and again where that can help.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout_at};

use super::backend::{Accepted, Backend, SendError, Signal};
use super::queue::{Waiting, spans_as_gauge};
use crate::metrics::{ExportCounts, ExportDrop};

/// Bytes of one request, unless a single batch has more. Receivers of gRPC take 4 MiB by default.
const REQUEST_BYTES: usize = 1 << 20;

/// How long the first batch of a request waits for others.
const GATHER: Duration = Duration::from_millis(100);

/// Pauses between two tries: at first, and at most. What the backend asks for counts above them.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The longest pause that a backend is granted.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How long one request is tried for: beyond this something is wrong with it rather than with
/// the backend.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

/// Sends until there is nothing more and nothing more can come.
pub(super) async fn ship(
    backend: &Backend,
    mut waiting: UnboundedReceiver<Waiting>,
    counts: ExportCounts,
) {
    let mut shipper = Shipper {
        backend,
        counts,
        in_trouble: false,
    };
    let mut next = None;
    while let Some(batches) = gather(&mut waiting, &mut next).await {
        shipper.send(batches).await;
    }
}

/// The batches of one request, at least one; `None` when there will be no more. The first that
/// did not fit stays in `next`.
async fn gather(
    waiting: &mut UnboundedReceiver<Waiting>,
    next: &mut Option<Waiting>,
) -> Option<Vec<Waiting>> {
    let first = match next.take() {
        Some(batch) => batch,
        None => waiting.recv().await?,
    };
    let until = Instant::now() + GATHER;
    let mut bytes = first.body.len();
    let mut batches = vec![first];
    while bytes < REQUEST_BYTES {
        let Ok(Some(batch)) = timeout_at(until, waiting.recv()).await else {
            break;
        };
        bytes = bytes.saturating_add(batch.body.len());
        if bytes > REQUEST_BYTES {
            *next = Some(batch);
            break;
        }
        batches.push(batch);
    }
    Some(batches)
}

struct Shipper<'a> {
    backend: &'a Backend,
    counts: ExportCounts,
    /// Whether the last try failed, so that only changes are logged.
    in_trouble: bool,
}

impl Shipper<'_> {
    /// Sends batches as one request; where the backend refuses that for good, one by one, so
    /// that a bad batch does not take the good ones with it.
    async fn send(&mut self, batches: Vec<Waiting>) {
        let refused = match self.try_until_settled(joined(&batches)).await {
            Ok(accepted) => return self.done(&batches, &accepted),
            Err(refused) => refused,
        };
        if refused == ExportDrop::Refused && batches.len() > 1 {
            for batch in batches {
                let batch = [batch];
                match self.try_until_settled(joined(&batch)).await {
                    Ok(accepted) => self.done(&batch, &accepted),
                    Err(reason) => self.dropped(&batch, reason),
                }
            }
        } else {
            self.dropped(&batches, refused);
        }
    }

    async fn try_until_settled(&mut self, body: Bytes) -> Result<Accepted, ExportDrop> {
        let began = Instant::now();
        let mut pause = PAUSES.0;
        loop {
            let (wish, why) = match self.backend.send(Signal::Traces, body.clone()).await {
                Ok(accepted) => {
                    if std::mem::take(&mut self.in_trouble) {
                        tracing::info!(backend = %self.backend, "the backend takes spans again");
                    }
                    return Ok(accepted);
                }
                Err(SendError::Refused(why)) => {
                    tracing::warn!(backend = %self.backend, why, "the backend refuses spans for good");
                    return Err(ExportDrop::Refused);
                }
                Err(SendError::TryAgain { after, why }) => (after, why),
            };
            if !std::mem::replace(&mut self.in_trouble, true) {
                tracing::warn!(backend = %self.backend, why, "the backend does not take spans; trying again");
            }
            self.counts.retries.inc();
            let wait = wish.unwrap_or_default().min(LONGEST_PAUSE).max(pause);
            if began.elapsed().saturating_add(wait) > GIVE_UP_AFTER {
                return Err(ExportDrop::GaveUp);
            }
            sleep(wait).await;
            pause = pause.saturating_mul(2).min(PAUSES.1);
        }
    }

    fn done(&self, batches: &[Waiting], accepted: &Accepted) {
        for batch in batches {
            self.counts.sent(batch.origin.name(), batch.spans);
            self.counts.waiting.dec_by(spans_as_gauge(batch.spans));
        }
        if accepted.rejected_spans > 0 {
            let spans = accepted.rejected_spans;
            tracing::warn!(backend = %self.backend, spans, why = accepted.message, "the backend took some spans only");
            self.counts.dropped(ExportDrop::Rejected, spans);
        }
    }

    fn dropped(&self, batches: &[Waiting], reason: ExportDrop) {
        for batch in batches {
            self.counts.dropped(reason, batch.spans);
            self.counts.waiting.dec_by(spans_as_gauge(batch.spans));
        }
    }
}

/// The batches as one request. A message of protobuf that follows another of its kind adds to
/// its lists, so requests are joined by writing one behind the other.
fn joined(batches: &[Waiting]) -> Bytes {
    if let [only] = batches {
        return only.body.clone();
    }
    let length = batches.iter().map(|batch| batch.body.len()).sum();
    let mut body = BytesMut::with_capacity(length);
    for batch in batches {
        body.extend_from_slice(&batch.body);
    }
    body.freeze()
}
