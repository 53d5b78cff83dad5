//! What the proxy saw of one request and its final response.

use serde::{Deserialize, Serialize};

use crate::endpoint::{ProcessWatch, QueueWatch};
use crate::ids::{SpanId, TraceId};
use crate::milestone::Milestones;

/// The version of [`ExchangeRecord`] that this crate writes and reads.
pub const RECORD_VERSION: i64 = 1;

/// Everything known of one exchange without asking either endpoint. Its texts are `T`: the proxy,
/// which makes one for each request it forwards, borrows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeRecord<T = String> {
    /// Trace the exchange belongs to.
    pub trace_id: TraceId,
    /// The exchange's own span.
    pub span_id: SpanId,
    /// The span named by the client's `traceparent`; `None` when the proxy had to add the context.
    pub parent_span_id: Option<SpanId>,
    /// Whether the trace context says that spans are recorded.
    pub sampled: bool,
    /// Request method.
    pub method: T,
    /// `http` or `https`.
    pub scheme: T,
    /// Host and port asked for.
    pub authority: T,
    /// Request path, without the query.
    pub path: T,
    /// Status of the final response; `None` when there was none.
    pub status: Option<u16>,
    /// How the exchange ended.
    pub outcome: Outcome,
    /// Bytes of the request message, head included, where counted; of a tunnel also what the
    /// client sent through it.
    pub request_bytes: Option<i64>,
    /// Bytes of the final response message, head included, where counted; of a tunnel also what
    /// the server sent through it.
    pub response_bytes: Option<i64>,
    /// The connection from the client.
    pub down: Leg<T>,
    /// The connection to the server; `None` when none was made.
    pub up: Option<Leg<T>>,
    /// The stream it took on the client's connection; `None` where that is HTTP/1.
    pub down_stream: Option<StreamShare>,
    /// The stream it took on the connection to the server; `None` where that is HTTP/1.
    pub up_stream: Option<StreamShare>,
    /// The stamps.
    pub milestones: Milestones,
    /// The client's receive queue after the response was written.
    pub client_queue: QueueWatch,
    /// The client's process while the response lay unread.
    pub client_process: Option<ProcessWatch>,
    /// The server's receive queue after the request was written.
    pub server_queue: QueueWatch,
    /// The server's process while the request lay unread.
    pub server_process: Option<ProcessWatch>,
    /// Which sources of stamps were at work.
    pub sources: Sources,
    /// By how much `CLOCK_REALTIME` was stepped meanwhile at the least, in nanoseconds; 0 if nothing
    /// shows a step.
    pub clock_step_ns: i64,
}

impl<T> ExchangeRecord<T> {
    /// The span id that the client's span and the server's parent share with this exchange.
    #[must_use]
    pub fn join_span_id(&self) -> SpanId {
        self.parent_span_id.unwrap_or(self.span_id)
    }
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The whole response was passed on.
    Complete,
    /// No connection to the server could be made.
    UpstreamUnreachable,
    /// The server's connection broke before the response was complete.
    UpstreamBroken,
    /// The server's answer was not HTTP.
    UpstreamMalformed,
    /// The client went away before it had the response.
    ClientGone,
    /// The proxy refused the request by itself.
    Refused,
    /// The proxy was told to stop, and ended the exchange when the time allowed was over.
    ProxyStopped,
    /// The connection was handed over to another protocol, which ended by itself.
    Upgraded,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 8] = [
        Self::Complete,
        Self::UpstreamUnreachable,
        Self::UpstreamBroken,
        Self::UpstreamMalformed,
        Self::ClientGone,
        Self::Refused,
        Self::ProxyStopped,
        Self::Upgraded,
    ];

    /// The name used in attributes, JSON and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::UpstreamUnreachable => "upstream-unreachable",
            Self::UpstreamBroken => "upstream-broken",
            Self::UpstreamMalformed => "upstream-malformed",
            Self::ClientGone => "client-gone",
            Self::Refused => "refused",
            Self::ProxyStopped => "proxy-stopped",
            Self::Upgraded => "upgraded",
        }
    }

    /// The inverse of [`Outcome::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// What the address of an end at a Unix socket begins with; the path follows, and nothing for an
/// end without a name.
pub const UNIX_PREFIX: &str = "unix:";

/// One connection, over TCP or to a Unix socket, as the proxy sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg<T = String> {
    /// The proxy's address, `ip:port` or [`UNIX_PREFIX`].
    pub local: T,
    /// The other end's address, `ip:port` or [`UNIX_PREFIX`] and a path.
    pub peer: T,
    /// How many exchanges this connection had carried before this one.
    pub earlier_exchanges: i64,
    /// The kernel's figures at the end of the exchange, where available.
    pub tcp: Option<TcpFigures>,
}

impl<T: AsRef<str>> Leg<T> {
    /// Whether it is a Unix socket, of which the kernel tells no times.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        self.peer.as_ref().starts_with(UNIX_PREFIX)
    }
}

/// A stream of an HTTP/2 connection, and how much of others' went between its bytes.
///
/// Bytes of one message can wait behind bytes of another although both ends are ready for them.
/// The counts say how many bytes did so, not for how long: between two frames of a stream the
/// connection may have been idle as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamShare {
    /// The stream's number.
    pub id: i64,
    /// Bytes of other streams' messages between the first and the last byte of the request;
    /// `None` if not all of it went by.
    pub request_behind_bytes: Option<i64>,
    /// The same of the final response.
    pub response_behind_bytes: Option<i64>,
}

/// What the kernel's `TCP_INFO` adds at the end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpFigures {
    /// Smallest round-trip time seen on the connection, in nanoseconds.
    pub min_rtt_ns: i64,
    /// Segments sent again during the exchange.
    pub retransmits: i64,
    /// Nanoseconds of the exchange in which the peer's receive window held the proxy back.
    pub window_limited_ns: i64,
}

/// The state of every source of stamps during an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// Kernel receive stamps on both legs, but for a leg that [`Leg::is_unix`].
    pub kernel_stamps: SourceState,
    /// Packet capture.
    pub capture: SourceState,
    /// Receive-queue look-ups.
    pub queues: SourceState,
    /// Samples of the endpoints' processes.
    pub processes: SourceState,
}

/// Whether a source of stamps was at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceState {
    /// It was.
    Used,
    /// The user switched it off.
    Off,
    /// It could not be used, and why.
    Unavailable(String),
}
