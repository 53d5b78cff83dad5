//! The pages people read. They need no script, load nothing from elsewhere, and escape all that
//! they show: paths, services and statements come from whoever sends requests.

mod assets;
mod axis;
mod error_page;
mod exchange;
mod format;
mod gap_regions;
mod headline;
mod ledger_table;
mod list;
mod segment_words;
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

use self::error_page::PageError;
use self::exchange::ExchangePage;
use self::list::{ListPage, ListRequest};
use super::WebState;
use super::api_error::ApiError;
use super::verdict_api;

/// Nothing but this server's own style and pictures: no script, no frame, no other host.
const CONTENT_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// All pages, what they load, and the answer to any path that is not known.
pub(super) fn router() -> Router<WebState> {
    let header = |name: HeaderName, value| {
        SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value))
    };
    Router::new()
        .route("/", get(list))
        .route("/exchanges/{trace_id}/{span_id}", get(exchange))
        .route("/assets/{name}", get(assets::asset))
        .fallback(no_such_page)
        .layer(header(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY))
        .layer(header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(header(header::REFERRER_POLICY, "no-referrer"))
}

async fn list(
    State(state): State<WebState>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, PageError> {
    let Query(parameters) = query.map_err(ApiError::from)?;
    let (request, for_filter) = ListRequest::read(parameters)?;
    let filter = verdict_api::filter(&for_filter, state.clock.now_ns())?;
    let page = state.queries.exchanges(filter).await?;
    html(StatusCode::OK, &ListPage::of(&request, &page))
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
