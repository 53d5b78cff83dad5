//! Observations as an OTLP trace request: the way back from [`crate::otlp_decode`].

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status, span, status,
};
use prost::Message;
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::exchange_attributes::{self, AttributeValue, SCOPE};
use skewtap_core::ids::SpanId;
use skewtap_core::reported_span::{ReportedSpan, SpanKind};

use crate::matcher::Match;

/// What was observed of one client span, in protobuf. Decoding it gives the same observations.
pub(crate) fn encode(found: &Match) -> Vec<u8> {
    let observed = &found.observed;
    let exchanges = observed.exchanges.iter().map(exchange);
    let spans = observed.client.iter().chain(&observed.servers);
    let spans = spans.chain(&found.others).map(reported);
    in_request(exchanges.chain(spans))
}

/// One exchange, in protobuf.
pub(crate) fn encode_exchange(record: &ExchangeRecord) -> Vec<u8> {
    in_request(std::iter::once(exchange(record)))
}

fn in_request(spans: impl Iterator<Item = ResourceSpans>) -> Vec<u8> {
    ExportTraceServiceRequest {
        resource_spans: spans.collect(),
    }
    .encode_to_vec()
}

fn exchange(record: &ExchangeRecord) -> ResourceSpans {
    let written = exchange_attributes::write(record);
    let attributes = written.attributes.into_iter();
    let span = Span {
        trace_id: written.trace_id.bytes().to_vec(),
        span_id: written.span_id.bytes().to_vec(),
        parent_span_id: parent(written.parent_span_id),
        name: written.name,
        start_time_unix_nano: written.start_ns.unsigned_abs(),
        end_time_unix_nano: written.end_ns.unsigned_abs(),
        attributes: attributes
            .map(|(key, value)| attribute(&key, any(value)))
            .collect(),
        ..Span::default()
    };
    under(vec![], SCOPE, "", span)
}

fn reported(reported: &ReportedSpan) -> ResourceSpans {
    let int = |key, value: Option<u16>| Some(attribute(key, Value::IntValue(value?.into())));
    let text = |key, value: &Option<String>| Some(attribute(key, string(value.as_ref()?)));
    let attributes = [
        text("http.request.method", &reported.method),
        int("http.response.status_code", reported.status),
        text("http.route", &reported.route),
        text("user_agent.original", &reported.user_agent),
        int("network.peer.port", reported.peer_port),
    ];
    let failed = reported.error.then(|| Status {
        code: status::StatusCode::Error.into(),
        ..Status::default()
    });
    let span = Span {
        trace_id: reported.trace_id.bytes().to_vec(),
        span_id: reported.span_id.bytes().to_vec(),
        parent_span_id: parent(reported.parent_span_id),
        name: reported.name.clone(),
        kind: kind(reported.kind).into(),
        start_time_unix_nano: reported.start_ns.unsigned_abs(),
        end_time_unix_nano: reported.end_ns.unsigned_abs(),
        attributes: attributes.into_iter().flatten().collect(),
        status: failed,
        ..Span::default()
    };
    let resource = [
        ("service.name", &reported.service),
        ("service.instance.id", &reported.instance),
    ];
    let said = resource.into_iter().filter(|(_, value)| !value.is_empty());
    let resource = said.map(|(key, value)| attribute(key, string(value)));
    let (scope, version) = (&reported.scope, &reported.scope_version);
    under(resource.collect(), scope, version, span)
}

fn under(resource: Vec<KeyValue>, scope: &str, version: &str, span: Span) -> ResourceSpans {
    ResourceSpans {
        resource: Some(Resource {
            attributes: resource,
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            scope: Some(InstrumentationScope {
                name: scope.to_owned(),
                version: version.to_owned(),
                ..InstrumentationScope::default()
            }),
            spans: vec![span],
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    }
}

fn parent(id: Option<SpanId>) -> Vec<u8> {
    id.map_or_else(Vec::new, |id| id.bytes().to_vec())
}

const fn kind(kind: SpanKind) -> span::SpanKind {
    match kind {
        SpanKind::Unspecified => span::SpanKind::Unspecified,
        SpanKind::Internal => span::SpanKind::Internal,
        SpanKind::Server => span::SpanKind::Server,
        SpanKind::Client => span::SpanKind::Client,
        SpanKind::Producer => span::SpanKind::Producer,
        SpanKind::Consumer => span::SpanKind::Consumer,
    }
}

/// A text as a value.
pub(crate) fn string(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

/// One attribute.
pub(crate) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn any(value: AttributeValue) -> Value {
    match value {
        AttributeValue::Bool(flag) => Value::BoolValue(flag),
        AttributeValue::Int(int) => Value::IntValue(int),
        AttributeValue::Text(text) => Value::StringValue(text),
        AttributeValue::Ints(ints) => Value::ArrayValue(ArrayValue {
            values: ints
                .into_iter()
                .map(|int| AnyValue {
                    value: Some(Value::IntValue(int)),
                })
                .collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matcher::{MatchKey, MatchKind};
    use crate::observation::Observation;
    use crate::otlp_decode::decode;
    use skewtap_simulator::scenario::{Meanwhile, Scenario};
    use skewtap_simulator::world::World;

    #[test]
    fn what_is_encoded_is_decoded_to_the_same() {
        let scenario = Scenario {
            unread_ns: 400_000_000,
            meanwhile: Meanwhile::SleepsBlind,
            ..Scenario::healthy(20_000_000)
        };
        let mut observed = scenario.observe(&World::PLAIN);
        let client = observed.client.as_mut().unwrap();
        client.route = Some("/cart/{id}".to_owned());
        client.user_agent = Some("curl".to_owned());
        client.peer_port = Some(8080);
        client.error = true;
        let mut other = observed.servers[0].clone();
        other.status = Some(503);
        let exchange = &observed.exchanges[0];
        let found = Match {
            key: MatchKey {
                trace_id: exchange.trace_id,
                span_id: exchange.join_span_id(),
            },
            observed: observed.clone(),
            others: vec![other.clone()],
            evidence: 1,
            revises: 0,
            kind: MatchKind::Complete,
        };
        let bytes = encode(&found);
        let request = ExportTraceServiceRequest::decode(bytes.as_slice()).unwrap();
        let decoded = decode(&request).observations;
        let mut expected = Vec::new();
        for exchange in observed.exchanges {
            expected.push(Observation::Exchange(Box::new(exchange)));
        }
        let spans = observed.client.into_iter().chain(observed.servers);
        for span in spans.chain([other]) {
            expected.push(Observation::Span(Box::new(span)));
        }
        assert_eq!(decoded, expected);
    }
}
