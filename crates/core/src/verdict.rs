//! What an audit hands back.

use crate::clock::{ClientClock, ClockOffset, Interval, ProxyClock, ServerClock};
use crate::exchange::{Outcome, Sources};
use crate::exchange_detail::ExchangeDetail;
use crate::ids::{SpanId, TraceId};
use crate::ledger::{Ledger, Segment};

/// The judgement on one client span, or on one exchange where the client sent no span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The trace.
    pub trace_id: TraceId,
    /// The client's span, whether or not it arrived.
    pub client_span_id: SpanId,
    /// Method of the last exchange.
    pub method: String,
    /// Path of the last exchange, without the query.
    pub path: String,
    /// Low-cardinality path as the server's span has it.
    pub route: Option<String>,
    /// Host and port asked for.
    pub authority: String,
    /// Status of the last exchange.
    pub status: Option<u16>,
    /// How the last exchange ended.
    pub outcome: Outcome,
    /// Exchanges under this client span.
    pub exchanges: usize,
    /// `service.name` of the client, if its span arrived.
    pub client_service: Option<String>,
    /// `service.name` of the server, if its span arrived.
    pub server_service: Option<String>,
    /// First request byte, in nanoseconds since the Unix epoch on the proxy's clock.
    pub started_ns: Option<i64>,
    /// What the client observed: its span, or the bracket from first byte to pick-up.
    pub client: Option<Interval>,
    /// Whether `client` is the length of a span.
    pub client_from_span: bool,
    /// Length of the server's span, or of all of them where there were several exchanges.
    pub server_ns: Option<i64>,
    /// From the first request byte sent to the server to the last response byte received.
    pub wire: Option<Interval>,
    /// The split.
    pub ledger: Option<Ledger>,
    /// The named causes.
    pub findings: Vec<Finding>,
    /// Statements that contradict each other.
    pub faults: Vec<Fault>,
    /// Whether a gap was found that deserves a person's attention.
    pub flagged: bool,
    /// What the judgement rests on.
    pub quality: Quality,
    /// What to draw: bars on the proxy's time axis.
    pub bars: Vec<Bar>,
    /// The exchanges under this client span, in order.
    pub exchanges_detail: Vec<ExchangeDetail>,
}

impl Verdict {
    /// Client-observed time minus server-observed time; signed. `None` unless both sent spans.
    #[must_use]
    pub fn gap_ns(&self) -> Option<i64> {
        let client = self.client.filter(|_| self.client_from_span)?;
        Some(client.lo().saturating_sub(self.server_ns?))
    }
}

/// A cause, with what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the cause, such as `client_blind_sleep`.
    pub cause: &'static str,
    /// The segment whose time it explains.
    pub segment: Segment,
    /// How much time it explains.
    pub within: Interval,
    /// How sure the finding is.
    pub confidence: Confidence,
    /// What was observed, one statement each.
    pub evidence: Vec<Evidence>,
    /// What would have spoken against it and was looked for.
    pub refuted_by: &'static str,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The evidence fits, and so do neighbouring causes.
    Possible,
    /// The evidence fits and neighbouring causes do not.
    Likely,
    /// The cause itself was observed at work.
    Observed,
}

impl Confidence {
    /// The name used in JSON and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Observed => "observed",
        }
    }
}

/// One observation behind a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What kind of observation, such as `unread_queue`.
    pub kind: &'static str,
    /// The observation in words, with its numbers.
    pub statement: String,
}

/// A contradiction between statements, beyond their uncertainty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name of the contradiction, such as `clock_disagreement`.
    pub kind: &'static str,
    /// What contradicts what, with numbers.
    pub statement: String,
}

/// What a verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quality {
    /// The stamp sources as the proxy reported them; `None` when no exchange record arrived.
    pub sources: Option<Sources>,
    /// What would have sharpened the verdict and is not there, such as `client_span`.
    pub missing: Vec<&'static str>,
    /// How far the client's clock is ahead of the proxy's, where bounded.
    pub client_clock: Option<ClockOffset<ClientClock, ProxyClock>>,
    /// How far the server's clock is ahead of the proxy's, where bounded.
    pub server_clock: Option<ClockOffset<ServerClock, ProxyClock>>,
    /// Anything else a reader should know.
    pub notes: Vec<String>,
}

/// Who a bar belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// The client.
    Client,
    /// The wire, as the proxy saw it.
    Wire,
    /// The server.
    Server,
}

impl Lane {
    /// The name used in JSON and on the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Wire => "wire",
            Self::Server => "server",
        }
    }
}

/// Something with a start and an end to draw, on the proxy's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Where to draw it.
    pub lane: Lane,
    /// What it is, such as `client_unread` or `span`.
    pub name: String,
    /// Which exchange under the client span it belongs to, counted from 0; `None` for what
    /// belongs to the span as a whole.
    pub exchange: Option<usize>,
    /// When it began, relative to [`Verdict::started_ns`].
    pub start: Interval,
    /// When it ended, relative to [`Verdict::started_ns`].
    pub end: Interval,
}
