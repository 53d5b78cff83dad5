//! The only thing that decoding hands on: one statement about one exchange.

use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::reported_span::ReportedSpan;

/// A statement about an exchange, by the proxy or by one of its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// What the proxy saw.
    Exchange(Box<ExchangeRecord>),
    /// What a client or a server said of itself.
    Span(Box<ReportedSpan>),
}
