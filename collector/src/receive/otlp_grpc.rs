//! OTLP over gRPC.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tonic::codec::CompressionEncoding;
use tonic::server::Grpc;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::service_fn;

use super::bearer_tokens;
use super::connections::{self, Port};
use super::other_signals::NotKept;
use super::{Intake, MOST_UNDER_WAY, RETRY_AFTER, Refusal};
use crate::grpc_bytes::BytesCodec;
use crate::store::writer::AppendError;

/// How long a request may take, from its head to the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until `shutdown` is ready, then finishes what is under way.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    intake: Intake,
    most_bytes: usize,
    shutdown: impl Future<Output = ()>,
) {
    let receiver = GrpcReceiver { intake, most_bytes };
    let logs = post(not_kept::<ExportLogsServiceRequest>);
    let metrics = post(not_kept::<ExportMetricsServiceRequest>);
    let guard = middleware::from_fn_with_state(receiver.clone(), guard);
    let router = Router::new()
        .route(&method("trace", "TraceService"), post(traces))
        .route(&method("logs", "LogsService"), logs)
        .route(&method("metrics", "MetricsService"), metrics)
        .fallback(|| async { answer(Status::unimplemented("only OTLP's Export is served here")) })
        .layer(GlobalConcurrencyLimitLayer::new(MOST_UNDER_WAY))
        .layer(guard)
        .with_state(receiver);
    let port = Port {
        listener,
        tls,
        http1: false,
    };
    connections::serve(port, router, shutdown).await;
}

fn method(signal: &str, service: &str) -> String {
    format!("/opentelemetry.proto.collector.{signal}.v1.{service}/Export")
}

#[derive(Clone, Debug)]
struct GrpcReceiver {
    intake: Intake,
    most_bytes: usize,
}

async fn traces(State(receiver): State<GrpcReceiver>, request: Request) -> Response {
    receiver
        .unary(request, async |intake, body| {
            let request = decode::<ExportTraceServiceRequest>(&intake, body.clone())?;
            let taken = intake.take("grpc", &request, body).await;
            let partial_success = taken.map_err(|error| refused(&error))?;
            Ok(ExportTraceServiceResponse { partial_success })
        })
        .await
}

async fn not_kept<R: NotKept>(State(receiver): State<GrpcReceiver>, request: Request) -> Response {
    receiver
        .unary(request, async |intake, body| {
            let request = decode::<R>(&intake, body)?;
            intake.metrics.count_ignored(R::SIGNAL);
            Ok(request.answer())
        })
        .await
}

impl GrpcReceiver {
    /// Reads the one message of a request, and answers with what `answer` makes of it.
    async fn unary<M: Message>(
        self,
        request: Request,
        answer: impl AsyncFn(Intake, Bytes) -> Result<M, Status> + Clone,
    ) -> Response {
        let mut grpc = Grpc::new(BytesCodec).max_decoding_message_size(self.most_bytes);
        for encoding in [
            CompressionEncoding::Gzip,
            CompressionEncoding::Zstd,
            CompressionEncoding::Deflate,
        ] {
            grpc = grpc.accept_compressed(encoding);
        }
        let service = service_fn(|request: tonic::Request<Bytes>| {
            let (intake, answer) = (self.intake.clone(), answer.clone());
            async move {
                let message = answer(intake, request.into_inner()).await?;
                Ok(tonic::Response::new(Bytes::from(message.encode_to_vec())))
            }
        });
        grpc.unary(service, request).await.into_response()
    }
}

/// Lets in who may send, and ends what takes too long.
async fn guard(State(receiver): State<GrpcReceiver>, request: Request, next: Next) -> Response {
    if !receiver.intake.tokens.admit(request.headers()) {
        receiver
            .intake
            .metrics
            .count_refusal(Refusal::Unauthenticated);
        return answer(Status::unauthenticated(bearer_tokens::MISSING));
    }
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => not_to_be_retried(response),
        Err(_) => {
            receiver.intake.metrics.count_refusal(Refusal::TooSlow);
            let seconds = REQUEST_TIMEOUT.as_secs();
            answer(Status::deadline_exceeded(format!(
                "the request was not complete within {seconds} s"
            )))
        }
    }
}

fn answer(status: Status) -> Response {
    status.into_http::<axum::body::Body>()
}

fn decode<M: Message + Default>(intake: &Intake, body: Bytes) -> Result<M, Status> {
    M::decode(body).map_err(|error| {
        intake.metrics.count_refusal(Refusal::Malformed);
        Status::invalid_argument(format!("not an export request in protobuf: {error}"))
    })
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
fn not_to_be_retried(mut response: Response) -> Response {
    let status = response.headers().get(Status::GRPC_STATUS);
    if status.is_some_and(|code| code == "11") {
        response
            .headers_mut()
            .insert(Status::GRPC_STATUS, http::HeaderValue::from_static("3"));
    }
    response
}
