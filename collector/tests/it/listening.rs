//! New findings are told to those who listen.

use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tempfile::tempdir;

use super::running::{Running, config, export_call, verdict};
use super::samples;

/// The stream of events, and what has come of it that is not taken yet.
struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    async fn of(collector: &Running) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<bytes::Bytes>>();
        let address = format!("http://{}/api/v1/events", collector.addresses.http);
        let answer = client.get(address.parse().unwrap()).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self {
            body: answer.into_body(),
            text: String::new(),
        }
    }

    /// Name and data of the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<(String, serde_json::Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = event.lines();
                    lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
                };
                let found = (field("event: "), field("data: "));
                self.text = rest.to_owned();
                if let (Some(name), Some(data)) = found {
                    return Some((name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let frame = self.body.frame().await?.unwrap();
            let data = frame.into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }
}

#[tokio::test]
async fn a_finding_is_told_once_it_is_stored_and_a_healthy_call_is_not() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    let mut events = Events::of(&collector).await;
    assert_eq!(events.next().await.unwrap().0, "ready");
    export_call(collector.addresses.otlp_http, &samples::healthy(1)).await;
    verdict(collector.addresses.http, 1, |_| true).await;
    export_call(collector.addresses.otlp_http, &samples::asleep(2)).await;
    let (name, data) = events.next().await.unwrap();
    assert_eq!(name, "finding");
    assert_eq!(data["trace_id"], samples::trace_id(2).to_string());
    assert_eq!(data["causes"], serde_json::json!(["client_blind_sleep"]));
    let gap = data["gap_seconds"].as_f64().unwrap();
    assert!((0.4..0.41).contains(&gap), "{gap}");
    collector.stop().await;
    // A stop ends the stream and is not held up by it.
    assert_eq!(events.next().await, None);
}
