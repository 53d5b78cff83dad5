//! What was found out, as spans of the trace it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use skewtap_collector::{Config, ExportConfig, otlp_decode};
use skewtap_core::audit::Observed;
use skewtap_core::exchange_attributes::{SCOPE, VERSION_KEY};
use tempfile::tempdir;

use super::fake_backend::{Backend, spans};
use super::running::{Running, config, export_call};
use super::samples;

const ANY: &str = "127.0.0.1:0";

fn writing_back(store: &Path, backend: &Backend) -> Config {
    let mut config = config(store);
    let url = format!("http://{}", backend.address).parse().unwrap();
    config.export = Some(ExportConfig::new(url));
    config.pages_url = Some("https://skewtap.example/".parse().unwrap());
    config
}

/// The spans of the collector's own service.
fn ours(resources: &[ResourceSpans]) -> Vec<Span> {
    let ours: Vec<_> = resources.iter().filter(|r| is_ours(r)).cloned().collect();
    spans(&ours)
}

fn is_ours(resource: &ResourceSpans) -> bool {
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    attributes
        .iter()
        .any(|a| a.key == "service.name" && text(a) == "skewtap")
}

fn has_verdict(resources: &[ResourceSpans]) -> bool {
    ours(resources)
        .iter()
        .any(|span| span.name.starts_with("verdict"))
}

fn value(attribute: &KeyValue) -> &Value {
    attribute.value.as_ref().unwrap().value.as_ref().unwrap()
}

fn text(attribute: &KeyValue) -> String {
    match value(attribute) {
        Value::StringValue(text) => text.clone(),
        other => panic!("no text: {other:?}"),
    }
}

fn named<'a>(attributes: &'a [KeyValue], key: &str) -> &'a Value {
    let attribute = attributes.iter().find(|a| a.key == key);
    value(attribute.unwrap_or_else(|| panic!("no {key} in {attributes:?}")))
}

fn double(attributes: &[KeyValue], key: &str) -> f64 {
    match named(attributes, key) {
        Value::DoubleValue(double) => *double,
        other => panic!("{key} is {other:?}"),
    }
}

fn bounds(span: &Span, key: &str) -> (i64, i64) {
    let Value::ArrayValue(list) = named(&span.attributes, key) else {
        panic!("no list");
    };
    let ints: Vec<i64> = list
        .values
        .iter()
        .map(|v| match v.value.as_ref().unwrap() {
            Value::IntValue(int) => *int,
            other => panic!("no integer: {other:?}"),
        })
        .collect();
    (ints[0], ints[1])
}

/// What the backend has of a call once the verdict on it is written back.
async fn written_back(call: &Observed) -> Vec<ResourceSpans> {
    let directory = tempdir().unwrap();
    let backend = Backend::grpc(ANY, []).await;
    let collector = Running::start(writing_back(directory.path(), &backend)).await;
    export_call(collector.addresses.otlp_http, call).await;
    let resources = backend.resources(has_verdict).await;
    collector.stop().await;
    resources
}

#[tokio::test]
async fn each_part_is_a_child_of_the_clients_span_with_an_id_of_its_own() {
    let resources = written_back(&samples::asleep(1)).await;
    let all = spans(&resources);
    let ids: BTreeSet<_> = all.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(ids.len(), all.len(), "{all:#?}");
    let ours = ours(&resources);
    let names: BTreeSet<_> = ours.iter().map(|span| span.name.as_str()).collect();
    for name in [
        "wire request",
        "wire waiting",
        "wire response",
        "client unread",
        "verdict: client_blind_sleep",
    ] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
    for span in &ours {
        assert_eq!(span.trace_id, samples::trace_id(1).bytes());
        assert_eq!(span.parent_span_id, samples::client_span_id().bytes());
        assert_eq!(span.span_id.len(), 8);
        assert!(
            span.start_time_unix_nano <= span.end_time_unix_nano,
            "{span:?}"
        );
    }
}

#[tokio::test]
async fn the_dwell_is_where_it_was_and_as_long_as_it_was() {
    let resources = written_back(&samples::asleep(1)).await;
    let ours = ours(&resources);
    let dwell = ours
        .iter()
        .find(|span| span.name == "client unread")
        .unwrap();
    let start = bounds(dwell, "skewtap.start.bounds_unix_nano");
    let end = bounds(dwell, "skewtap.end.bounds_unix_nano");
    // Planted: 400 ms between the last byte of the response and its pick-up.
    let (shortest, longest) = (end.0 - start.1, end.1 - start.0);
    assert!(
        shortest <= 400_000_000 && 400_000_000 <= longest,
        "{shortest} to {longest}"
    );
    let drawn = |time: u64, (lo, hi): (i64, i64)| {
        let time = i64::try_from(time).unwrap();
        assert!(lo <= time && time <= hi, "{time} is outside {lo} to {hi}");
    };
    drawn(dwell.start_time_unix_nano, start);
    drawn(dwell.end_time_unix_nano, end);
    let Value::StringValue(clock) = named(&dwell.attributes, "skewtap.clock") else {
        panic!("the clock has no name");
    };
    assert_eq!(clock, "proxy");
}

