//! Taking requests: what both transports do with one, and how each answers.

pub(crate) mod bearer_tokens;
mod connections;
mod http_answer;
mod http_body;
mod other_signals;
pub(crate) mod otlp_grpc;
pub(crate) mod otlp_http;
mod refusal;
pub(crate) mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest,
};

use self::bearer_tokens::BearerTokens;
pub(crate) use self::refusal::Refusal;
use crate::arrival_clock::ArrivalClock;
use crate::export::{ExportQueue, Origin};
use crate::metrics::Metrics;
use crate::otlp_decode::{self, Decoded};
use crate::store::writer::{AppendError, StoreWriter};

/// Requests of one transport that are read and decoded at once; more wait for their turn.
/// Bounds the memory that senders can claim together.
const MOST_UNDER_WAY: usize = 64;

/// How long a sender is asked to wait before it tries again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a request has to go through before it is acknowledged; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Intake {
    /// Where batches become durable.
    pub(crate) writer: StoreWriter,
    /// Where everything is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// What stamps arrivals.
    pub(crate) clock: ArrivalClock,
    /// Who may send.
    pub(crate) tokens: BearerTokens,
    /// Where everything that is acknowledged is sent on to.
    pub(crate) export: Option<ExportQueue>,
}

impl Intake {
    /// Takes a request: when this returns `Ok` it is on disk and may be acknowledged with
    /// what is returned. `body` is the request in protobuf.
    ///
    /// # Errors
    /// [`AppendError`]; the sender may try again.
    async fn take(
        &self,
        transport: &'static str,
        request: &ExportTraceServiceRequest,
        body: Bytes,
    ) -> Result<Option<ExportTracePartialSuccess>, AppendError> {
        let spans = count_spans(request);
        let Decoded {
            observations,
            rejected,
            dropped,
        } = otlp_decode::decode(request);
        if spans > rejected.total() {
            let now_ns = self.clock.now_ns();
            let appended = self.writer.append(now_ns, body.clone(), observations).await;
            appended.inspect_err(|error| self.metrics.count_refusal(error.into()))?;
        }
        self.metrics.count_request(transport, spans, &rejected);
        self.metrics.proxies.note(&dropped);
        if let Some(export) = self.export.as_ref().filter(|_| spans > 0) {
            export.offer(Origin::Received, spans, body);
        }
        if rejected.total() == 0 {
            return Ok(None);
        }
        Ok(Some(ExportTracePartialSuccess {
            rejected_spans: i64::try_from(rejected.total()).unwrap_or(i64::MAX),
            error_message: rejected.to_string(),
        }))
    }
}

fn count_spans(request: &ExportTraceServiceRequest) -> u64 {
    request
        .resource_spans
        .iter()
        .flat_map(|resource| &resource.scope_spans)
        .fold(0, |sum, scope| {
            sum + u64::try_from(scope.spans.len()).unwrap_or(u64::MAX)
        })
}
