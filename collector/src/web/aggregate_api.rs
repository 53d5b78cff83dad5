//! Sums over many exchanges, for plots, and the clocks of their peers; in JSON.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};

use super::WebState;
use super::aggregate_json::{
    CauseSeriesJson, ClocksJson, EdgesJson, GapHistogramJson, GapSeriesJson, ScatterJson,
};
use super::api_error::ApiError;
use super::parameters::{
    CLIENT_SERVICE, Given, Parameter, ROUTE, SERVER_SERVICE, SERVICE, SINCE, UNTIL,
};
use super::verdict_api::edges as edge_filter;
use crate::store::query::aggregates::Window;
use crate::store::query::{EdgeFilter, QueryError};

/// The parameters of every plot.
pub(super) const PLOT: [&Parameter; 6] = [
    &SINCE,
    &UNTIL,
    &SERVICE,
    &CLIENT_SERVICE,
    &SERVER_SERVICE,
    &ROUTE,
];

/// How far back a plot reaches when nothing else is asked for, in nanoseconds.
const USUAL_REACH_NS: i64 = 3_600 * 1_000_000_000;

/// What an address says, or why it could not be taken apart.
type Parameters = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// `GET /api/v1/edges`
pub(super) async fn edges(
    State(state): State<WebState>,
    query: Parameters,
) -> Result<Json<EdgesJson>, ApiError> {
    let (window, filter) = plot(query, &state)?;
    let edges = state.queries.edges(window, filter).await?;
    Ok(Json(EdgesJson::from(&edges)))
}

/// `GET /api/v1/gaps/series`
pub(super) async fn gap_series(
    State(state): State<WebState>,
    query: Parameters,
) -> Result<Json<GapSeriesJson>, ApiError> {
    let (window, filter) = plot(query, &state)?;
    let series = state.queries.gap_series(window, filter).await?;
    Ok(Json(GapSeriesJson::from(&series)))
}

/// `GET /api/v1/gaps/histogram`
pub(super) async fn gap_histogram(
    State(state): State<WebState>,
    query: Parameters,
) -> Result<Json<GapHistogramJson>, ApiError> {
    let (window, filter) = plot(query, &state)?;
    let histogram = state.queries.gap_histogram(window, filter).await?;
    Ok(Json(GapHistogramJson::from(&histogram)))
}

/// `GET /api/v1/lags`
pub(super) async fn lags(
    State(state): State<WebState>,
    query: Parameters,
) -> Result<Json<ScatterJson>, ApiError> {
    let (window, filter) = plot(query, &state)?;
    let scatter = state.queries.scatter(window, filter).await?;
    Ok(Json(ScatterJson::new(window, &scatter)))
}

/// `GET /api/v1/findings/series`
pub(super) async fn cause_series(
    State(state): State<WebState>,
    query: Parameters,
) -> Result<Json<CauseSeriesJson>, ApiError> {
    let (window, filter) = plot(query, &state)?;
    let series = state.queries.cause_series(window, filter).await?;
    Ok(Json(CauseSeriesJson::from(&series)))
}

/// `GET /api/v1/clocks`
pub(super) async fn clocks(State(state): State<WebState>) -> Result<Json<ClocksJson>, ApiError> {
    let clocks = state.clocks.clone();
    let reports = tokio::task::spawn_blocking(move || clocks.reports()).await;
    let reports = reports.map_err(|_| QueryError::ShuttingDown)?;
    Ok(Json(ClocksJson::from(reports)))
}

/// The window and the edges that an address asks for; the last hour, where it does not say.
fn plot(query: Parameters, state: &WebState) -> Result<(Window, EdgeFilter), ApiError> {
    let Query(parameters) = query?;
    let given = Given::read(&parameters, &PLOT)?;
    let now_ns = state.clock.now_ns();
    let until_ns = given.time(&UNTIL, now_ns)?.unwrap_or(now_ns);
    let since_ns = given.time(&SINCE, now_ns)?;
    let since_ns = since_ns.unwrap_or_else(|| until_ns.saturating_sub(USUAL_REACH_NS));
    if until_ns <= since_ns {
        return Err(ApiError::EmptyWindow);
    }
    let window = Window { since_ns, until_ns };
    Ok((window, edge_filter(&given)))
}
