//! From an OTLP trace request to observations. Pure: bytes were received elsewhere.
//!
//! A span that cannot be used is left out and counted with its reason; the rest of its
//! request is not touched by that.

mod attributes;
mod rejected;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{Span, span, status};
use prost::Message;
use skewtap_core::exchange_attributes::{self, DROPPED_KEY, SCOPE, VERSION_KEY};
use skewtap_core::ids::{IdError, SpanId, TraceId};
use skewtap_core::reported_span::{ReportedSpan, SpanKind};

use self::attributes::{Attributes, LONGEST_TEXT, shortened};
use self::rejected::SpanError;
pub use self::rejected::{RejectReason, Rejected};
use crate::observation::Observation;

/// The longest a span may last, in nanoseconds: a day. Longer ones are mistakes of a clock.
const LONGEST_SPAN_NS: i64 = 24 * 3600 * 1_000_000_000;

/// The largest exchange, in bytes of protobuf. Real ones have a few thousand.
const LARGEST_EXCHANGE: usize = 256 * 1024;

/// What a request held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// What can be used, in the order of the request.
    pub observations: Vec<Observation>,
    /// What cannot.
    pub rejected: Rejected,
    /// What proxies say they could not send.
    pub dropped: Vec<DroppedRecords>,
}

/// What a proxy says of records that it could not send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedRecords {
    /// What tells the proxy from others: its `service.instance.id`.
    pub proxy: String,
    /// How many it has dropped since it started.
    pub records: u64,
}

/// Takes the observations out of a request.
#[must_use]
pub fn decode(request: &ExportTraceServiceRequest) -> Decoded {
    let mut decoded = Decoded::default();
    for resource_spans in &request.resource_spans {
        let reporter = Reporter::of(resource_spans.resource.as_ref());
        for scope_spans in &resource_spans.scope_spans {
            let scope = Scope::of(scope_spans.scope.as_ref());
            decoded
                .dropped
                .extend(scope.dropped.map(|records| DroppedRecords {
                    proxy: reporter.instance.clone(),
                    records,
                }));
            for span in &scope_spans.spans {
                match observation(span, &scope, &reporter) {
                    Ok(Some(observation)) => decoded.observations.push(observation),
                    Ok(None) => {}
                    Err(error) => decoded.rejected.count(&error),
                }
            }
        }
    }
    decoded
}

/// What kind of statement a span is.
enum Form {
    /// What the proxy saw of one exchange.
    Exchange,
    /// What an application says of itself.
    Reported,
    /// Something else that skewtap writes into traces, which is no observation of an end.
    Ours,
}

impl Form {
    fn of(span: &Span, scope: &Scope) -> Self {
        if scope.name != SCOPE {
            Self::Reported
        } else if span.attributes.iter().any(|a| a.key == VERSION_KEY) {
            Self::Exchange
        } else {
            Self::Ours
        }
    }
}

fn observation(
    span: &Span,
    scope: &Scope,
    reporter: &Reporter,
) -> Result<Option<Observation>, SpanError> {
    match Form::of(span, scope) {
        Form::Exchange => exchange(span).map(Some),
        Form::Reported => reported(span, scope, reporter).map(Some),
        Form::Ours => Checked::of(span).map(|_| None),
    }
}

fn exchange(span: &Span) -> Result<Observation, SpanError> {
    let checked = Checked::of(span)?;
    let bytes = span.encoded_len();
    if bytes > LARGEST_EXCHANGE {
        return Err(SpanError::TooLarge {
            name: short_name(span),
            bytes,
        });
    }
    let attributes = attributes::for_exchange(&span.attributes);
    exchange_attributes::read(
        checked.trace_id,
        checked.span_id,
        checked.parent_span_id,
        &attributes,
    )
    .map(|record| Observation::Exchange(Box::new(record)))
    .map_err(|source| SpanError::Exchange {
        name: short_name(span),
        source,
    })
}

fn reported(span: &Span, scope: &Scope, reporter: &Reporter) -> Result<Observation, SpanError> {
    let checked = Checked::of(span)?;
    let attributes = Attributes(&span.attributes);
    let kind = kind(span);
    Ok(Observation::Span(Box::new(ReportedSpan {
        trace_id: checked.trace_id,
        span_id: checked.span_id,
        parent_span_id: checked.parent_span_id,
        kind,
        name: short_name(span),
        start_ns: checked.start_ns,
        end_ns: checked.end_ns,
        error: span
            .status
            .as_ref()
            .is_some_and(|status| status.code() == status::StatusCode::Error),
        service: reporter.service.clone(),
        instance: reporter.instance.clone(),
        scope: scope.name.clone(),
        scope_version: scope.version.clone(),
        method: attributes.text(&["http.request.method", "http.method"]),
        status: attributes
            .int(&["http.response.status_code", "http.status_code"])
            .and_then(|status| u16::try_from(status).ok()),
        route: attributes.text(&["http.route"]),
        user_agent: attributes.text(&["user_agent.original", "http.user_agent"]),
        peer_port: attributes
            .int(peer_port_keys(kind))
            .and_then(|port| u16::try_from(port).ok()),
    })))
}

