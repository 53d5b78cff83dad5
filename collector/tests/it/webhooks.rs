//! People told of flagged verdicts.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use skewtap_collector::{Collector, StartError, WebhookConfig, WebhookFormat};
use tempfile::tempdir;
use tokio::net::TcpListener;

use super::running::{Running, config, export, export_call, verdict, wait_for_metrics};
use super::samples;

#[derive(Clone, Default)]
struct Posted {
    bodies: Arc<Mutex<Vec<Bytes>>>,
    statuses: Arc<Mutex<VecDeque<StatusCode>>>,
}

impl Posted {
    /// A receiver that answers with `statuses` first, then with success.
    async fn start(statuses: &[StatusCode]) -> (SocketAddr, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let posted = Self::default();
        posted.statuses.lock().unwrap().extend(statuses);
        let router = Router::new()
            .route("/hook/secret", post(take))
            .with_state(posted.clone());
        tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        (address, posted)
    }

    /// Every body, once there are `count`.
    async fn bodies(&self, count: usize) -> Vec<Value> {
        let began = Instant::now();
        loop {
            let bodies = self.bodies.lock().unwrap().clone();
            if bodies.len() >= count {
                return bodies
                    .iter()
                    .map(|b| serde_json::from_slice(b).unwrap())
                    .collect();
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{bodies:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn take(State(posted): State<Posted>, body: Bytes) -> StatusCode {
    posted.bodies.lock().unwrap().push(body);
    let status = posted.statuses.lock().unwrap().pop_front();
    status.unwrap_or(StatusCode::OK)
}

fn hook(address: SocketAddr) -> WebhookConfig {
    WebhookConfig::new(format!("http://{address}/hook/secret").parse().unwrap())
}

#[tokio::test]
async fn a_burst_on_one_edge_is_one_message_and_healthy_calls_none() {
    let directory = tempdir().unwrap();
    let (address, posted) = Posted::start(&[]).await;
    let mut config = config(directory.path());
    config.webhook = Some(hook(address));
    config.pages_url = Some("https://skewtap.example".parse().unwrap());
    let collector = Running::start(config).await;
    export_call(collector.addresses.otlp_http, &samples::healthy(9)).await;
    verdict(collector.addresses.http, 9, |_| true).await;
    let mut burst = samples::request(&samples::asleep(1));
    for n in 2..=5 {
        let more = samples::request(&samples::asleep(n)).resource_spans;
        burst.resource_spans.extend(more);
    }
    export(collector.addresses.otlp_http, &burst).await;
    let bodies = posted.bodies(1).await;
    collector.stop().await;
    // The stop tells what is left, which is nothing.
    assert_eq!(posted.bodies.lock().unwrap().len(), 1);
    let message = &bodies[0];
    assert_eq!(message["event"], "flagged");
    assert_eq!(message["cause"], "client_blind_sleep");
    assert_eq!(message["client_service"], "shop-client");
    assert_eq!(message["server_service"], "shop");
    assert_eq!(message["count"], 5);
    let worst = &message["worst"];
    assert_eq!(worst["segment"], "client_unread");
    let page = worst["page"].as_str().unwrap();
    let trace = worst["trace_id"].as_str().unwrap();
    assert!(page.starts_with("https://skewtap.example/exchanges/") && page.contains(trace));
    // Planted: 400 ms unread; what is told is what is proven of it.
    let lost = worst["lost_seconds"].as_f64().unwrap();
    assert!(lost > 0.05 && lost <= 0.4, "{lost}");
}

#[tokio::test]
async fn a_message_is_posted_again_until_it_is_taken() {
    let directory = tempdir().unwrap();
    let statuses = [
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    let (address, posted) = Posted::start(&statuses).await;
    let mut config = config(directory.path());
    config.webhook = Some(WebhookConfig {
        format: WebhookFormat::Slack,
        ..hook(address)
    });
    let collector = Running::start(config).await;
    export_call(collector.addresses.otlp_http, &samples::asleep(1)).await;
    let bodies = posted.bodies(3).await;
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    let text = bodies[0]["text"].as_str().unwrap();
    for part in [
        "client_blind_sleep",
        "shop-client",
        "/exchanges/",
        "client_unread",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let sent = "skewtap_webhook_messages_total{outcome=\"sent\"} 1\n";
    wait_for_metrics(&collector, |text| text.contains(sent)).await;
    collector.stop().await;
}

#[tokio::test]
async fn a_message_that_is_refused_is_given_up_and_counted() {
    let directory = tempdir().unwrap();
    let (address, _posted) = Posted::start(&[StatusCode::NOT_FOUND]).await;
    let mut config = config(directory.path());
    config.webhook = Some(hook(address));
    let collector = Running::start(config).await;
    export_call(collector.addresses.otlp_http, &samples::asleep(1)).await;
    let failed = "skewtap_webhook_messages_total{outcome=\"failed\"} 1\n";
    wait_for_metrics(&collector, |text| text.contains(failed)).await;
    collector.stop().await;
}

#[tokio::test]
async fn a_receiver_that_never_answers_holds_nothing_up() {
    let directory = tempdir().unwrap();
    // Connections are taken by the system, and nobody ever reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config(directory.path());
    config.webhook = Some(hook(silent.local_addr().unwrap()));
    let collector = Running::start(config).await;
    for n in 1..=50 {
        export_call(collector.addresses.otlp_http, &samples::asleep(n)).await;
    }
    for n in 1..=50 {
        verdict(collector.addresses.http, n, |verdict| verdict.flagged).await;
    }
    let began = Instant::now();
    collector.stop().await;
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn an_address_that_cannot_be_posted_to_is_refused_without_showing_its_path() {
    let directory = tempdir().unwrap();
    let mut config = config(directory.path());
    let url = "ftp://hooks.example/services/secret".parse().unwrap();
    config.webhook = Some(WebhookConfig::new(url));
    let error = Collector::bind(config).await.unwrap_err();
    assert!(matches!(error, StartError::Webhook { .. }), "{error}");
    let words = error.to_string();
    assert!(
        words.contains("--webhook") && !words.contains("secret"),
        "{words}"
    );
}
