//! From OTLP to observations.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span, Status};
use proptest::prelude::*;
use prost::Message;
use skewtap_collector::observation::Observation;
use skewtap_collector::otlp_decode::{DroppedRecords, RejectReason, decode};
use skewtap_core::exchange_attributes::{DROPPED_KEY, SCOPE};
use skewtap_core::reported_span::{ReportedSpan, SpanKind};

use super::samples;

fn one(spans: ResourceSpans) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest {
        resource_spans: vec![spans],
    }
}

/// A span that nothing is wrong with.
fn plain() -> Span {
    Span {
        trace_id: vec![7; 16],
        span_id: vec![8; 8],
        name: "GET /cart".to_owned(),
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: 1_700_000_001_000_000_000,
        ..Span::default()
    }
}

fn reported(spans: ResourceSpans) -> ReportedSpan {
    let decoded = decode(&one(spans));
    assert_eq!(decoded.rejected.total(), 0, "{}", decoded.rejected);
    match decoded.observations.as_slice() {
        [Observation::Span(span)] => span.as_ref().clone(),
        other => panic!("not one span: {other:?}"),
    }
}

#[test]
fn what_was_sent_is_what_is_observed() {
    let call = samples::asleep(1);
    let decoded = decode(&samples::request(&call));
    let client = call.client.clone().unwrap();
    let expected = vec![
        Observation::Exchange(Box::new(call.exchanges[0].clone())),
        Observation::Span(Box::new(client)),
        Observation::Span(Box::new(call.servers[0].clone())),
    ];
    assert_eq!(decoded.observations, expected);
    assert_eq!(decoded.rejected.total(), 0);
}

#[test]
fn what_a_proxy_dropped_is_taken_from_its_scope_and_from_no_other() {
    let mut request = samples::request(&samples::asleep(1));
    for spans in &mut request.resource_spans {
        let resource = spans.resource.get_or_insert_default();
        let instance = Value::StringValue("proxy-1".to_owned());
        resource.attributes = vec![samples::attribute("service.instance.id", instance)];
        let scope = spans.scope_spans[0].scope.as_mut().unwrap();
        scope.attributes = vec![samples::attribute(DROPPED_KEY, Value::IntValue(12))];
    }
    let dropped = DroppedRecords {
        proxy: "proxy-1".to_owned(),
        records: 12,
    };
    assert_eq!(decode(&request).dropped, [dropped]);
}

#[test]
fn json_says_the_same_as_protobuf() {
    let request = samples::request(&samples::asleep(1));
    let json = serde_json::to_string(&request).unwrap();
    let read: ExportTraceServiceRequest = serde_json::from_str(&json).unwrap();
    assert_eq!(decode(&read), decode(&request));
}

#[test]
fn json_of_later_versions_is_read_without_what_is_new() {
    let json = r#"{"resourceSpans": [{"novel": 1, "scopeSpans": [{"scope": {"name": "lib"}, "spans": [{
        "traceId": "07070707070707070707070707070707", "spanId": "0808080808080808",
        "name": "GET", "kind": 3, "novel": {"a": [1]},
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000",
        "attributes": [
            {"key": "http.request.method", "value": {"stringValue": "PUT"}, "novel": 1},
            {"key": "http.response.status_code", "value": {"intValue": "201"}}
        ]}]}]}]}"#;
    let request: ExportTraceServiceRequest = serde_json::from_str(json).unwrap();
    let span = reported(request.resource_spans[0].clone());
    assert_eq!((span.kind, span.status), (SpanKind::Client, Some(201)));
    assert_eq!(span.method.as_deref(), Some("PUT"));
}

#[test]
fn both_generations_of_attribute_names_are_read() {
    let text = |text: &str| Value::StringValue(text.to_owned());
    let of = |attributes| {
        let span = Span {
            kind: 2,
            attributes,
            status: Some(Status {
                code: 2,
                ..Status::default()
            }),
            ..plain()
        };
        let resource = vec![
            samples::attribute("service.name", text("shop")),
            samples::attribute("host.name", text("box")),
            samples::attribute("process.pid", Value::IntValue(42)),
        ];
        reported(samples::resource_spans(resource, "lib", span))
    };
    let new = of(vec![
        samples::attribute("http.request.method", text("PUT")),
        samples::attribute("http.response.status_code", Value::IntValue(503)),
        samples::attribute("http.route", text("/cart/{id}")),
        samples::attribute("user_agent.original", text("curl/7.61.1")),
        samples::attribute("network.peer.port", Value::IntValue(42_000)),
    ]);
    let old = of(vec![
        samples::attribute("http.method", text("PUT")),
        samples::attribute("http.status_code", text("503")),
        samples::attribute("http.route", text("/cart/{id}")),
        samples::attribute("http.user_agent", text("curl/7.61.1")),
        samples::attribute("net.sock.peer.port", Value::IntValue(42_000)),
        samples::attribute("net.peer.port", Value::IntValue(1)),
    ]);
    assert_eq!(old, new);
    assert_eq!(new.kind, SpanKind::Server);
    assert!(new.error);
    assert_eq!(
        (new.service.as_str(), new.instance.as_str()),
        ("shop", "box/42")
    );
    assert_eq!(new.method.as_deref(), Some("PUT"));
    assert_eq!(new.status, Some(503));
    assert_eq!(new.route.as_deref(), Some("/cart/{id}"));
    assert_eq!(new.user_agent.as_deref(), Some("curl/7.61.1"));
    assert_eq!(new.peer_port, Some(42_000));
    assert_eq!(
        (new.scope.as_str(), new.duration_ns()),
        ("lib", 1_000_000_000)
    );
}

