//! The client's span cut into rows that add up to it exactly.

pub(crate) mod build;

use std::fmt;

use crate::clock::Interval;

/// A named part of an exchange, in the order time passes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    /// From the start of the client's span to the first request byte at the proxy.
    ClientBeforeSend,
    /// From the first request byte at the proxy to the last.
    RequestTransfer,
    /// From the last request byte at the proxy to the last one sent on.
    ProxyRequest,
    /// From the last request byte sent on to the start of the server's span.
    ServerBeforeSpan,
    /// The server's span, as far as no earlier row covers it.
    ServerSpan,
    /// From the end of the server's span to the last response byte at the proxy.
    ServerAfterSpan,
    /// From the last request byte sent on to the last response byte, where no server span tells more.
    ServerAndNetwork,
    /// From the last response byte at the proxy to the last one sent on.
    ProxyResponse,
    /// From the last response byte sent on to its pick-up by the client's application.
    ClientUnread,
    /// From the pick-up to the end of the client's span.
    ClientAfterRead,
    /// From the last response byte sent on to the end of the client's span, where no pick-up is known.
    ClientAfterArrival,
    /// Between the end of one exchange and the start of the next under one client span.
    BetweenExchanges,
    /// What no stamp assigns to any other row.
    Unexplained,
}

impl Segment {
    /// The name used in JSON, metrics and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientBeforeSend => "client_before_send",
            Self::RequestTransfer => "request_transfer",
            Self::ProxyRequest => "proxy_request",
            Self::ServerBeforeSpan => "server_before_span",
            Self::ServerSpan => "server_span",
            Self::ServerAfterSpan => "server_after_span",
            Self::ServerAndNetwork => "server_and_network",
            Self::ProxyResponse => "proxy_response",
            Self::ClientUnread => "client_unread",
            Self::ClientAfterRead => "client_after_read",
            Self::ClientAfterArrival => "client_after_arrival",
            Self::BetweenExchanges => "between_exchanges",
            Self::Unexplained => "unexplained",
        }
    }

    /// Whether time here is part of a gap: neither endpoint's span nor the wire accounts for it.
    #[must_use]
    pub const fn is_gap(self) -> bool {
        match self {
            Self::ClientBeforeSend
            | Self::ServerBeforeSpan
            | Self::ServerAfterSpan
            | Self::ClientUnread
            | Self::ClientAfterRead
            | Self::ClientAfterArrival
            | Self::Unexplained => true,
            Self::RequestTransfer
            | Self::ProxyRequest
            | Self::ServerSpan
            | Self::ServerAndNetwork
            | Self::ProxyResponse
            | Self::BetweenExchanges => false,
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether the time of a row is accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// Work, transfer, or a wait too short to ask about.
    Ordinary,
    /// A finding names the cause.
    Cause(&'static str),
    /// It is known where the time went at most, not why.
    Unexplained,
}

/// One part of a client's span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which part.
    pub segment: Segment,
    /// Which exchange under the client span it belongs to, counted from 0; `None` for the parts
    /// that belong to the span as a whole.
    pub exchange: Option<usize>,
    /// How long it lasted.
    pub within: Interval,
    /// What the ledger counts for it, in nanoseconds: what is proven, which is the lower bound;
    /// in the last row, the rest.
    pub counted_ns: i64,
    /// Whether it is accounted for.
    pub explanation: Explanation,
}

/// What the total of a ledger is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalFrom {
    /// The length of the client's span.
    ClientSpan,
    /// No client span: from the first request byte to the latest time of the pick-up.
    PickUp,
    /// Neither: from the first request byte to the last response byte sent on.
    Wire,
}

impl TotalFrom {
    /// The name used in JSON and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientSpan => "client-span",
            Self::PickUp => "pick-up",
            Self::Wire => "wire",
        }
    }
}

/// A client's span split into rows.
///
/// Each row counts what is proven of it; the last, [`Segment::Unexplained`], is the rest. So the
/// sum of all `counted_ns` is `total_ns`, always. A negative rest means that the rows are longer
/// than their total, which the verdict reports as a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    /// What is split, in nanoseconds.
    pub total_ns: i64,
    /// What that is.
    pub total_from: TotalFrom,
    /// The parts, in order; the last is `Unexplained`.
    pub rows: Vec<Row>,
}

impl Ledger {
    /// The time of all rows that are not accounted for, in nanoseconds.
    #[must_use]
    pub fn unexplained_ns(&self) -> i64 {
        self.rows
            .iter()
            .filter(|row| row.explanation == Explanation::Unexplained)
            .fold(0, |sum, row| sum.saturating_add(row.counted_ns))
    }
}
