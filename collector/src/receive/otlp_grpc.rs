//! OTLP over gRPC.

use std::future::Future;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use tokio::net::TcpListener;
use tonic::codec::CompressionEncoding;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::ServiceBuilder;
use tower::limit::GlobalConcurrencyLimitLayer;

use super::{Intake, MOST_UNDER_WAY, RETRY_AFTER};
use crate::store::writer::AppendError;

/// Serves until `shutdown` is ready, then finishes what is under way.
///
/// # Errors
/// When the listener fails.
pub(crate) async fn serve(
    listener: TcpListener,
    intake: Intake,
    most_bytes: usize,
    shutdown: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let receiver = GrpcReceiver(intake);
    let accepted = [CompressionEncoding::Gzip, CompressionEncoding::Zstd];
    let mut traces =
        TraceServiceServer::new(receiver.clone()).max_decoding_message_size(most_bytes);
    let mut logs = LogsServiceServer::new(receiver.clone()).max_decoding_message_size(most_bytes);
    let mut metrics = MetricsServiceServer::new(receiver).max_decoding_message_size(most_bytes);
    for encoding in accepted {
        traces = traces.accept_compressed(encoding);
        logs = logs.accept_compressed(encoding);
        metrics = metrics.accept_compressed(encoding);
    }
    Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .layer(
            ServiceBuilder::new()
                .map_response(not_to_be_retried)
                .layer(GlobalConcurrencyLimitLayer::new(MOST_UNDER_WAY)),
        )
        .add_service(traces)
        .add_service(logs)
        .add_service(metrics)
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            shutdown,
        )
        .await
}

#[derive(Clone, Debug)]
struct GrpcReceiver(Intake);

#[tonic::async_trait]
impl TraceService for GrpcReceiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let request = request.into_inner();
        let body = request.encode_to_vec().into();
        match self.0.take("grpc", &request, body).await {
            Ok(partial_success) => Ok(Response::new(ExportTraceServiceResponse {
                partial_success,
            })),
            Err(error) => Err(refused(&error)),
        }
    }
}

#[tonic::async_trait]
impl LogsService for GrpcReceiver {
    async fn export(
        &self,
        _request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        self.0.metrics.count_ignored("logs");
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for GrpcReceiver {
    async fn export(
        &self,
        _request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.0.metrics.count_ignored("metrics");
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

/// Every refusal asks for another try; senders give one only where the details say so.
fn refused(error: &AppendError) -> Status {
    let code = match error {
        AppendError::Busy | AppendError::LogFull => Code::ResourceExhausted,
        AppendError::Store(_) => Code::Unavailable,
    };
    let retry = ErrorDetails::with_retry_info(Some(RETRY_AFTER));
    Status::with_error_details(code, error.to_string(), retry)
}

/// A message over the size limit is answered by the transport with `OUT_OF_RANGE`, which
/// OTLP tells senders to retry. It would never fit, so they are told that instead.
fn not_to_be_retried<B>(mut response: http::Response<B>) -> http::Response<B> {
    let status = response.headers().get(Status::GRPC_STATUS);
    if status.is_some_and(|code| code == "11") {
        response
            .headers_mut()
            .insert(Status::GRPC_STATUS, http::HeaderValue::from_static("3"));
    }
    response
}
