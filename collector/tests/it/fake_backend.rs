//! A trace backend that remembers what it is sent, and answers as it is told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use prost::Message;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::server::TcpIncoming;

/// How one request is answered.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// The request is taken, but for so many spans.
    TakenBut(i64),
    /// Over gRPC.
    Grpc(Status),
    /// Over HTTP, with the header `retry-after` if it is given.
    Http(StatusCode, Option<&'static str>),
}

/// A name of a span that this backend never takes.
pub(super) const POISON: &str = "poison";

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    taken: Vec<ExportTraceServiceRequest>,
    metrics: Vec<ExportMetricsServiceRequest>,
    headers: Vec<HeaderMap>,
    replies: VecDeque<Reply>,
}

/// A running backend. It stops when it is dropped.
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    seen: Seen,
    task: JoinHandle<()>,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Backend {
    /// One that speaks gRPC at `address`.
    pub(super) async fn grpc(address: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        let (listener, address, seen) = prepare(address, replies).await;
        let service = TraceServiceServer::new(seen.clone());
        let serving = tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpIncoming::from(listener));
        let task = tokio::spawn(async { serving.await.unwrap() });
        Self {
            address,
            seen,
            task,
        }
    }

    /// One that speaks HTTP at `address`.
    pub(super) async fn http(address: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        let (listener, address, seen) = prepare(address, replies).await;
        let router = Router::new()
            .route("/v1/traces", post(take))
            .route("/v1/metrics", post(take_metrics))
            .with_state(seen.clone());
        let task = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            seen,
            task,
        }
    }

    /// What was taken, once that `is_it`.
    pub(super) async fn resources(
        &self,
        is_it: impl Fn(&[ResourceSpans]) -> bool,
    ) -> Vec<ResourceSpans> {
        let began = Instant::now();
        loop {
            let requests = self.seen.0.lock().unwrap().taken.clone();
            let taken: Vec<_> = requests
                .into_iter()
                .flat_map(|r| r.resource_spans)
                .collect();
            if is_it(&taken) {
                return taken;
            }
            let patience = began.elapsed() < Duration::from_secs(30);
            assert!(patience, "not what was taken: {taken:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The last push of metrics.
    pub(super) fn last_metrics(&self) -> Option<ExportMetricsServiceRequest> {
        self.seen.0.lock().unwrap().metrics.last().cloned()
    }

    /// The headers of every request, refused ones among them.
    pub(super) fn headers(&self) -> Vec<HeaderMap> {
        self.seen.0.lock().unwrap().headers.clone()
    }
}

/// All spans of `resources`.
pub(super) fn spans(resources: &[ResourceSpans]) -> Vec<Span> {
    let scopes = resources.iter().flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

async fn prepare(
    address: &str,
    replies: impl IntoIterator<Item = Reply>,
) -> (TcpListener, SocketAddr, Seen) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    seen.0.lock().unwrap().replies.extend(replies);
    (listener, address, seen)
}

impl Seen {
    /// Notes a request; the reply that is planned for it, if any.
    fn note(&self, headers: HeaderMap, request: ExportTraceServiceRequest) -> Option<Reply> {
        let mut inner = self.0.lock().unwrap();
        inner.headers.push(headers);
        let reply = inner.replies.pop_front();
        if matches!(reply, None | Some(Reply::TakenBut(_))) {
            inner.taken.push(request);
        }
        reply
    }
}

fn taken_but(rejected_spans: i64) -> ExportTraceServiceResponse {
    ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans,
            error_message: "as the test asked for".to_owned(),
        }),
    }
}

#[tonic::async_trait]
impl TraceService for Seen {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        match self.note(metadata.into_headers(), request) {
            None => Ok(tonic::Response::new(ExportTraceServiceResponse::default())),
            Some(Reply::TakenBut(rejected)) => Ok(tonic::Response::new(taken_but(rejected))),
            Some(Reply::Grpc(status)) => Err(status),
            Some(Reply::Http(..)) => panic!("planned for the other transport"),
        }
    }
}

async fn take(State(seen): State<Seen>, headers: HeaderMap, body: Bytes) -> Response {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    if spans(&request.resource_spans)
        .iter()
        .any(|span| span.name == POISON)
    {
        return StatusCode::BAD_REQUEST.into_response();
    }
    match seen.note(headers, request) {
        None => StatusCode::OK.into_response(),
        Some(Reply::TakenBut(rejected)) => taken_but(rejected).encode_to_vec().into_response(),
        Some(Reply::Http(status, None)) => status.into_response(),
        Some(Reply::Http(status, Some(after))) => {
            (status, [("retry-after", after)]).into_response()
        }
        Some(Reply::Grpc(_)) => panic!("planned for the other transport"),
    }
}

async fn take_metrics(State(seen): State<Seen>, body: Bytes) -> StatusCode {
    let request = ExportMetricsServiceRequest::decode(body).unwrap();
    seen.0.lock().unwrap().metrics.push(request);
    StatusCode::OK
}
