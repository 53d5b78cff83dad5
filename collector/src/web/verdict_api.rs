//! The verdicts in JSON.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use skewtap_core::ids::{IdError, SpanId, TraceId};

use super::WebState;
use super::time_filter::{self, NoTime};
use crate::store::query::{Filter, MOST_PER_PAGE, NoCursor, QueryError, StoredVerdict};

/// Verdicts, newest first.
#[derive(Debug, Serialize)]
struct List {
    exchanges: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

/// Why a request gets no verdicts.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error(
        "unknown parameter {0:?}; known are flagged, since, until, service, cause, limit and cursor"
    )]
    UnknownParameter(String),
    #[error("parameter {0} is given twice")]
    Twice(&'static str),
    #[error("the query cannot be read: {0}")]
    Query(String),
    #[error("flagged is {0:?}; it can be true or false")]
    Flagged(String),
    #[error("limit is {0:?}; it can be 1 to {MOST_PER_PAGE}")]
    Limit(String),
    #[error("{name}: {source}")]
    Time { name: &'static str, source: NoTime },
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
    #[error("no such path; see /api/v1/exchanges")]
    NoPath,
    #[error("a stored verdict is no JSON: {0}")]
    Stored(#[from] serde_json::Error),
    #[error(transparent)]
    Store(#[from] QueryError),
}

impl ApiError {
    /// The status that says whose fault it is.
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::UnknownParameter(_)
            | Self::Twice(_)
            | Self::Query(_)
            | Self::Flagged(_)
            | Self::Limit(_)
            | Self::Time { .. }
            | Self::Cursor(_)
            | Self::Id { .. } => StatusCode::BAD_REQUEST,
            Self::NoVerdict { .. } | Self::NoPath => StatusCode::NOT_FOUND,
            Self::Stored(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
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
            tracing::error!(error = %self, "a request for verdicts failed");
        }
        let body = Json(serde_json::json!({ "error": self.to_string() }));
        (status, body).into_response()
    }
}

/// `GET /api/v1/exchanges`
pub(super) async fn list(
    State(state): State<WebState>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(parameters) = query?;
    let filter = filter(&parameters, state.clock.now_ns())?;
    let page = state.queries.exchanges(filter).await?;
    let exchanges: Result<Vec<_>, _> = page.verdicts.into_iter().map(document).collect();
    Ok(Json(List {
        exchanges: exchanges?,
        next_cursor: page.next.map(|cursor| cursor.to_string()),
    })
    .into_response())
}

/// `GET /api/v1/exchanges/{trace_id}/{span_id}`
pub(super) async fn one(
    State(state): State<WebState>,
    Path((trace, span)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let (trace_id, span_id) = ids(trace, span)?;
    let verdict = state.queries.exchange(trace_id, span_id).await?;
    let verdict = verdict.ok_or(ApiError::NoVerdict { trace_id, span_id })?;
    Ok(Json(document(verdict)?).into_response())
}

/// The identifiers in the address of an exchange.
///
/// # Errors
/// [`ApiError::Id`] for the first text that is no identifier.
pub(super) fn ids(trace: String, span: String) -> Result<(TraceId, SpanId), ApiError> {
    let trace_id: TraceId = trace.parse().map_err(|source| ApiError::Id {
        name: "trace id",
        text: trace,
        digits: 32,
        source,
    })?;
    let span_id: SpanId = span.parse().map_err(|source| ApiError::Id {
        name: "span id",
        text: span,
        digits: 16,
        source,
    })?;
    Ok((trace_id, span_id))
}

/// Any other path under `/api/`.
pub(super) async fn no_such_path() -> ApiError {
    ApiError::NoPath
}

fn document(verdict: StoredVerdict) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(verdict.document)
}

/// The filter that the parameters of an address describe.
///
/// # Errors
/// [`ApiError`] for the first parameter that is unknown, given twice or not understood.
pub(super) fn filter(parameters: &[(String, String)], now_ns: i64) -> Result<Filter, ApiError> {
    let mut filter = Filter::default();
    let mut seen = Vec::new();
    let time = |name, text: &str| {
        time_filter::parse(text, now_ns).map_err(|source| ApiError::Time { name, source })
    };
    for (name, value) in parameters {
        let name = match name.as_str() {
            "flagged" => {
                let flagged = value
                    .parse()
                    .map_err(|_| ApiError::Flagged(value.clone()))?;
                filter.flagged = Some(flagged);
                "flagged"
            }
            "since" => {
                filter.since_ns = Some(time("since", value)?);
                "since"
            }
            "until" => {
                filter.until_ns = Some(time("until", value)?);
                "until"
            }
            "service" => {
                filter.edges.service = Some(value.clone());
                "service"
            }
            "cause" => {
                filter.cause = Some(value.clone());
                "cause"
            }
            "limit" => {
                filter.limit = limit(value)?;
                "limit"
            }
            "cursor" => {
                filter.after = Some(value.parse()?);
                "cursor"
            }
            _ => return Err(ApiError::UnknownParameter(name.clone())),
        };
        if seen.contains(&name) {
            return Err(ApiError::Twice(name));
        }
        seen.push(name);
    }
    Ok(filter)
}

fn limit(text: &str) -> Result<usize, ApiError> {
    text.parse()
        .ok()
        .filter(|limit| (1..=MOST_PER_PAGE).contains(limit))
        .ok_or_else(|| ApiError::Limit(text.to_owned()))
}
