//! Everything that is served over HTTP besides OTLP: the API, the metrics and the health of
//! the collector. Reads the store and calls nothing that writes.

mod health;
mod pages;
mod prometheus;
mod time_filter;
mod verdict_api;

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;

use crate::arrival_clock::ArrivalClock;
use crate::collector::Addresses;
use crate::metrics::Metrics;
use crate::store::health::StoreHealth;
use crate::store::query::Queries;

/// What handlers read from; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct WebState {
    /// The verdicts.
    pub(crate) queries: Queries,
    /// Whether the store can be written.
    pub(crate) health: StoreHealth,
    /// What was counted.
    pub(crate) metrics: Arc<Metrics>,
    /// The time, for filters such as "the last 15 minutes".
    pub(crate) clock: ArrivalClock,
    /// Where the collector listens, for pages that tell how to reach it.
    pub(crate) addresses: Addresses,
}

/// Serves until `shutdown` is ready, then finishes what is under way.
///
/// # Errors
/// When the listener fails.
pub(crate) async fn serve(
    listener: TcpListener,
    state: WebState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, router(state))
        .with_graceful_shutdown(shutdown)
        .await
}

/// Every route. Pages are a router of their own, merged here.
fn router(state: WebState) -> Router {
    Router::new()
        .route("/healthz", get(health::health))
        .route("/metrics", get(prometheus::metrics))
        .route("/api/v1/exchanges", get(verdict_api::list))
        .route(
            "/api/v1/exchanges/{trace_id}/{span_id}",
            get(verdict_api::one),
        )
        .route("/api/{*unknown}", get(verdict_api::no_such_path))
        .merge(pages::router())
        .layer(CatchPanicLayer::new())
        .with_state(state)
}
