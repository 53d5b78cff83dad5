//! What a verdict keeps of each exchange, for readers who want its instants and not only the
//! rows between them.

use crate::exchange::{ExchangeRecord, Leg, Outcome};
use crate::ids::SpanId;
use crate::milestone::Milestones;

/// One exchange under a client span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeDetail {
    /// The exchange's own span.
    pub span_id: SpanId,
    /// Request method.
    pub method: String,
    /// `http` or `https`.
    pub scheme: String,
    /// Host and port asked for.
    pub authority: String,
    /// Request path, without the query.
    pub path: String,
    /// Status of the final response; `None` when there was none.
    pub status: Option<u16>,
    /// How the exchange ended.
    pub outcome: Outcome,
    /// Bytes of the request message, head included, where counted.
    pub request_bytes: Option<i64>,
    /// Bytes of the final response message, head included, where counted.
    pub response_bytes: Option<i64>,
    /// The connection from the client.
    pub down: Leg,
    /// The connection to the server; `None` when none was made.
    pub up: Option<Leg>,
    /// The stamps.
    pub milestones: Milestones,
}

impl From<&ExchangeRecord> for ExchangeDetail {
    fn from(record: &ExchangeRecord) -> Self {
        Self {
            span_id: record.span_id,
            method: record.method.clone(),
            scheme: record.scheme.clone(),
            authority: record.authority.clone(),
            path: record.path.clone(),
            status: record.status,
            outcome: record.outcome,
            request_bytes: record.request_bytes,
            response_bytes: record.response_bytes,
            down: record.down.clone(),
            up: record.up.clone(),
            milestones: record.milestones.clone(),
        }
    }
}