#[test]
fn the_port_a_client_asked_for_is_not_its_peer() {
    let span = Span {
        kind: 3,
        attributes: vec![samples::attribute("net.peer.port", Value::IntValue(80))],
        ..plain()
    };
    let client = reported(samples::resource_spans(vec![], "lib", span));
    assert_eq!(client.peer_port, None);
}

#[test]
fn long_texts_are_cut_within_no_character() {
    let span = Span {
        name: format!("x{}", "é".repeat(1000)),
        ..plain()
    };
    let name = reported(samples::resource_spans(vec![], "lib", span)).name;
    assert_eq!(name, format!("x{}", "é".repeat(127)));
}

#[test]
fn each_fault_is_rejected_for_its_reason_and_spares_the_rest() {
    type Spoil = fn(&mut Span);
    let faults: [(RejectReason, Spoil); 9] = [
        (RejectReason::BadId, |s| s.trace_id = vec![]),
        (RejectReason::BadId, |s| s.trace_id = vec![0; 16]),
        (RejectReason::BadId, |s| s.span_id = vec![1; 7]),
        (RejectReason::BadId, |s| s.parent_span_id = vec![1; 3]),
        (RejectReason::BadTime, |s| s.start_time_unix_nano = 0),
        (RejectReason::BadTime, |s| s.end_time_unix_nano = u64::MAX),
        (RejectReason::EndBeforeStart, |s| {
            s.end_time_unix_nano = s.start_time_unix_nano - 1;
        }),
        (RejectReason::TooLong, |s| {
            s.end_time_unix_nano = s.start_time_unix_nano + 25 * 3_600_000_000_000;
        }),
        (RejectReason::BadTime, |s| s.end_time_unix_nano = 0),
    ];
    for (reason, spoil) in faults {
        let mut bad = plain();
        spoil(&mut bad);
        let mut spans = samples::resource_spans(vec![], "lib", bad);
        spans.scope_spans[0].spans.push(plain());
        let decoded = decode(&one(spans));
        assert_eq!(decoded.observations.len(), 1, "{reason:?}");
        assert_eq!(
            decoded.rejected.by_reason,
            [(reason, 1)].into(),
            "{reason:?}"
        );
    }
}

#[test]
fn an_exchange_that_cannot_be_read_is_rejected_by_name() {
    let mut spans = samples::exchange(&samples::healthy(1).exchanges[0]);
    spans.scope_spans[0].spans[0]
        .attributes
        .retain(|attribute| attribute.key != "skewtap.outcome");
    let rejected = decode(&one(spans)).rejected;
    assert_eq!(rejected.by_reason, [(RejectReason::BadExchange, 1)].into());
    assert!(
        rejected.to_string().contains("skewtap.outcome is missing"),
        "{rejected}"
    );
}

#[test]
fn an_exchange_of_absurd_size_is_rejected() {
    let mut spans = samples::exchange(&samples::healthy(1).exchanges[0]);
    let huge = samples::attribute("more", Value::StringValue("x".repeat(300_000)));
    spans.scope_spans[0].spans[0].attributes.push(huge);
    let rejected = decode(&one(spans)).rejected;
    assert_eq!(rejected.by_reason, [(RejectReason::TooLarge, 1)].into());
}

#[test]
fn other_spans_of_ours_are_no_observations() {
    let decoded = decode(&one(samples::resource_spans(vec![], SCOPE, plain())));
    assert_eq!(decoded, skewtap_collector::otlp_decode::Decoded::default());
}

proptest! {
    #[test]
    fn a_span_is_either_told_or_rejected(
        trace_id in prop::collection::vec(0..3_u8, 0..18),
        span_id in prop::collection::vec(0..3_u8, 7..9),
        parent_span_id in prop::collection::vec(0..3_u8, 0..9),
        start_time_unix_nano in any::<u64>(),
        length in any::<u64>(),
        ours in any::<bool>(),
    ) {
        let span = Span {
            trace_id,
            span_id,
            parent_span_id,
            start_time_unix_nano,
            end_time_unix_nano: start_time_unix_nano.wrapping_add(length),
            ..Span::default()
        };
        let request = one(samples::resource_spans(vec![], if ours { SCOPE } else { "lib" }, span));
        let decoded = decode(&request);
        let told = decoded.observations.len() as u64 + decoded.rejected.total();
        // What else is ours tells nothing.
        prop_assert!(told == 1 || (ours && told == 0), "{:?}", decoded);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(request) = ExportTraceServiceRequest::decode(bytes.as_slice()) {
            let spans = request.resource_spans.iter().flat_map(|r| &r.scope_spans);
            let spans: usize = spans.map(|scope| scope.spans.len()).sum();
            let decoded = decode(&request);
            let told = decoded.observations.len() as u64 + decoded.rejected.total();
            prop_assert!(told <= spans as u64, "{:?}", decoded);
        }
    }
}
