//! OTLP over HTTP, in protobuf and in JSON.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderValue, StatusCode};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::limit::GlobalConcurrencyLimitLayer;

use super::bearer_tokens;
use super::connections::{self, Port};
use super::http_answer::Form;
use super::http_body;
use super::other_signals::NotKept;
use super::{Intake, MOST_UNDER_WAY, RETRY_AFTER, Refusal};
use crate::store::writer::AppendError;

pub(crate) use super::http_body::BodyLimits;

/// Serves until `shutdown` is ready, then finishes what is under way.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    intake: Intake,
    limits: BodyLimits,
    shutdown: impl Future<Output = ()>,
) {
    let receiver = HttpReceiver { intake, limits };
    let guard = middleware::from_fn_with_state(receiver.clone(), guard);
    let router = Router::new()
        .route("/v1/traces", post(traces))
        .route("/v1/logs", post(not_kept::<ExportLogsServiceRequest>))
        .route("/v1/metrics", post(not_kept::<ExportMetricsServiceRequest>))
        .layer(GlobalConcurrencyLimitLayer::new(MOST_UNDER_WAY))
        .layer(guard)
        .with_state(receiver);
    let port = Port {
        listener,
        tls,
        http1: true,
    };
    connections::serve(port, router, shutdown).await;
}

#[derive(Clone, Debug)]
struct HttpReceiver {
    intake: Intake,
    limits: BodyLimits,
}

async fn traces(State(receiver): State<HttpReceiver>, request: Request) -> Response {
    let (form, body, request) = match receiver.read::<ExportTraceServiceRequest>(request).await {
        Ok(read) => read,
        Err(answer) => return answer,
    };
    // What is stored and sent on is protobuf.
    let body = match form {
        Form::Protobuf => body,
        Form::Json => request.encode_to_vec().into(),
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

async fn not_kept<R: NotKept>(State(receiver): State<HttpReceiver>, request: Request) -> Response {
    match receiver.read::<R>(request).await {
        Ok((form, _, request)) => {
            receiver.intake.metrics.count_ignored(R::SIGNAL);
            form.success(&request.answer())
        }
        Err(refusal) => refusal,
    }
}

/// Lets in who may send.
async fn guard(State(receiver): State<HttpReceiver>, request: Request, next: Next) -> Response {
    if receiver.intake.tokens.admit(request.headers()) {
        return next.run(request).await;
    }
    let form = Form::of(request.headers()).unwrap_or(Form::Json);
    let refusal = (StatusCode::UNAUTHORIZED, Refusal::Unauthenticated);
    let mut response = receiver.refuse(form, refusal, bearer_tokens::MISSING);
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    response
}

impl HttpReceiver {
    /// The form, the decompressed body and the message of a request, or the answer that refuses it.
    async fn read<R: Message + Default + DeserializeOwned>(
        &self,
        request: Request<Body>,
    ) -> Result<(Form, Bytes, R), Response> {
        let (parts, body) = request.into_parts();
        let Some(form) = Form::of(&parts.headers) else {
            let refusal = (StatusCode::UNSUPPORTED_MEDIA_TYPE, Refusal::ContentType);
            let message = "send application/x-protobuf or application/json";
            return Err(self.refuse(Form::Json, refusal, message));
        };
        let body = http_body::read(&parts.headers, body, self.limits)
            .await
            .map_err(|error| {
                let refusal = (error.status(), Refusal::from(&error));
                self.refuse(form, refusal, &error.to_string())
            })?;
        let message = parse(form, &body).map_err(|error| {
            let refusal = (StatusCode::BAD_REQUEST, Refusal::Malformed);
            self.refuse(form, refusal, &error.to_string())
        })?;
        Ok((form, body, message))
    }

    fn refuse(
        &self,
        form: Form,
        (status, reason): (StatusCode, Refusal),
        message: &str,
    ) -> Response {
        self.intake.metrics.count_refusal(reason);
        form.error(status, message, None)
    }
}

/// Why a body is no request.
#[derive(Debug, thiserror::Error)]
enum ParseError {
    #[error("not an export request in protobuf: {0}")]
    Protobuf(#[from] prost::DecodeError),
    #[error("not an export request in JSON: {0}")]
    Json(#[from] serde_json::Error),
}

fn parse<R: Message + Default + DeserializeOwned>(
    form: Form,
    body: &Bytes,
) -> Result<R, ParseError> {
    match form {
        Form::Protobuf => Ok(R::decode(body.clone())?),
        Form::Json => Ok(serde_json::from_slice(body)?),
    }
}
