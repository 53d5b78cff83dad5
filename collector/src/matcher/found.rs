//! What a matcher gives, and what it asks for.

use skewtap_core::audit::Observed;
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::reported_span::ReportedSpan;

use crate::observation::Observation;

/// What names one match: a trace, and the span id that its sides share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatchKey {
    /// The trace.
    pub trace_id: TraceId,
    /// The client's span: the server's parent, and what the exchange was asked under.
    pub span_id: SpanId,
}

/// What belongs to one client span, ready to be judged.
#[derive(Clone, Debug)]
pub struct Match {
    /// What names it.
    pub key: MatchKey,
    /// What was seen and said.
    pub observed: Observed,
    /// Spans that claim to belong to it as well, and that a verdict does not rest on.
    pub others: Vec<ReportedSpan>,
    /// How much that is: observations and stamps. A later match of the same key has more.
    pub evidence: i64,
    /// The evidence of the match of the same key before this one; 0 if this is the first.
    pub revises: i64,
    /// Which sides are there.
    pub kind: MatchKind,
}

/// What the store has of a match that was let go.
#[derive(Clone, Debug)]
pub struct Past {
    /// The evidence of the verdict.
    pub evidence: i64,
    /// What it was judged from.
    pub observations: Vec<Observation>,
}

/// Which sides a match has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchKind {
    /// Everything that could be expected.
    Complete,
    /// The client's span is missing.
    NoClient,
    /// At least one server's span is missing.
    NoServer,
    /// Both sides' spans are missing.
    ExchangeOnly,
    /// Both sides' spans are there, but no exchange.
    NoExchange,
}

impl MatchKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Complete,
        Self::NoClient,
        Self::NoServer,
        Self::ExchangeOnly,
        Self::NoExchange,
    ];

    /// The name used in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::NoClient => "no_client",
            Self::NoServer => "no_server",
            Self::ExchangeOnly => "exchange_only",
            Self::NoExchange => "no_exchange",
        }
    }
}
