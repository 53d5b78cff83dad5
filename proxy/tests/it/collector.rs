//! A collector that keeps the records it is sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::exchange_attributes::{AttributeValue, SCOPE, read};
use skewtap_core::ids::{SpanId, TraceId};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// A record, with what came round it.
pub(crate) struct Shipped {
    pub(crate) record: ExchangeRecord,
    pub(crate) span_name: String,
    pub(crate) service: String,
}

struct Keeper(mpsc::Sender<Shipped>);

#[tonic::async_trait]
impl TraceService for Keeper {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for resource_spans in request.into_inner().resource_spans {
            let resource = resource_spans.resource.unwrap();
            let name = resource.attributes.iter().find(|a| a.key == "service.name");
            let service = match name.and_then(|a| a.value.clone()).unwrap().value {
                Some(Value::StringValue(name)) => name,
                other => panic!("service.name is {other:?}"),
            };
            for scope_spans in resource_spans.scope_spans {
                assert_eq!(scope_spans.scope.unwrap().name, SCOPE);
                for span in scope_spans.spans {
                    assert_eq!(span.kind(), SpanKind::Internal);
                    let shipped = Shipped {
                        record: record_of(&span),
                        span_name: span.name,
                        service: service.clone(),
                    };
                    // The test may have seen enough.
                    let (Ok(()) | Err(_)) = self.0.send(shipped);
                }
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Starts a collector on the current runtime.
pub(crate) async fn start(kept: mpsc::Sender<Shipped>) -> SocketAddr {
    start_at("127.0.0.1:0".parse().unwrap(), kept).await
}

/// The same, at an address that is known beforehand.
pub(crate) async fn start_at(address: SocketAddr, kept: mpsc::Sender<Shipped>) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = TraceServiceServer::new(Keeper(kept));
    tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );
    address
}

fn record_of(span: &Span) -> ExchangeRecord {
    let attributes: BTreeMap<String, AttributeValue> = span
        .attributes
        .iter()
        .map(|attribute| {
            (
                attribute.key.clone(),
                value_of(attribute.value.as_ref().unwrap()),
            )
        })
        .collect();
    let parent = Some(&span.parent_span_id).filter(|id| !id.is_empty());
    read(
        TraceId::from_bytes(&span.trace_id).unwrap(),
        SpanId::from_bytes(&span.span_id).unwrap(),
        parent.map(|id| SpanId::from_bytes(id).unwrap()),
        &attributes,
    )
    .unwrap()
}

fn value_of(value: &AnyValue) -> AttributeValue {
    match value.value.as_ref().unwrap() {
        Value::BoolValue(value) => AttributeValue::Bool(*value),
        Value::IntValue(value) => AttributeValue::Int(*value),
        Value::StringValue(value) => AttributeValue::Text(value.clone()),
        Value::ArrayValue(array) => AttributeValue::Ints(
            array
                .values
                .iter()
                .map(|value| match value.value {
                    Some(Value::IntValue(value)) => value,
                    ref other => panic!("array of {other:?}"),
                })
                .collect(),
        ),
        other => panic!("attribute {other:?}"),
    }
}
