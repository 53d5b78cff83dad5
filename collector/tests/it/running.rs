//! A collector that runs within the test, and requests to it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use skewtap_collector::{Addresses, Collector, Config};
use skewtap_core::audit::Observed;
use skewtap_core::verdict_json::VerdictJson;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::samples;

/// Longer than anything here takes on a busy machine; reached only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// The defaults with free ports and short waits.
pub(super) fn config(store: &Path) -> Config {
    let mut config = Config::new(store.to_owned());
    for address in [
        &mut config.otlp_grpc,
        &mut config.otlp_http,
        &mut config.http,
    ] {
        address.set_port(0);
    }
    config.matcher.linger = Duration::from_millis(20);
    config.matcher.settle = Duration::from_millis(200);
    config
}

/// A collector that is being served.
pub(super) struct Running {
    pub(super) addresses: Addresses,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), skewtap_collector::ServeError>>,
}

impl Running {
    pub(super) async fn start(config: Config) -> Self {
        let collector = Collector::bind(config).await.unwrap();
        let addresses = collector.addresses();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(collector.serve(async move { drop(stopped.await) }));
        Self {
            addresses,
            stop,
            task,
        }
    }

    pub(super) async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: http::HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

pub(super) async fn send(request: Request<Full<Bytes>>) -> Answer {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (parts, body) = client.request(request).await.unwrap().into_parts();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}

pub(super) async fn get(address: SocketAddr, path: &str) -> Answer {
    let request = Request::get(format!("http://{address}{path}"));
    send(request.body(Full::default()).unwrap()).await
}

pub(super) async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request.body(Full::new(body.into())).unwrap()).await
}

/// Sends a request in protobuf, which must be acknowledged.
pub(super) async fn export(address: SocketAddr, request: &ExportTraceServiceRequest) {
    let answer = post(
        address,
        "/v1/traces",
        &[("content-type", "application/x-protobuf")],
        request.encode_to_vec(),
    )
    .await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
}

/// Sends all of a call at once.
pub(super) async fn export_call(address: SocketAddr, observed: &Observed) {
    export(address, &samples::request(observed)).await;
}

/// The verdict on call number `n`, once there is one that `is_it`.
pub(super) async fn verdict(
    address: SocketAddr,
    n: u64,
    is_it: impl Fn(&VerdictJson) -> bool,
) -> VerdictJson {
    let path = format!(
        "/api/v1/exchanges/{}/{}",
        samples::trace_id(n),
        samples::client_span_id()
    );
    let parse = |answer: &Answer| -> Option<VerdictJson> {
        (answer.status == StatusCode::OK).then(|| serde_json::from_slice(&answer.body).unwrap())
    };
    let answer = wait_for(address, &path, |answer| {
        parse(answer).is_some_and(|v| is_it(&v))
    })
    .await;
    parse(&answer).unwrap()
}

/// Waits until the metrics are as `are_they` says.
pub(super) async fn wait_for_metrics(collector: &Running, are_they: impl Fn(&str) -> bool) {
    let is_it = |answer: &Answer| are_they(&answer.text());
    wait_for(collector.addresses.http, "/metrics", is_it).await;
}

/// Asks for `path` until the answer is as `is_it` says, and gives that.
pub(super) async fn wait_for(
    address: SocketAddr,
    path: &str,
    is_it: impl Fn(&Answer) -> bool,
) -> Answer {
    let began = Instant::now();
    loop {
        let answer = get(address, path).await;
        if is_it(&answer) {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "no such answer: {answer:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
