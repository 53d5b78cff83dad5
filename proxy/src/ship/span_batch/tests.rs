use std::borrow::Cow;
use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use skewtap_core::clock::{Source, Stamp};
use skewtap_core::endpoint::QueueWatch;
use skewtap_core::exchange::{ExchangeRecord, Leg, Outcome, SourceState, Sources, StreamShare};
use skewtap_core::exchange_attributes::{AttributeValue, DROPPED_KEY, SCOPE, write};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::milestone::{Milestone, Milestones};

use super::*;
use crate::ship::envelope::{Envelope, SERVICE};

#[test]
fn a_batch_is_what_otlp_libraries_read() {
    let records = [record(1, true), record(2, false)];
    let mut batch = SpanBatch::default();
    let mut writer = Writer::default();
    for record in &records {
        batch.add(record, &mut writer);
    }
    assert_eq!(batch.len(), 2);
    let envelope = Envelope::new();
    let request = request(&envelope, &batch.into_bytes(), 7);
    let [resource_spans] = &request.resource_spans[..] else {
        panic!("{request:?}");
    };
    let resource = resource_spans.resource.as_ref().unwrap();
    assert_eq!(resource.attributes[0].key, "service.name");
    assert_eq!(
        value(&resource.attributes[0]),
        AttributeValue::Text(SERVICE.to_owned())
    );
    let [scope_spans] = &resource_spans.scope_spans[..] else {
        panic!("{request:?}");
    };
    let scope = scope_spans.scope.as_ref().unwrap();
    assert_eq!(
        (scope.name.as_str(), scope.version.as_str()),
        (SCOPE, "0.1.0")
    );
    let [dropped] = &scope.attributes[..] else {
        panic!("{scope:?}");
    };
    assert_eq!(
        (dropped.key.as_str(), value(dropped)),
        (DROPPED_KEY, AttributeValue::Int(7))
    );
    assert_eq!(scope_spans.spans.len(), 2);
    for (record, span) in records.iter().zip(&scope_spans.spans) {
        assert_says_all_of(span, record);
    }
}

/// What an OTLP library reads of a message, whose gRPC part is looked at here.
fn request(envelope: &Envelope, spans: &[u8], dropped: u64) -> ExportTraceServiceRequest {
    let message = [&envelope.before(spans.len(), dropped), spans].concat();
    let (head, body) = message.split_at(5);
    assert_eq!(head[0], 0, "not compressed");
    let length = u32::from_be_bytes(head[1..].try_into().unwrap());
    assert_eq!(length as usize, body.len());
    ExportTraceServiceRequest::decode(body).unwrap()
}

#[test]
fn a_batch_that_was_sent_is_filled_anew() {
    let mut batch = SpanBatch::default();
    let mut writer = Writer::default();
    batch.add(&record(1, true), &mut writer);
    let sent = batch.into_bytes();
    let elsewhere = sent.clone();
    assert!(SpanBatch::in_place_of(elsewhere).is_none(), "still in use");
    let mut batch = SpanBatch::in_place_of(sent).unwrap();
    assert_eq!(batch.len(), 0);
    let new = record(2, false);
    batch.add(&new, &mut writer);
    let request = request(&Envelope::new(), &batch.into_bytes(), 0);
    let [span] = &request.resource_spans[0].scope_spans[0].spans[..] else {
        panic!("{request:?}");
    };
    assert_says_all_of(span, &new);
}

fn assert_says_all_of(span: &Span, record: &Record<'_>) {
    let expected = write(record);
    assert_eq!(span.trace_id, expected.trace_id.bytes());
    assert_eq!(span.span_id, expected.span_id.bytes());
    let parent = expected.parent_span_id.map(SpanId::bytes);
    assert_eq!(span.parent_span_id, parent.as_ref().map_or(&[][..], |p| p));
    assert_eq!(span.name, expected.name);
    assert_eq!(span.kind, 1);
    assert_eq!(span.start_time_unix_nano, expected.start_ns.cast_unsigned());
    assert_eq!(span.end_time_unix_nano, expected.end_ns.cast_unsigned());
    assert_eq!(span.flags, if record.sampled { 0x301 } else { 0x100 });
    let attributes: BTreeMap<_, _> = span
        .attributes
        .iter()
        .map(|attribute| (attribute.key.clone(), value(attribute)))
        .collect();
    assert_eq!(attributes.len(), span.attributes.len(), "a key came twice");
    assert_eq!(attributes, expected.attributes);
}

fn value(attribute: &KeyValue) -> AttributeValue {
    match attribute.value.clone().unwrap().value.unwrap() {
        Value::StringValue(text) => AttributeValue::Text(text),
        Value::BoolValue(value) => AttributeValue::Bool(value),
        Value::IntValue(value) => AttributeValue::Int(value),
        Value::ArrayValue(values) => {
            AttributeValue::Ints(values.values.into_iter().map(integer_of).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn integer_of(any: AnyValue) -> i64 {
    match any.value.unwrap() {
        Value::IntValue(value) => value,
        other => panic!("{other:?}"),
    }
}

/// A record with every kind of value, a text longer than one length byte can say, and a
/// negative number.
pub(in crate::ship) fn record(number: u8, client_has_span: bool) -> Record<'static> {
    let mut milestones = Milestones::default();
    for (at, milestone) in (0_i64..).zip(Milestone::ALL.iter().copied()) {
        let lo = 1_700_000_000_000_000_000 + at * 1_000;
        milestones.note(milestone, Stamp::between(lo, lo + 17, Source::Kernel));
    }
    let leg = |port| Leg {
        local: Cow::Owned(format!("127.0.0.1:{port}")),
        peer: Cow::Borrowed("[::1]:4711"),
        earlier_exchanges: 3,
        tcp: None,
    };
    ExchangeRecord {
        trace_id: TraceId::from_bytes(&[number; 16]).unwrap(),
        span_id: SpanId::from_bytes(&[number; 8]).unwrap(),
        parent_span_id: client_has_span.then(|| SpanId::from_bytes(&[9; 8]).unwrap()),
        sampled: client_has_span,
        method: Cow::Borrowed("GET"),
        scheme: Cow::Borrowed("http"),
        authority: Cow::Borrowed("example.test"),
        path: Cow::Owned(format!("/{}", "long".repeat(100))),
        status: Some(200),
        outcome: Outcome::Complete,
        request_bytes: Some(0),
        response_bytes: None,
        down: leg(8080),
        up: Some(leg(9000)),
        down_stream: None,
        up_stream: Some(StreamShare {
            id: 5,
            request_behind_bytes: None,
            response_behind_bytes: Some(7),
        }),
        milestones,
        client_queue: QueueWatch::NOT_WATCHED,
        client_process: None,
        server_queue: QueueWatch::NOT_WATCHED,
        server_process: None,
        sources: Sources {
            kernel_stamps: SourceState::Used,
            capture: SourceState::Off,
            queues: SourceState::Unavailable("why".to_owned()),
            processes: SourceState::Off,
        },
        clock_step_ns: -5,
    }
}
