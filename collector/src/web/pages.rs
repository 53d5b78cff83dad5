//! The pages people read. They say everything without a script, load nothing from elsewhere, and
//! escape all that they show: paths, services and statements come from whoever sends requests.
//! Scripts draw the charts from tables of the page and keep it up to date.

mod assets;
mod axis;
mod chart;
mod clocks;
mod edge;
mod edge_address;
mod error_page;
mod exchange;
mod format;
mod gap_regions;
mod headline;
mod health_page;
mod ledger_table;
mod list;
mod over_time;
mod overview;
mod segment_words;
mod since;
mod time_window;
mod waterfall;

use askama::Template;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use skewtap_core::verdict_json::VerdictJson;
use tower_http::set_header::SetResponseHeaderLayer;

use self::clocks::ClocksPage;
use self::edge::EdgePage;
use self::edge_address::EdgeAddress;
use self::error_page::PageError;
use self::exchange::ExchangePage;
use self::health_page::HealthPage;
use self::list::{ListPage, ListRequest};
use self::overview::OverviewPage;
use self::time_window::PageWindow;
use super::WebState;
use super::api_error::ApiError;
use super::verdict_api;
use crate::store::query::{EdgeFilter, Filter, QueryError};

/// Nothing but this server's own files: nothing inline, no frame, no other host.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'";

/// All pages, what they load, and the answer to any path that is not known.
pub(super) fn router() -> Router<WebState> {
    let header = |name: HeaderName, value| {
        SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value))
    };
    Router::new()
        .route("/", get(overview))
        .route("/edge", get(edge))
        .route("/exchanges", get(list))
        .route("/exchanges/{trace_id}/{span_id}", get(exchange))
        .route("/clocks", get(clocks))
        .route("/health", get(health))
        .route("/assets/{name}", get(assets::asset))
        .fallback(no_such_page)
        .layer(header(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY))
        .layer(header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(header(header::REFERRER_POLICY, "no-referrer"))
}

/// The parameters of an address, in order.
type Parameters = Result<Query<Vec<(String, String)>>, QueryRejection>;

async fn overview(State(state): State<WebState>, query: Parameters) -> Result<Response, PageError> {
    let Query(parameters) = query.map_err(ApiError::from)?;
    let (window, rest) = PageWindow::read(parameters, state.clock.now_ns())?;
    time_window::nothing_else(&rest)?;
    let latest = Filter {
        flagged: Some(true),
        since_ns: Some(window.window.since_ns),
        limit: overview::LATEST,
        ..Filter::default()
    };
    let one = Filter {
        limit: 1,
        ..Filter::default()
    };
    let all = EdgeFilter::default;
    let queries = &state.queries;
    let seen = overview::Seen {
        any: !queries.exchanges(one).await?.verdicts.is_empty(),
        edges: queries.edges(window.window, all()).await?,
        gaps: queries.gap_series(window.window, all()).await?,
        causes: queries.cause_series(window.window, all()).await?,
        latest: queries.exchanges(latest).await?,
    };
    let page = OverviewPage::of(&window.since, state.addresses, &seen);
    html(StatusCode::OK, &page)
}

async fn edge(State(state): State<WebState>, query: Parameters) -> Result<Response, PageError> {
    let Query(parameters) = query.map_err(ApiError::from)?;
    let (window, rest) = PageWindow::read(parameters, state.clock.now_ns())?;
    let address = EdgeAddress::read(rest)?;
    let queries = &state.queries;
    let seen = edge::Seen {
        sums: queries.edges(window.window, address.filter()).await?,
        gaps: queries.gap_series(window.window, address.filter()).await?,
        sizes: queries
            .gap_histogram(window.window, address.filter())
            .await?,
        points: queries.scatter(window.window, address.filter()).await?,
    };
    // The search for a rhythm takes milliseconds of a processor, which others may need.
    let page = tokio::task::spawn_blocking(move || EdgePage::of(&address, &window.since, &seen));
    let page = page.await.map_err(|_| QueryError::ShuttingDown)?;
    html(StatusCode::OK, &page)
}

async fn clocks(State(state): State<WebState>) -> Result<Response, PageError> {
    let clocks = state.clocks.clone();
    let reports = tokio::task::spawn_blocking(move || clocks.reports()).await;
    let reports = reports.map_err(|_| QueryError::ShuttingDown)?;
    html(StatusCode::OK, &ClocksPage::of(reports))
}

async fn health(State(state): State<WebState>) -> Result<Response, PageError> {
    let latest = Filter {
        limit: health_page::LOOKED_AT,
        ..Filter::default()
    };
    let latest = state.queries.exchanges(latest).await?;
    let page = HealthPage::of(
        state.health.trouble(),
        state.addresses,
        &latest,
        &state.metrics.text().map_err(PageError::Metrics)?,
    );
    html(StatusCode::OK, &page)
}

async fn list(State(state): State<WebState>, query: Parameters) -> Result<Response, PageError> {
    let Query(parameters) = query.map_err(ApiError::from)?;
    let (request, for_filter) = ListRequest::read(parameters)?;
    let filter = verdict_api::filter(&for_filter, state.clock.now_ns())?;
    let page = state.queries.exchanges(filter).await?;
    html(
        StatusCode::OK,
        &ListPage::of(&request, &page, state.addresses),
    )
}

async fn exchange(
    State(state): State<WebState>,
    Path((trace, span)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let (trace_id, span_id) = verdict_api::ids(trace, span)?;
    let stored = state.queries.exchange(trace_id, span_id).await?;
    let stored = stored.ok_or(ApiError::NoVerdict { trace_id, span_id })?;
    let verdict: VerdictJson = serde_json::from_str(&stored.document)?;
    html(StatusCode::OK, &ExchangePage::of(verdict))
}

async fn no_such_page() -> PageError {
    PageError::NoPage
}

/// A page as an answer. Pages change with every exchange, so nobody keeps them.
fn html(status: StatusCode, page: &impl Template) -> Result<Response, PageError> {
    let text = page.render()?;
    let headers = [(header::CACHE_CONTROL, "no-store")];
    Ok((status, headers, Html(text)).into_response())
}

#[cfg(test)]
mod tests;