#[tokio::test]
async fn the_verdict_says_what_the_api_says() {
    let resources = written_back(&samples::asleep(1)).await;
    let ours = ours(&resources);
    let verdict = ours
        .iter()
        .find(|span| span.name.starts_with("verdict"))
        .unwrap();
    let attributes = &verdict.attributes;
    assert_eq!(
        named(attributes, "skewtap.flagged"),
        &Value::BoolValue(true)
    );
    let gap = double(attributes, "skewtap.gap_seconds");
    let difference =
        double(attributes, "skewtap.client_seconds") - double(attributes, "skewtap.server_seconds");
    assert!((gap - difference).abs() < 1e-9 && gap >= 0.4, "{gap}");
    assert!(double(attributes, "skewtap.segment.client_unread_seconds") > 0.05);
    let page = named(attributes, "skewtap.page");
    let expected = format!(
        "https://skewtap.example/exchanges/{}/{}",
        samples::trace_id(1),
        samples::client_span_id()
    );
    assert_eq!(page, &Value::StringValue(expected));
    let finding = &verdict.events[0];
    assert_eq!(finding.name, "client_blind_sleep");
    let lo = double(&finding.attributes, "skewtap.lo_seconds");
    let hi = double(&finding.attributes, "skewtap.hi_seconds");
    assert!(lo <= 0.4 && 0.4 <= hi, "{finding:?}");
}

#[tokio::test]
async fn what_is_written_back_is_no_observation() {
    let resources = written_back(&samples::asleep(1)).await;
    let ours: Vec<_> = resources.into_iter().filter(is_ours).collect();
    let scopes = ours.iter().flat_map(|resource| &resource.scope_spans);
    assert!(
        scopes
            .into_iter()
            .all(|s| s.scope.as_ref().unwrap().name == SCOPE)
    );
    let keys = spans(&ours).into_iter().flat_map(|span| span.attributes);
    assert!(
        keys.into_iter()
            .all(|attribute| attribute.key != VERSION_KEY)
    );
    let decoded = otlp_decode::decode(&ExportTraceServiceRequest {
        resource_spans: ours,
    });
    assert_eq!(
        (decoded.observations, decoded.rejected.total()),
        (vec![], 0)
    );
}

#[tokio::test]
async fn a_revision_has_the_ids_of_what_it_replaces() {
    let directory = tempdir().unwrap();
    let backend = Backend::grpc(ANY, []).await;
    let collector = Running::start(writing_back(directory.path(), &backend)).await;
    let call = samples::asleep(1);
    let mut early = call.clone();
    early.client = None;
    export_call(collector.addresses.otlp_http, &early).await;
    backend.resources(has_verdict).await;
    export_call(collector.addresses.otlp_http, &call).await;
    let verdicts = |resources: &[ResourceSpans]| -> Vec<Span> {
        let ours = ours(resources).into_iter();
        ours.filter(|span| span.name.starts_with("verdict"))
            .collect()
    };
    let resources = backend.resources(|taken| verdicts(taken).len() >= 2).await;
    let verdicts = verdicts(&resources);
    assert_eq!(verdicts.len(), 2);
    assert_eq!(verdicts[0].span_id, verdicts[1].span_id);
    let evidence = |at: usize| match named(&verdicts[at].attributes, "skewtap.evidence") {
        Value::IntValue(int) => *int,
        other => panic!("no number: {other:?}"),
    };
    assert!(evidence(0) < evidence(1));
    let mut ids: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for span in ours(&resources) {
        let kind = span.name.split(':').next().unwrap().to_owned();
        ids.entry(kind).or_default().insert(span.span_id);
    }
    assert!(ids.values().all(|ids| ids.len() == 1), "{ids:?}");
    collector.stop().await;
}

#[tokio::test]
async fn the_parts_of_several_exchanges_are_told_apart() {
    let mut call = samples::asleep(1);
    let mut retry = samples::asleep(1).exchanges.remove(0);
    retry.span_id = skewtap_core::ids::SpanId::from_bytes(&[9; 8]).unwrap();
    call.exchanges.push(retry);
    let resources = written_back(&call).await;
    let waiting: Vec<_> = ours(&resources)
        .into_iter()
        .filter(|span| span.name == "wire waiting")
        .collect();
    assert_eq!(waiting.len(), 2, "{waiting:?}");
    assert_ne!(waiting[0].span_id, waiting[1].span_id);
    for (number, span) in (0..).zip(waiting) {
        let exchange = named(&span.attributes, "skewtap.exchange");
        assert_eq!(exchange, &Value::IntValue(number));
    }
}

/// A trace that nobody records is not begun by what is found out about it.
#[tokio::test]
async fn nothing_is_added_to_a_trace_that_nobody_records() {
    let directory = tempdir().unwrap();
    let backend = Backend::grpc(ANY, []).await;
    let collector = Running::start(writing_back(directory.path(), &backend)).await;
    let mut unsampled = samples::asleep(1);
    unsampled.exchanges[0].sampled = false;
    unsampled.client = None;
    unsampled.servers.clear();
    export_call(collector.addresses.otlp_http, &unsampled).await;
    super::running::verdict(collector.addresses.http, 1, |_| true).await;
    export_call(collector.addresses.otlp_http, &samples::asleep(2)).await;
    let resources = backend.resources(has_verdict).await;
    let second = samples::trace_id(2).bytes();
    assert!(ours(&resources).iter().all(|span| span.trace_id == second));
    collector.stop().await;
}