/// On a client `net.peer.port` is the port it asked for, which tells nothing of the connection.
const fn peer_port_keys(kind: SpanKind) -> &'static [&'static str] {
    match kind {
        SpanKind::Server => &[
            "network.peer.port",
            "net.sock.peer.port",
            "client.port",
            "net.peer.port",
        ],
        _ => &["network.peer.port", "net.sock.peer.port"],
    }
}

/// The fields every span must have right.
struct Checked {
    trace_id: TraceId,
    span_id: SpanId,
    parent_span_id: Option<SpanId>,
    start_ns: i64,
    end_ns: i64,
}

impl Checked {
    fn of(span: &Span) -> Result<Self, SpanError> {
        let bad_id = |which| {
            move |source| SpanError::Id {
                which,
                name: short_name(span),
                source,
            }
        };
        let start_ns = time(span, "start", span.start_time_unix_nano)?;
        let end_ns = time(span, "end", span.end_time_unix_nano)?;
        let lasts_ns = end_ns.saturating_sub(start_ns);
        if lasts_ns < 0 {
            return Err(SpanError::EndBeforeStart {
                name: short_name(span),
                by_ns: lasts_ns.saturating_neg(),
            });
        }
        if lasts_ns > LONGEST_SPAN_NS {
            return Err(SpanError::TooLong {
                name: short_name(span),
                lasts_ns,
            });
        }
        Ok(Self {
            trace_id: TraceId::from_bytes(&span.trace_id).map_err(bad_id("trace id"))?,
            span_id: SpanId::from_bytes(&span.span_id).map_err(bad_id("span id"))?,
            parent_span_id: parent(span).map_err(bad_id("parent span id"))?,
            start_ns,
            end_ns,
        })
    }
}

fn time(span: &Span, which: &'static str, value: u64) -> Result<i64, SpanError> {
    i64::try_from(value)
        .ok()
        .filter(|ns| *ns > 0)
        .ok_or_else(|| SpanError::Time {
            which,
            name: short_name(span),
            value,
        })
}

/// A root span has no parent id, or one of zeros.
fn parent(span: &Span) -> Result<Option<SpanId>, IdError> {
    if span.parent_span_id.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    SpanId::from_bytes(&span.parent_span_id).map(Some)
}

fn kind(span: &Span) -> SpanKind {
    match span.kind() {
        span::SpanKind::Unspecified => SpanKind::Unspecified,
        span::SpanKind::Internal => SpanKind::Internal,
        span::SpanKind::Server => SpanKind::Server,
        span::SpanKind::Client => SpanKind::Client,
        span::SpanKind::Producer => SpanKind::Producer,
        span::SpanKind::Consumer => SpanKind::Consumer,
    }
}

fn short_name(span: &Span) -> String {
    shortened(&span.name, LONGEST_TEXT)
}

struct Scope {
    name: String,
    version: String,
    /// Records dropped by the proxy whose scope this is.
    dropped: Option<u64>,
}

impl Scope {
    fn of(scope: Option<&InstrumentationScope>) -> Self {
        let ours = scope.filter(|scope| scope.name == SCOPE);
        let dropped = ours.and_then(|scope| Attributes(&scope.attributes).int(&[DROPPED_KEY]));
        Self {
            name: scope.map_or_else(String::new, |s| shortened(&s.name, LONGEST_TEXT)),
            version: scope.map_or_else(String::new, |s| shortened(&s.version, LONGEST_TEXT)),
            dropped: dropped.and_then(|records| u64::try_from(records).ok()),
        }
    }
}

/// Who sent spans, as far as an audit needs to know.
struct Reporter {
    service: String,
    instance: String,
}

impl Reporter {
    fn of(resource: Option<&Resource>) -> Self {
        let none: &[KeyValue] = &[];
        let attributes = Attributes(resource.map_or(none, |r| &r.attributes));
        let host_and_process = || {
            let host = attributes.text(&["host.id", "host.name"])?;
            let process = attributes.int(&["process.pid"])?;
            Some(format!("{host}/{process}"))
        };
        Self {
            service: attributes.text(&["service.name"]).unwrap_or_default(),
            instance: attributes
                .text(&["service.instance.id"])
                .or_else(host_and_process)
                .unwrap_or_default(),
        }
    }
}
