//! How the demo's server and clients report their spans: with the OpenTelemetry SDK, as any
//! instrumented program does.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanId;
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator, SpanData, SpanExporter};
use url::Url;

/// Who reports: the service, and this process as its instance.
pub(super) fn resource(service: &str) -> Resource {
    let instance: SpanId = RandomIdGenerator::default().new_span_id();
    Resource::builder()
        .with_service_name(service.to_owned())
        .with_attribute(KeyValue::new("service.instance.id", instance.to_string()))
        .with_attribute(KeyValue::new("process.pid", i64::from(process::id())))
        .build()
}

/// An exporter to `otlp`. To be called within a runtime.
///
/// # Errors
/// The address cannot be used.
pub(super) fn exporter(otlp: &Url) -> anyhow::Result<OtlpExporter> {
    OtlpExporter::builder()
        .with_tonic()
        .with_endpoint(otlp.as_str())
        .build()
        .with_context(|| format!("cannot send spans to {otlp}"))
}

/// Keeps spans in memory until they are taken.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldSpans(Arc<Mutex<Vec<SpanData>>>);

impl HeldSpans {
    /// Sends what is held to `otlp`, with a runtime that exists for this only.
    ///
    /// # Errors
    /// No runtime, or the collector did not take them.
    pub(super) fn send(&self, resource: &Resource, otlp: &Url) -> anyhow::Result<()> {
        let spans = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(async {
                let mut exporter = exporter(otlp)?;
                exporter.set_resource(resource);
                exporter
                    .export(spans)
                    .await
                    .with_context(|| format!("the collector at {otlp} did not take the span"))
            })
    }
}

impl SpanExporter for HeldSpans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(batch);
        Ok(())
    }
}
