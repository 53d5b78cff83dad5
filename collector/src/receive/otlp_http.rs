//! OTLP over HTTP, in protobuf and in JSON.

use std::future::Future;
use std::io;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use http::StatusCode;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use serde::Serialize;
use tokio::net::TcpListener;
use tower::limit::GlobalConcurrencyLimitLayer;

use super::http_answer::Form;
use super::http_body::{self, BodyError};
use super::{Intake, MOST_UNDER_WAY, RETRY_AFTER};
use crate::store::writer::AppendError;

pub(crate) use super::http_body::BodyLimits;

/// Serves until `shutdown` is ready, then finishes what is under way.
///
/// # Errors
/// When the listener fails.
pub(crate) async fn serve(
    listener: TcpListener,
    intake: Intake,
    limits: BodyLimits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let router = Router::new()
        .route("/v1/traces", post(traces))
        .route("/v1/logs", post(logs))
        .route("/v1/metrics", post(metrics))
        .layer(GlobalConcurrencyLimitLayer::new(MOST_UNDER_WAY))
        .with_state(HttpReceiver { intake, limits });
    axum::serve(listener, router)
        .with_graceful_shutdown(shutdown)
        .await
}

#[derive(Clone, Debug)]
struct HttpReceiver {
    intake: Intake,
    limits: BodyLimits,
}

async fn traces(State(receiver): State<HttpReceiver>, request: Request) -> Response {
    let (form, bytes) = match receiver.read(request).await {
        Ok(read) => read,
        Err(answer) => return answer,
    };
    let (request, body) = match parse(form, bytes) {
        Ok(parsed) => parsed,
        Err(error) => {
            let refusal = (StatusCode::BAD_REQUEST, "malformed");
            return receiver.refuse(form, refusal, &error.to_string());
        }
    };
    match receiver.intake.take("http", &request, body).await {
        Ok(partial_success) => form.success(&ExportTraceServiceResponse { partial_success }),
        Err(error) => {
            let status = match error {
                AppendError::Busy | AppendError::LogFull => StatusCode::TOO_MANY_REQUESTS,
                AppendError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            form.error(status, &error.to_string(), Some(RETRY_AFTER.as_secs()))
        }
    }
}

async fn logs(State(receiver): State<HttpReceiver>, request: Request) -> Response {
    receiver
        .ignore("logs", request, &ExportLogsServiceResponse::default())
        .await
}

async fn metrics(State(receiver): State<HttpReceiver>, request: Request) -> Response {
    receiver
        .ignore("metrics", request, &ExportMetricsServiceResponse::default())
        .await
}

impl HttpReceiver {
    /// The form and the decompressed body of a request, or the answer that refuses it.
    async fn read(&self, request: Request<Body>) -> Result<(Form, Bytes), Response> {
        let (parts, body) = request.into_parts();
        let Some(form) = Form::of(&parts.headers) else {
            let refusal = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type");
            let message = "send application/x-protobuf or application/json";
            return Err(self.refuse(Form::Json, refusal, message));
        };
        match http_body::read(&parts.headers, body, self.limits).await {
            Ok(bytes) => Ok((form, bytes)),
            Err(error) => {
                let refusal = (error.status(), refusal_reason(&error));
                Err(self.refuse(form, refusal, &error.to_string()))
            }
        }
    }

    /// Acknowledges a signal that is not kept, so that an exporter that sends all signals
    /// to one address is not troubled.
    async fn ignore<M: Message + Serialize>(
        &self,
        signal: &'static str,
        request: Request<Body>,
        answer: &M,
    ) -> Response {
        match self.read(request).await {
            Ok((form, _)) => {
                self.intake.metrics.count_ignored(signal);
                form.success(answer)
            }
            Err(refusal) => refusal,
        }
    }

    fn refuse(
        &self,
        form: Form,
        (status, reason): (StatusCode, &'static str),
        message: &str,
    ) -> Response {
        self.intake.metrics.count_refusal(reason);
        form.error(status, message, None)
    }
}

/// Why a body is no request.
#[derive(Debug, thiserror::Error)]
enum ParseError {
    #[error("not an ExportTraceServiceRequest in protobuf: {0}")]
    Protobuf(#[from] prost::DecodeError),
    #[error("not an ExportTraceServiceRequest in JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The request, and the same in protobuf.
fn parse(form: Form, bytes: Bytes) -> Result<(ExportTraceServiceRequest, Bytes), ParseError> {
    match form {
        Form::Protobuf => {
            let request = ExportTraceServiceRequest::decode(bytes.clone())?;
            Ok((request, bytes))
        }
        Form::Json => {
            let request: ExportTraceServiceRequest = serde_json::from_slice(&bytes)?;
            let body = request.encode_to_vec().into();
            Ok((request, body))
        }
    }
}

const fn refusal_reason(error: &BodyError) -> &'static str {
    match error {
        BodyError::Broken(_) | BodyError::NotGzip(_) => "malformed",
        BodyError::TooSlow => "too_slow",
        BodyError::TooLong { .. } | BodyError::TooLongDecompressed { .. } => "too_large",
        BodyError::UnknownEncoding(_) => "content_encoding",
        BodyError::ShuttingDown => "shutting_down",
    }
}
