//! Pushing the collector's own metrics to the backend, for those who do not scrape.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use skewtap_core::exchange_attributes::SCOPE;
use tokio_util::sync::CancellationToken;

use super::backend::{Backend, Signal};
use super::open_metrics::{self, Period};
use crate::metrics::Metrics;
use crate::otlp_encode::{attribute, string};

/// The name of the collector as a service.
const SERVICE: &str = "skewtap-collector";

/// Pushes every metric each `every`, and a last time when `stopping` is cancelled.
///
/// Values count from the start on, so what one push does not deliver the next one does, and none
/// is made again.
pub(super) async fn push(
    backend: &Backend,
    metrics: &Metrics,
    every: Duration,
    stopping: CancellationToken,
) {
    let from_ns = now_ns();
    let mut was_taken = true;
    loop {
        let last = tokio::select! {
            () = tokio::time::sleep(every) => false,
            () = stopping.cancelled() => true,
        };
        let period = Period {
            from_ns,
            to_ns: now_ns(),
        };
        let Ok(text) = metrics.text() else { continue };
        let sent = backend.send(Signal::Metrics, request(&text, period)).await;
        if let Err(error) = &sent
            && was_taken
        {
            tracing::warn!(%backend, %error, "the backend does not take metrics");
        }
        was_taken = sent.is_ok();
        metrics.export.pushed(was_taken);
        if last {
            break;
        }
    }
}

fn request(text: &str, period: Period) -> bytes::Bytes {
    let version = env!("CARGO_PKG_VERSION");
    let scope = InstrumentationScope {
        name: SCOPE.to_owned(),
        version: version.to_owned(),
        ..InstrumentationScope::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![
                    attribute("service.name", string(SERVICE)),
                    attribute("service.version", string(version)),
                ],
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope),
                metrics: open_metrics::read(text, period),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
    .encode_to_vec()
    .into()
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}
