//! A collector that keeps the spans it is sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::runtime::Runtime;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, async_trait};

/// Runs until it is dropped.
pub(super) struct OtlpSink {
    pub(super) address: SocketAddr,
    received: Received,
    _runtime: Runtime,
}

/// A span and the service that sent it.
#[derive(Clone, Debug)]
pub(super) struct SentSpan {
    pub(super) service: String,
    pub(super) span: Span,
}

impl OtlpSink {
    pub(super) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let received = Received::default();
        let service = TraceServiceServer::new(received.clone());
        let incoming = {
            let _within = runtime.enter();
            TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap()
        };
        let address = incoming.local_addr().unwrap();
        let server = tonic::transport::Server::builder().add_service(service);
        runtime.spawn(server.serve_with_incoming(incoming));
        Self {
            address,
            received,
            _runtime: runtime,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn spans_of(&self, service: &str) -> Vec<Span> {
        let received = self.received.0.lock().unwrap();
        let ours = received.iter().filter(|sent| sent.service == service);
        ours.map(|sent| sent.span.clone()).collect()
    }
}

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<SentSpan>>>);

#[async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for of_resource in request.into_inner().resource_spans {
            let resource = of_resource.resource.unwrap_or_default();
            let service = text(&resource.attributes, "service.name").unwrap();
            for of_scope in of_resource.scope_spans {
                for span in of_scope.spans {
                    let service = service.clone();
                    self.0.lock().unwrap().push(SentSpan { service, span });
                }
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

pub(super) fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    match value(attributes, key)? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

pub(super) fn integer(attributes: &[KeyValue], key: &str) -> Option<i64> {
    match value(attributes, key)? {
        Value::IntValue(integer) => Some(integer),
        _ => None,
    }
}

fn value(attributes: &[KeyValue], key: &str) -> Option<Value> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.clone()?.value
}

/// Hex as it is written in a `traceparent`.
pub(super) fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
