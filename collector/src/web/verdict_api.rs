//! The verdicts in JSON.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::verdict_json::VerdictJson;
use utoipa::ToSchema;

use super::WebState;
use super::api_error::ApiError;
use super::parameters::{
    CAUSE, CLIENT_SERVICE, CURSOR, FLAGGED, Given, LIMIT, MIN_GAP, Parameter, ROUTE,
    SERVER_SERVICE, SERVICE, SINCE, UNTIL,
};
use crate::store::query::{EdgeFilter, Filter, StoredVerdict};

/// The parameters of the list.
pub(super) const LIST: [&Parameter; 11] = [
    &FLAGGED,
    &SINCE,
    &UNTIL,
    &SERVICE,
    &CLIENT_SERVICE,
    &SERVER_SERVICE,
    &ROUTE,
    &CAUSE,
    &MIN_GAP,
    &LIMIT,
    &CURSOR,
];

/// Verdicts, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ExchangeList {
    /// The verdicts.
    #[schema(value_type = Vec<VerdictJson>)]
    exchanges: Vec<Box<RawValue>>,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
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
    Ok(Json(ExchangeList {
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

/// The document of a verdict, to be passed on as it is.
///
/// # Errors
/// When it is no JSON.
pub(super) fn document(verdict: StoredVerdict) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(verdict.document)
}

/// The filter that the parameters of an address describe.
///
/// # Errors
/// [`ApiError`] for the first parameter that is unknown, given twice or not understood.
pub(super) fn filter(parameters: &[(String, String)], now_ns: i64) -> Result<Filter, ApiError> {
    let given = Given::read(parameters, &LIST)?;
    let usual = Filter::default();
    Ok(Filter {
        flagged: given.flag(&FLAGGED)?,
        since_ns: given.time(&SINCE, now_ns)?,
        until_ns: given.time(&UNTIL, now_ns)?,
        edges: edges(&given),
        cause: given.text(&CAUSE).map(str::to_owned),
        least_gap_ns: given.length_ns(&MIN_GAP)?,
        after: given.text(&CURSOR).map(str::parse).transpose()?,
        limit: given.count(&LIMIT)?.unwrap_or(usual.limit),
    })
}

/// The edges that the parameters of an address mean.
pub(super) fn edges(given: &Given<'_>) -> EdgeFilter {
    let named = |parameter| given.text(parameter).map(str::to_owned);
    EdgeFilter {
        service: named(&SERVICE),
        client_service: named(&CLIENT_SERVICE),
        server_service: named(&SERVER_SERVICE),
        route: named(&ROUTE),
    }
}
