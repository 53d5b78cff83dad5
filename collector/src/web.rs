//! Everything that is served over HTTP besides OTLP: the API, the metrics and the health of
//! the collector. Reads the store and calls nothing that writes.

mod aggregate_api;
mod aggregate_json;
mod api;
mod api_error;
mod case_api;
mod described;
mod events_api;
mod health;
mod pages;
mod parameters;
mod prometheus;
mod time_filter;
mod verdict_api;

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

pub(crate) use self::events_api::Listeners;
use crate::announcements::Announcements;
use crate::arrival_clock::ArrivalClock;
use crate::collector::Addresses;
use crate::metrics::Metrics;
use crate::peer_clocks::SharedClocks;
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
    /// How far the peers' clocks are off.
    pub(crate) clocks: SharedClocks,
    /// Where findings are announced.
    pub(crate) announcements: Announcements,
    /// Cancelled when the server stops, so that answers without an end come to one.
    pub(crate) stopping: CancellationToken,
    /// Room for those who listen to announcements.
    pub(crate) listeners: Listeners,
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
    let stopping = state.stopping.clone();
    axum::serve(listener, router(state))
        .with_graceful_shutdown(async move {
            shutdown.await;
            stopping.cancel();
        })
        .await
}

/// Every route. Pages are a router of their own, merged here.
fn router(state: WebState) -> Router {
    api::router()
        .merge(pages::router())
        .layer(CatchPanicLayer::new())
        .with_state(state)
}
