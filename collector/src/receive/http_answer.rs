//! The two forms of an OTLP/HTTP body, and answers in the form of the request.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use prost::Message;
use serde::Serialize;
use tonic::Code;

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `application/x-protobuf`.
    Protobuf,
    /// `application/json`.
    Json,
}

impl Form {
    /// The form that a request says it has; `None` for any other.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let essence = value.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/x-protobuf") {
            Some(Self::Protobuf)
        } else if essence.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else {
            None
        }
    }

    /// A message as the answer.
    pub(super) fn success<M: Message + Serialize>(self, message: &M) -> Response {
        match self {
            Self::Protobuf => self.respond(StatusCode::OK, message.encode_to_vec()),
            Self::Json => match serde_json::to_vec(message) {
                Ok(body) => self.respond(StatusCode::OK, body),
                Err(error) => {
                    self.error(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string(), None)
                }
            },
        }
    }

    /// A `google.rpc.Status` as the answer, with the seconds to wait before the next try if
    /// there should be one.
    pub(super) fn error(
        self,
        status: StatusCode,
        message: &str,
        retry_after_seconds: Option<u64>,
    ) -> Response {
        let code = grpc_code(status);
        let body = match self {
            Self::Protobuf => tonic_types::Status {
                code: code.into(),
                message: message.to_owned(),
                details: Vec::new(),
            }
            .encode_to_vec(),
            Self::Json => serde_json::json!({ "code": i32::from(code), "message": message })
                .to_string()
                .into_bytes(),
        };
        let mut response = self.respond(status, body);
        if let Some(seconds) = retry_after_seconds {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }

    fn respond(self, status: StatusCode, body: Vec<u8>) -> Response {
        let content_type = match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        };
        let content_type = HeaderValue::from_static(content_type);
        (status, [(CONTENT_TYPE, content_type)], body).into_response()
    }
}

fn grpc_code(status: StatusCode) -> Code {
    match status {
        StatusCode::BAD_REQUEST
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::InvalidArgument,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::REQUEST_TIMEOUT => Code::DeadlineExceeded,
        StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        _ => Code::Internal,
    }
}
