//! What the program says about itself: logs on standard error, and its own spans.

use std::env;
use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::{EnvFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt as _;
use url::Url;

use crate::args::{LogArgs, LogFormat};

/// Longest wait for the last spans at the end.
const FLUSH: Duration = Duration::from_secs(2);

/// Where a program's own spans go.
pub(crate) struct OwnSpans {
    /// The name it goes by, unless `OTEL_SERVICE_NAME` gives another.
    pub(crate) service: &'static str,
    /// OTLP over gRPC.
    pub(crate) otlp: Url,
}

/// Keeps spans on their way until it is closed.
#[must_use = "spans are lost unless it is closed"]
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

impl Telemetry {
    /// Starts logging, and sending spans where `spans` says so and the variables of
    /// OpenTelemetry do not forbid it. To be called within a runtime.
    ///
    /// Spans below the level that is logged are never made, so that one for each request,
    /// at `debug`, costs nothing by default.
    ///
    /// # Errors
    /// The filter cannot be read, or the exporter cannot be made.
    pub(crate) fn start(
        log: &LogArgs,
        default_level: &str,
        spans: Option<OwnSpans>,
    ) -> anyhow::Result<Self> {
        let provider = spans.filter(|_| spans_wanted()).map(provider).transpose()?;
        let spans_layer = provider.as_ref().map(|provider| {
            // Only our own: the exporter's libraries make spans too, about each export.
            let ours = Targets::new().with_target("skewtap", tracing::Level::TRACE);
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("skewtap-own"))
                .with_filter(ours)
        });
        tracing_subscriber::registry()
            .with(filter(log, default_level)?)
            .with(log_layer(log.log_format))
            .with(spans_layer)
            .try_init()
            .context("cannot start logging")?;
        Ok(Self(provider))
    }

    /// Sends the last spans, for two seconds at most.
    pub(crate) async fn close(self) {
        let Some(provider) = self.0 else { return };
        // Waits for the exporter, which needs this thread's runtime.
        let closed = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH));
        match closed.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last spans of our own were not sent"),
            Err(error) => tracing::warn!(%error, "sending the last spans of our own broke"),
        }
    }
}

fn log_layer(
    format: LogFormat,
) -> Box<dyn tracing_subscriber::Layer<FilteredRegistry> + Send + Sync> {
    let colour = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(colour);
    match format {
        LogFormat::Human => layer.boxed(),
        LogFormat::Json => layer.json().boxed(),
    }
}

type FilteredRegistry = tracing_subscriber::layer::Layered<EnvFilter, Registry>;

fn filter(log: &LogArgs, default_level: &str) -> anyhow::Result<EnvFilter> {
    let from_rust_log = || env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let text = log.log.clone().or_else(from_rust_log);
    let text = text.as_deref().unwrap_or(default_level);
    EnvFilter::try_new(text).with_context(|| format!("cannot read the log filter {text:?}"))
}

fn spans_wanted() -> bool {
    let is = |name, value: &str| env::var(name).is_ok_and(|set| set.eq_ignore_ascii_case(value));
    !is("OTEL_SDK_DISABLED", "true") && !is("OTEL_TRACES_EXPORTER", "none")
}

fn provider(spans: OwnSpans) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(spans.otlp.as_str())
        .build()
        .with_context(|| format!("cannot send spans to {}", spans.otlp))?;
    let mut resource = Resource::builder();
    if env::var("OTEL_SERVICE_NAME").map_or(true, |name| name.is_empty()) {
        resource = resource.with_service_name(spans.service);
    }
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .build())
}
