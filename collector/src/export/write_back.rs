//! A verdict as spans of the trace it is about: the parts of the exchange on the wire, the time
//! in which data lay unread, and the verdict itself, all children of the client's span.
//!
//! They carry no record, so that a collector that receives them takes them for no exchange.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use skewtap_core::clock::Interval;
use skewtap_core::exchange_attributes::SCOPE;
use skewtap_core::verdict::{Bar, Verdict};
use skewtap_core::verdict_json::{FindingJson, VerdictJson};

use super::span_ids;
use crate::otlp_encode::{attribute, string};

/// The name of the service that these spans are shown under.
const SERVICE: &str = "skewtap";

/// The flag of a trace context that says that spans are recorded.
const SAMPLED: u32 = 1;

/// The spans of `verdict`, which rests on `evidence` observations and stamps; `page` is the
/// address at which it is shown. `None` where nothing was seen on the wire to place them by.
pub(crate) fn request(
    verdict: &Verdict,
    evidence: i64,
    page: &str,
) -> Option<ExportTraceServiceRequest> {
    let origin_ns = verdict.started_ns?;
    let mut spans = parts(verdict, origin_ns);
    let end = spans.iter().map(|span| span.end_time_unix_nano).max();
    let start = nanoseconds(origin_ns);
    spans.push(Span {
        start_time_unix_nano: start,
        end_time_unix_nano: end.unwrap_or(start).max(start),
        ..verdict_span(verdict, evidence, page, end.unwrap_or(start))
    });
    let scope = InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    Some(ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: vec![
                    text("service.name", SERVICE),
                    text("service.version", env!("CARGO_PKG_VERSION")),
                ],
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope),
                spans,
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    })
}

/// A span for each bar but those of the ends' own spans, which the trace has.
fn parts(verdict: &Verdict, origin_ns: i64) -> Vec<Span> {
    let bars = verdict.bars.iter().filter(|bar| bar.name != "span");
    bars.filter_map(|bar| part(verdict, bar, origin_ns))
        .collect()
}

/// `None` for a bar that certainly ends before it starts: the verdict reports that as a fault.
fn part(verdict: &Verdict, bar: &Bar, origin_ns: i64) -> Option<Span> {
    if bar.end.hi() < bar.start.lo() {
        return None;
    }
    let at = |within: Interval| within + Interval::exactly(origin_ns);
    let (start, end) = (at(bar.start), at(bar.end));
    // Drawn between the middles of the bounds; where those cross, in the instant between them.
    let (from, to) = if start.middle() <= end.middle() {
        (start.middle(), end.middle())
    } else {
        let between = Interval::between(start.middle(), end.middle()).middle();
        (between, between)
    };
    // A name stands once for each exchange.
    let name = format!("{} {}", bar.lane.name(), bar.name);
    let exchange = bar.exchange.unwrap_or_default();
    let number = i64::try_from(exchange).unwrap_or(i64::MAX);
    Some(Span {
        start_time_unix_nano: nanoseconds(from),
        end_time_unix_nano: nanoseconds(to),
        attributes: vec![
            text("skewtap.clock", "proxy"),
            attribute("skewtap.exchange", Value::IntValue(number)),
            bounds("skewtap.start.bounds_unix_nano", start),
            bounds("skewtap.end.bounds_unix_nano", end),
        ],
        ..child(verdict, &name, &name, exchange)
    })
}

fn verdict_span(verdict: &Verdict, evidence: i64, page: &str, at: u64) -> Span {
    let json = VerdictJson::from(verdict);
    let findings = json
        .findings
        .iter()
        .map(|finding| finding_event(finding, at));
    let faults = json.faults.iter().map(|fault| Event {
        time_unix_nano: at,
        name: fault.kind.clone().into_owned(),
        attributes: vec![text("skewtap.statement", &fault.statement)],
        dropped_attributes_count: 0,
    });
    let name = match json.findings.first() {
        Some(finding) => format!("verdict: {}", finding.cause),
        None if verdict.flagged => "verdict: unexplained".to_owned(),
        None => "verdict".to_owned(),
    };
    Span {
        attributes: verdict_attributes(&json, evidence, page),
        events: findings.chain(faults).collect(),
        ..child(verdict, &name, "verdict", 0)
    }
}

