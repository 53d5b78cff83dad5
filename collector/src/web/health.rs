//! Whether the collector does its work.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::WebState;
use super::aggregate_json::seconds;
use super::api_error::ApiError;

/// The state of the collector.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HealthJson {
    /// Whether what is sent can be acknowledged.
    ok: bool,
    /// Why the store cannot be written; null while it can.
    trouble: Option<String>,
    /// The version of the collector.
    collector_version: &'static str,
    /// Since when it runs, in seconds since the Unix epoch.
    started_unix_seconds: f64,
    /// Bytes of the store in use; freed ones are used again.
    store_bytes: u64,
    /// Bytes of batches that are acknowledged and not settled.
    log_bytes: i64,
    /// Client spans that wait for what belongs to them, or could still be revised.
    open_exchanges: i64,
}

/// `GET /healthz`: `200 ok`, or `503` with the reason while the store refuses to be written.
pub(super) async fn probe(State(state): State<WebState>) -> (StatusCode, String) {
    match state.health.trouble() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the store cannot be written: {why}\n"),
        ),
    }
}

/// `GET /api/v1/health`
pub(super) async fn details(State(state): State<WebState>) -> Result<Json<HealthJson>, ApiError> {
    let trouble = state.health.trouble();
    Ok(Json(HealthJson {
        ok: trouble.is_none(),
        trouble,
        collector_version: env!("CARGO_PKG_VERSION"),
        started_unix_seconds: seconds(state.clock.made_ns()),
        store_bytes: state.queries.used_bytes().await?,
        log_bytes: state.metrics.pipeline.log_bytes.get(),
        open_exchanges: state.metrics.pipeline.open.get(),
    }))
}
