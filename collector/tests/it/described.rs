//! The running collector answers as its OpenAPI document says.

use http::StatusCode;
use jsonschema::Validator;
use serde_json::{Value, json};
use tempfile::tempdir;

use super::running::{Answer, Running, config, export_call, get, verdict, wait_for_metrics};
use super::samples;

/// A collector that has something to tell on every address: flagged and healthy calls, and enough
/// of them to know the clocks.
async fn with_calls(store: &std::path::Path) -> Running {
    let collector = Running::start(config(store)).await;
    for n in 1..=6 {
        let call = if n == 2 {
            samples::asleep(n)
        } else {
            samples::healthy(n)
        };
        let later_ns = i64::try_from(n).unwrap() * 1_000_000;
        export_call(
            collector.addresses.otlp_http,
            &samples::later(call, later_ns),
        )
        .await;
    }
    let all = "skewtap_verdicts_total{outcome=\"new\"} 6\n";
    wait_for_metrics(&collector, |text| text.contains(all)).await;
    verdict(collector.addresses.http, 2, |v| v.flagged).await;
    collector
}

async fn document(collector: &Running) -> Value {
    let answer = get(collector.addresses.http, "/api/v1/openapi.json").await;
    assert_eq!(answer.status, StatusCode::OK);
    answer.json()
}

/// Checks JSON against a schema of the document. A field that no schema has is a fault, too.
fn validator(document: &Value, schema: &Value) -> Validator {
    let mut schemas = document["components"]["schemas"].clone();
    for schema in schemas.as_object_mut().unwrap().values_mut() {
        let schema = schema.as_object_mut().unwrap();
        if schema.contains_key("properties") {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
    }
    let mut whole = schema.clone();
    whole["components"] = json!({ "schemas": schemas });
    jsonschema::draft202012::new(&whole).unwrap()
}

/// The path with its parts filled in: call 2, which has everything.
fn filled(path: &str) -> String {
    path.replace("{trace_id}", &samples::trace_id(2).to_string())
        .replace("{span_id}", &samples::client_span_id().to_string())
}

/// The window in which the calls of the samples began.
const WINDOW: &str = "since=2023-11-14T00:00:00Z&until=2023-11-15T00:00:00Z";

fn assert_described(document: &Value, described: &Value, answer: &Answer, path: &str) {
    let status = answer.status.as_u16().to_string();
    let content = &described["responses"][&status]["content"];
    let media_type = answer.headers["content-type"].to_str().unwrap();
    let essence = media_type.split(';').next().unwrap();
    let schema = &content[essence]["schema"];
    assert!(schema.is_object(), "{path}: {status} {media_type}");
    if essence == "application/json" {
        let faults: Vec<String> = validator(document, schema)
            .iter_errors(&answer.json())
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{path}: {faults:#?}");
    }
}

#[tokio::test]
async fn every_address_answers_as_it_is_described() {
    let directory = tempdir().unwrap();
    let collector = with_calls(directory.path()).await;
    let document = document(&collector).await;
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 12, "{}", paths.len());
    for (path, item) in paths.iter().filter(|(path, _)| *path != "/api/v1/events") {
        let described = &item["get"];
        let mut address = filled(path);
        if described["parameters"].to_string().contains("\"since\"") {
            address = format!("{address}?{WINDOW}");
        }
        let answer = get(collector.addresses.http, &address).await;
        assert_eq!(answer.status, StatusCode::OK, "{address}: {answer:?}");
        assert_described(&document, described, &answer, path);
        let bad = get(collector.addresses.http, &format!("{address}?no-such=1")).await;
        if bad.status != StatusCode::OK {
            assert_described(&document, described, &bad, path);
        }
    }
    collector.stop().await;
}

#[tokio::test]
async fn every_parameter_is_taken_and_no_other() {
    let directory = tempdir().unwrap();
    let collector = with_calls(directory.path()).await;
    let document = document(&collector).await;
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array();
        let query = parameters
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "query");
        let mut known = 0;
        for parameter in query {
            let name = parameter["name"].as_str().unwrap();
            let example = parameter["example"].as_str().unwrap();
            let address = format!("{}?{name}={example}", filled(path));
            let answer = get(collector.addresses.http, &address).await;
            assert_eq!(answer.status, StatusCode::OK, "{address}: {answer:?}");
            known += 1;
        }
        if known > 0 {
            let address = format!("{path}?no_such_parameter=1");
            let answer = get(collector.addresses.http, &address).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{address}");
        }
    }
    collector.stop().await;
}

