//! The API, the metrics and the health of a running collector.

use http::StatusCode;
use tempfile::tempdir;

use super::running::{Running, config, export_call, get, verdict, wait_for_metrics};
use super::samples;

/// Ids of the traces in a list.
fn traces(answer: &super::running::Answer) -> Vec<String> {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let list = answer.json();
    let exchanges = list["exchanges"].as_array().unwrap();
    let id = |exchange: &serde_json::Value| exchange["trace_id"].as_str().unwrap().to_owned();
    exchanges.iter().map(id).collect()
}

/// A collector with healthy calls 1 and 3, and call 2 that was slept through.
async fn with_three_calls(store: &std::path::Path) -> Running {
    let collector = Running::start(config(store)).await;
    for call in [samples::healthy(1), samples::asleep(2), samples::healthy(3)] {
        export_call(collector.addresses.otlp_http, &call).await;
    }
    for n in 1..=3 {
        verdict(collector.addresses.http, n, |_| true).await;
    }
    collector
}

#[tokio::test]
async fn filters_list_what_they_say() {
    let directory = tempdir().unwrap();
    let collector = with_three_calls(directory.path()).await;
    let http = collector.addresses.http;
    let id = |n| samples::trace_id(n).to_string();
    for (query, expected) in [
        ("flagged=true", vec![id(2)]),
        ("flagged=true&cause=client_blind_sleep", vec![id(2)]),
        ("cause=client_blind", vec![]),
        ("flagged=true&service=shop", vec![id(2)]),
        ("service=nobody", vec![]),
        ("flagged=true&since=2023-11-14T00:00:00Z", vec![id(2)]),
        ("until=2023-11-14T00:00:00Z", vec![]),
        ("since=1h", vec![]),
        ("since=1800000000", vec![]),
    ] {
        let answer = get(http, &format!("/api/v1/exchanges?{query}")).await;
        assert_eq!(traces(&answer), expected, "{query}");
        assert!(answer.json()["next_cursor"].is_null());
    }
    let mut healthy = traces(&get(http, "/api/v1/exchanges?flagged=false").await);
    healthy.sort();
    assert_eq!(healthy, [id(1), id(3)]);
    collector.stop().await;
}

#[tokio::test]
async fn pages_follow_each_other_without_gap_or_overlap() {
    let directory = tempdir().unwrap();
    let collector = with_three_calls(directory.path()).await;
    let http = collector.addresses.http;
    let whole = traces(&get(http, "/api/v1/exchanges").await);
    assert_eq!(whole.len(), 3);
    let mut paged = Vec::new();
    let mut path = "/api/v1/exchanges?limit=1".to_owned();
    for _ in 0..3 {
        let answer = get(http, &path).await;
        paged.extend(traces(&answer));
        let cursor = answer.json()["next_cursor"].clone();
        path = format!(
            "/api/v1/exchanges?limit=1&cursor={}",
            cursor.as_str().unwrap_or("end")
        );
    }
    assert_eq!(paged, whole);
    assert!(path.ends_with("cursor=end"), "{path}");
    collector.stop().await;
}

#[tokio::test]
async fn one_exchange_has_every_promised_field() {
    let directory = tempdir().unwrap();
    let collector = with_three_calls(directory.path()).await;
    let path = format!(
        "/api/v1/exchanges/{}/{}",
        samples::trace_id(2),
        samples::client_span_id()
    );
    let answer = get(collector.addresses.http, &path).await;
    assert_eq!(answer.headers["content-type"], "application/json");
    let exchange = answer.json();
    for field in [
        "trace_id",
        "client_span_id",
        "method",
        "path",
        "status",
        "client_seconds",
        "server_seconds",
        "wire_seconds",
        "gap_seconds",
        "unexplained_seconds",
        "segments",
        "findings",
        "flagged",
        "quality",
    ] {
        assert!(
            exchange.get(field).is_some_and(|value| !value.is_null()),
            "{field}"
        );
    }
    let finding = &exchange["findings"][0];
    let bound = |name: &str| finding[name].as_f64().unwrap();
    // Planted: the response lay unread for 400 ms.
    assert!(
        bound("lo_seconds") <= 0.4 && 0.4 <= bound("hi_seconds"),
        "{finding}"
    );
    collector.stop().await;
}

#[tokio::test]
async fn a_bad_request_is_told_what_is_wrong() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let http = collector.addresses.http;
    let trace = samples::trace_id(9);
    for (path, status, says) in [
        ("/api/v1/exchanges?flaged=true", 400, "flaged"),
        ("/api/v1/exchanges?flagged=yes", 400, "true or false"),
        ("/api/v1/exchanges?limit=0", 400, "1 to 1000"),
        ("/api/v1/exchanges?limit=1001", 400, "1 to 1000"),
        ("/api/v1/exchanges?limit=5&limit=5", 400, "twice"),
        ("/api/v1/exchanges?since=yesterday", 400, "yesterday"),
        ("/api/v1/exchanges?cursor=x", 400, "next_cursor"),
        ("/api/v1/exchanges/zz/01", 400, "32 hex digits"),
        (
            &format!("/api/v1/exchanges/{trace}/01"),
            400,
            "16 hex digits",
        ),
        (
            &format!("/api/v1/exchanges/{trace}/0101010101010101"),
            404,
            "no verdict",
        ),
        ("/api/v1/nothing", 404, "no such path"),
    ] {
        let answer = get(http, path).await;
        assert_eq!(answer.status, status, "{path}");
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(says), "{path}: {error}");
    }
    collector.stop().await;
}

