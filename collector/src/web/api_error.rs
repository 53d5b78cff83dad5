//! Why a request to the API gets no answer, and how it is told.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use skewtap_core::ids::{IdError, SpanId, TraceId};
use utoipa::ToSchema;

use super::time_filter::NoTime;
use crate::store::query::{NoCursor, QueryError};

/// Why a request gets no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("unknown parameter {name:?}; known are {known}")]
    UnknownParameter { name: String, known: String },
    #[error("parameter {0} is given twice")]
    Twice(&'static str),
    #[error("the query cannot be read: {0}")]
    Query(String),
    #[error("{name} is {text:?}; it can be {wanted}")]
    Value {
        name: &'static str,
        text: String,
        wanted: String,
    },
    #[error("{name}: {source}")]
    Time { name: &'static str, source: NoTime },
    #[error("until is not after since")]
    EmptyWindow,
    #[error("cursor: {0}")]
    Cursor(#[from] NoCursor),
    #[error("{name} {text:?}: {source}; it has {digits} hex digits")]
    Id {
        name: &'static str,
        text: String,
        digits: usize,
        source: IdError,
    },
    #[error("no verdict on span {span_id} of trace {trace_id}")]
    NoVerdict { trace_id: TraceId, span_id: SpanId },
    #[error("no such path; see /api/v1/openapi.json")]
    NoPath,
    #[error("{0} listen already; try again later")]
    TooManyListeners(usize),
    #[error("a stored verdict is no JSON: {0}")]
    Stored(#[from] serde_json::Error),
    #[error("stored observations cannot be read: {0}")]
    Observations(#[from] prost::DecodeError),
    #[error(transparent)]
    Store(#[from] QueryError),
}

/// What every answer that is no success holds.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorAnswer {
    /// What is wrong, and what to do about it.
    error: String,
}

impl ApiError {
    /// The status that says whose fault it is.
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::UnknownParameter { .. }
            | Self::Twice(_)
            | Self::Query(_)
            | Self::Value { .. }
            | Self::Time { .. }
            | Self::EmptyWindow
            | Self::Cursor(_)
            | Self::Id { .. } => StatusCode::BAD_REQUEST,
            Self::NoVerdict { .. } | Self::NoPath => StatusCode::NOT_FOUND,
            Self::Stored(_) | Self::Observations(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Store(_) | Self::TooManyListeners(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::Query(rejection.body_text())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status();
        if status.is_server_error() {
            tracing::error!(error = %self, "a request to the API failed");
        }
        let error = self.to_string();
        (status, Json(ErrorAnswer { error })).into_response()
    }
}
