//! Which match an observation belongs to, and as which of its sides.

use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::reported_span::{ReportedSpan, SpanKind};

use super::MatchKey;
use crate::observation::Observation;

/// The side of a match that an observation is.
#[derive(Debug)]
pub(super) enum Side {
    /// What the proxy saw.
    Exchange(Box<ExchangeRecord>),
    /// What the side that asked said.
    Client(Box<ReportedSpan>),
    /// What the side that answered said, as a child of the client's span.
    Server(Box<ReportedSpan>),
    /// What the side that answered said under the client's own span id, as Zipkin's B3 has it.
    Shared(Box<ReportedSpan>),
}

/// Where an observation goes at first, or `None` where nothing could ever join it.
///
/// A server's span goes under its parent. Whether it shares its client's id instead is known
/// once a client's span of that id is there.
pub(super) fn place(observation: Observation) -> Option<(MatchKey, Side)> {
    match observation {
        Observation::Exchange(record) => {
            let key = key(record.trace_id, record.join_span_id());
            Some((key, Side::Exchange(record)))
        }
        Observation::Span(span) => match span.kind {
            SpanKind::Server => Some(match span.parent_span_id {
                Some(parent) => (key(span.trace_id, parent), Side::Server(span)),
                None => (own_key(&span), Side::Shared(span)),
            }),
            // An application may send its context from within a span of another kind.
            SpanKind::Client | SpanKind::Producer | SpanKind::Internal | SpanKind::Unspecified => {
                Some((own_key(&span), Side::Client(span)))
            }
            SpanKind::Consumer => None,
        },
    }
}

/// The side that an observation is of the match `key`, to which it is known to belong.
pub(super) fn side(observation: Observation, key: MatchKey) -> Option<Side> {
    match place(observation)?.1 {
        Side::Server(span) if own_key(&span) == key => Some(Side::Shared(span)),
        side => Some(side),
    }
}

/// The match that a span would name as its client.
pub(super) fn own_key(span: &ReportedSpan) -> MatchKey {
    key(span.trace_id, span.span_id)
}

/// The match that a span's parent names.
pub(super) fn parent_key(span: &ReportedSpan) -> Option<MatchKey> {
    Some(key(span.trace_id, span.parent_span_id?))
}

const fn key(trace_id: TraceId, span_id: SpanId) -> MatchKey {
    MatchKey { trace_id, span_id }
}