#[tokio::test]
async fn metrics_count_each_exchange_once() {
    let directory = tempdir().unwrap();
    let collector = with_three_calls(directory.path()).await;
    let http = collector.addresses.http;
    assert_eq!(get(http, "/healthz").await.status, StatusCode::OK);
    // A verdict is counted once the store has it, so it may be read a moment earlier.
    let all = "skewtap_verdicts_total{outcome=\"new\"} 3\n";
    wait_for_metrics(&collector, |text| text.contains(all)).await;
    let answer = get(http, "/metrics").await;
    let content_type = answer.headers["content-type"].to_str().unwrap();
    assert!(content_type.starts_with("application/openmetrics-text; version=1.0.0"));
    let text = answer.text();
    let edge = "client_service=\"shop-client\",server_service=\"shop\",route=\"unknown\"";
    for line in [
        "skewtap_exchanges_total{flagged=\"true\"} 1".to_owned(),
        "skewtap_exchanges_total{flagged=\"false\"} 2".to_owned(),
        "skewtap_findings_total{cause=\"client_blind_sleep\",client_service=\"shop-client\",server_service=\"shop\"} 1".to_owned(),
        "skewtap_matches_total{kind=\"complete\"} 3".to_owned(),
        "skewtap_verdicts_total{outcome=\"new\"} 3".to_owned(),
        "skewtap_spans_received_total{transport=\"http\"} 9".to_owned(),
        format!("skewtap_gap_seconds_count{{{edge}}} 3"),
    ] {
        assert!(text.contains(&format!("{line}\n")), "no {line} in\n{text}");
    }
    // The fullest bucket below the flagged one leads to an exchange in it.
    let bucket = format!("skewtap_gap_seconds_bucket{{le=\"0.25\",{edge}}} 2");
    assert!(text.contains(&bucket), "no {bucket} in\n{text}");
    let trace_id = "# {trace_id=\"";
    assert!(text.contains(trace_id), "no exemplar in\n{text}");
    assert!(text.ends_with("# EOF\n"));
    collector.stop().await;
}

#[tokio::test]
async fn edges_beyond_the_cap_are_counted_together() {
    let directory = tempdir().unwrap();
    let mut config = config(directory.path());
    config.most_edges = 2;
    let collector = Running::start(config).await;
    for n in 1..=5 {
        let mut call = samples::healthy(n);
        call.servers[0].service = format!("shop-{n}");
        export_call(collector.addresses.otlp_http, &call).await;
        verdict(collector.addresses.http, n, |_| true).await;
    }
    let all = "skewtap_verdicts_total{outcome=\"new\"} 5\n";
    wait_for_metrics(&collector, |text| text.contains(all)).await;
    let text = get(collector.addresses.http, "/metrics").await.text();
    let counts: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("skewtap_gap_seconds_count"))
        .collect();
    assert_eq!(counts.len(), 3, "{counts:?}");
    let other = "{client_service=\"other\",server_service=\"other\",route=\"other\"} 3";
    assert!(
        counts.iter().any(|line| line.ends_with(other)),
        "{counts:?}"
    );
    collector.stop().await;
}

#[tokio::test]
async fn a_late_span_revises_the_verdict() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let call = samples::asleep(1);
    let mut early = call.clone();
    early.client = None;
    export_call(collector.addresses.otlp_http, &early).await;
    let first = verdict(collector.addresses.http, 1, |_| true).await;
    assert_eq!(first.client_seconds, None);
    assert!(
        first
            .quality
            .missing
            .iter()
            .any(|missing| missing == "client_span")
    );
    export_call(collector.addresses.otlp_http, &call).await;
    let second = verdict(collector.addresses.http, 1, |v| v.client_seconds.is_some()).await;
    assert!(second.flagged);
    collector.stop().await;
}

#[tokio::test]
async fn the_log_is_cut_off_once_everything_is_settled() {
    let directory = tempdir().unwrap();
    let mut config = config(directory.path());
    config.matcher.keep_complete = std::time::Duration::from_millis(100);
    let collector = Running::start(config).await;
    export_call(collector.addresses.otlp_http, &samples::healthy(1)).await;
    let empty = "skewtap_observation_log_bytes 0\n";
    let settled = "skewtap_verdicts_total{outcome=\"new\"} 1\n";
    wait_for_metrics(&collector, |text| {
        text.contains(settled) && text.contains(empty)
    })
    .await;
    collector.stop().await;
}
