//! `/healthz`: whether what is sent can be acknowledged.

use axum::extract::State;
use http::StatusCode;

use super::WebState;

/// `200 ok`, or `503` with the reason while the store refuses to be written.
pub(super) async fn health(State(state): State<WebState>) -> (StatusCode, String) {
    match state.health.trouble() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the store cannot be written: {why}\n"),
        ),
    }
}
