//! What a client or a server said about itself, as its span arrived.

use serde::{Deserialize, Serialize};

use crate::clock::{Clock, Source, Stamp};
use crate::ids::{SpanId, TraceId};

/// The part of an OpenTelemetry span that an audit needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedSpan {
    /// Its trace.
    pub trace_id: TraceId,
    /// Its own id.
    pub span_id: SpanId,
    /// The span that caused it.
    pub parent_span_id: Option<SpanId>,
    /// Which side of a call it describes.
    pub kind: SpanKind,
    /// Its name.
    pub name: String,
    /// Start, in nanoseconds since the Unix epoch on the reporter's clock.
    pub start_ns: i64,
    /// End, on the same clock; not before the start.
    pub end_ns: i64,
    /// Whether its status is an error.
    pub error: bool,
    /// `service.name` of the reporter.
    pub service: String,
    /// What makes the reporter's clock its own: `service.instance.id`, else host and process.
    pub instance: String,
    /// Name of the instrumentation scope.
    pub scope: String,
    /// Version of the instrumentation scope.
    pub scope_version: String,
    /// `http.request.method`.
    pub method: Option<String>,
    /// `http.response.status_code`.
    pub status: Option<u16>,
    /// `http.route`, the low-cardinality path.
    pub route: Option<String>,
    /// `user_agent.original`.
    pub user_agent: Option<String>,
    /// `network.peer.port`: tells several server spans of one call apart.
    pub peer_port: Option<u16>,
}

impl ReportedSpan {
    /// Its start as an instant of clock `C`, which the caller says the reporter stamps with.
    #[must_use]
    pub fn start<C: Clock>(&self) -> Stamp<C> {
        Stamp::at(self.start_ns, Source::Span)
    }

    /// Its end as an instant of clock `C`, which the caller says the reporter stamps with.
    #[must_use]
    pub fn end<C: Clock>(&self) -> Stamp<C> {
        Stamp::at(self.end_ns, Source::Span)
    }

    /// Its length in nanoseconds, exact on the reporter's clock.
    #[must_use]
    pub fn duration_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Which side of a call a span describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// The reporter did not say.
    Unspecified,
    /// Work inside one process.
    Internal,
    /// The side that answers.
    Server,
    /// The side that asks.
    Client,
    /// The side that sends a message.
    Producer,
    /// The side that receives a message.
    Consumer,
}