fn verdict_attributes(json: &VerdictJson, evidence: i64, page: &str) -> Vec<KeyValue> {
    let causes = json.findings.iter().map(|finding| finding.cause.as_ref());
    let missing = json.quality.missing.iter().map(AsRef::as_ref);
    let mut attributes = vec![
        text("skewtap.clock", "proxy"),
        attribute("skewtap.flagged", Value::BoolValue(json.flagged)),
        texts("skewtap.causes", causes),
        texts("skewtap.missing", missing),
        texts(
            "skewtap.notes",
            json.quality.notes.iter().map(String::as_str),
        ),
        // A later verdict on the same span rests on more.
        attribute("skewtap.evidence", Value::IntValue(evidence)),
        text("skewtap.page", page),
        text("http.request.method", &json.method),
        text("url.path", &json.path),
        text("skewtap.outcome", &json.outcome),
    ];
    if let Some(status) = json.status {
        let status = Value::IntValue(status.into());
        attributes.push(attribute("http.response.status_code", status));
    }
    if let Some(route) = &json.route {
        attributes.push(text("http.route", route));
    }
    let lengths = [
        ("client", json.client_seconds),
        ("server", json.server_seconds),
        ("wire", json.wire_seconds),
        ("gap", json.gap_seconds),
        ("unexplained", json.unexplained_seconds),
    ];
    for (name, length) in lengths {
        let known = length.map(|length| seconds(&format!("skewtap.{name}_seconds"), length));
        attributes.extend(known);
    }
    // Several exchanges under one client span have each part several times.
    let mut segments: BTreeMap<&str, f64> = BTreeMap::new();
    for segment in &json.segments {
        *segments.entry(segment.name.as_ref()).or_default() += segment.seconds;
    }
    for (name, length) in segments {
        attributes.push(seconds(&format!("skewtap.segment.{name}_seconds"), length));
    }
    attributes
}

fn finding_event(finding: &FindingJson, at: u64) -> Event {
    let evidence = finding
        .evidence
        .iter()
        .map(|evidence| evidence.statement.as_str());
    Event {
        time_unix_nano: at,
        name: finding.cause.clone().into_owned(),
        attributes: vec![
            text("skewtap.segment", &finding.segment),
            text("skewtap.confidence", &finding.confidence),
            seconds("skewtap.lo_seconds", finding.lo_seconds),
            seconds("skewtap.hi_seconds", finding.hi_seconds),
            texts("skewtap.evidence", evidence),
            text("skewtap.refuted_by", &finding.refuted_by),
        ],
        dropped_attributes_count: 0,
    }
}

/// A child of the client's span. What it is, its `role`, makes its id, whatever its name.
fn child(verdict: &Verdict, name: &str, role: &str, ordinal: usize) -> Span {
    let parent = verdict.client_span_id;
    Span {
        trace_id: verdict.trace_id.bytes().to_vec(),
        span_id: span_ids::derive(verdict.trace_id, parent, role, ordinal)
            .bytes()
            .to_vec(),
        parent_span_id: parent.bytes().to_vec(),
        flags: SAMPLED,
        name: name.to_owned(),
        kind: SpanKind::Internal.into(),
        ..Span::default()
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, string(value))
}

fn seconds(key: &str, value: f64) -> KeyValue {
    attribute(key, Value::DoubleValue(value))
}

fn texts<'a>(key: &str, values: impl Iterator<Item = &'a str>) -> KeyValue {
    let values = values.map(string);
    list(key, values)
}

fn bounds(key: &str, within: Interval) -> KeyValue {
    let values = [within.lo(), within.hi()].map(Value::IntValue);
    list(key, values.into_iter())
}

fn list(key: &str, values: impl Iterator<Item = Value>) -> KeyValue {
    let values = values.map(|value| AnyValue { value: Some(value) });
    let list = ArrayValue {
        values: values.collect(),
    };
    attribute(key, Value::ArrayValue(list))
}

/// A time before 1970 is given as 1970: no exchange has one.
fn nanoseconds(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}
