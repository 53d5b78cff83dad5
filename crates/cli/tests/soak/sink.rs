//! A collector that keeps of each record only which request it is about.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, async_trait};

/// How many records there are of each request, by trace id.
#[derive(Clone, Debug, Default)]
pub(super) struct Sink(Arc<Mutex<HashMap<u128, u32>>>);

impl Sink {
    /// Takes records until the runtime ends; gives its URL.
    pub(super) fn start(&self) -> String {
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = incoming.local_addr().unwrap();
        let service = TraceServiceServer::new(self.clone());
        let server = tonic::transport::Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(incoming));
        format!("http://{address}")
    }

    pub(super) fn records(&self) -> HashMap<u128, u32> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl TraceService for Sink {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans;
        let scopes = resources.into_iter().flat_map(|of| of.scope_spans);
        let mut records = self.0.lock().unwrap();
        for span in scopes.flat_map(|of| of.spans) {
            let id = u128::from_be_bytes(span.trace_id.try_into().unwrap());
            *records.entry(id).or_default() += 1;
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