#[tokio::test]
async fn the_plots_show_the_calls_that_were_made() {
    let directory = tempdir().unwrap();
    let collector = with_calls(directory.path()).await;
    let http = collector.addresses.http;
    let asked = |path: &str| {
        let path = format!("{path}?{WINDOW}&client_service=shop-client&server_service=shop");
        async move { get(http, &path).await.json() }
    };
    let edges = asked("/api/v1/edges").await;
    let edge = &edges["edges"][0];
    assert_eq!(edge["exchanges"], 6);
    assert_eq!(edge["flagged"], 1);
    assert_eq!(edge["causes"]["client_blind_sleep"], 1);
    let bound = |of: &Value, name: &str| of[name].as_f64().unwrap();
    // The client's span is longer by the 400 ms that were planted and some microseconds.
    let largest = &edge["gap"]["max"];
    assert!(bound(largest, "lo_seconds") <= 0.401 && 0.4 <= bound(largest, "hi_seconds"));
    let histogram = asked("/api/v1/gaps/histogram").await;
    let bins = histogram["bins"].as_array().unwrap();
    let sum: u64 = bins
        .iter()
        .map(|bin| bin["exchanges"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, 6);
    let series = asked("/api/v1/gaps/series").await;
    assert_eq!(series["periods"][0]["exchanges"], 6);
    let findings = asked("/api/v1/findings/series").await;
    assert_eq!(findings["periods"][0]["cause"], "client_blind_sleep");
    let lags = asked("/api/v1/lags").await;
    assert_eq!(lags["is_sample"], false);
    let points = lags["points"].as_array().unwrap();
    let asleep = points
        .iter()
        .find(|point| point["flagged"] == true)
        .unwrap();
    assert!(
        (0.39..0.41).contains(&bound(asleep, "lag_seconds")),
        "{asleep}"
    );
    assert_eq!(asleep["server_seconds"], 0.02);
    let nobody = get(http, &format!("/api/v1/edges?{WINDOW}&service=nobody")).await;
    assert_eq!(nobody.json()["edges"], json!([]));
    collector.stop().await;
}

#[tokio::test]
async fn the_clocks_of_both_sides_are_bounded_around_the_truth() {
    let directory = tempdir().unwrap();
    let collector = with_calls(directory.path()).await;
    let clocks = get(collector.addresses.http, "/api/v1/clocks").await.json();
    let peers = clocks["peers"].as_array().unwrap();
    for side in ["client", "server"] {
        let peer = peers.iter().find(|peer| peer["side"] == side).unwrap();
        let bound = |name: &str| peer["ahead"][name].as_f64().unwrap();
        // All clocks of the samples are the same.
        assert!(
            bound("lo_seconds") <= 0.0 && 0.0 <= bound("hi_seconds"),
            "{peer}"
        );
    }
    collector.stop().await;
}

#[tokio::test]
async fn a_case_is_judged_the_same_by_another_collector() {
    let directories = [tempdir().unwrap(), tempdir().unwrap()];
    let first = with_calls(directories[0].path()).await;
    let path = filled("/api/v1/exchanges/{trace_id}/{span_id}/case");
    let answer = get(first.addresses.http, &path).await;
    let disposition = answer.headers["content-disposition"].to_str().unwrap();
    assert!(disposition.starts_with("attachment"), "{disposition}");
    let case = answer.json();
    assert_eq!(case["skewtap_case"], 1);
    let second = Running::start(config(directories[1].path())).await;
    let sent = super::running::post(
        second.addresses.otlp_http,
        "/v1/traces",
        &[("content-type", "application/json")],
        case["observations"].to_string(),
    )
    .await;
    assert_eq!(sent.status, StatusCode::OK, "{sent:?}");
    let again = verdict(second.addresses.http, 2, |_| true).await;
    let again = serde_json::to_value(again).unwrap();
    for field in ["findings", "segments", "gap_seconds", "flagged"] {
        assert_eq!(again[field], case["verdict"][field], "{field}");
    }
    first.stop().await;
    second.stop().await;
}
