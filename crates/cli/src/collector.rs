//! `skewtap collector`.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use skewtap_collector::{
    Collector, Config, ExportConfig, ExportProtocol, TlsFiles, WebhookConfig, WebhookFormat,
};

use crate::args::{CollectorArgs, ExportFormat, LogArgs, MessageFormat, OnwardArgs, SenderArgs};
use crate::failure::{Exit, Failure};
use crate::shutdown::Shutdown;
use crate::{runtime, start_line};

/// The pause between two pushes of metrics, which is what SDKs keep to as well.
const METRICS_EVERY: Duration = Duration::from_secs(60);

/// Collects until it is told to stop.
///
/// # Errors
/// It cannot start, or it breaks later.
pub(crate) fn run(args: &CollectorArgs, log: &LogArgs) -> Result<Exit, Failure> {
    runtime::run(log, "info", None, collect(args))
}

async fn collect(args: &CollectorArgs) -> Result<Exit, Failure> {
    let mut shutdown = Shutdown::listen(args.end_with_stdin)
        .context("cannot listen for signals")
        .map_err(Failure::cannot_start)?;
    args.senders
        .check()
        .and_then(|()| args.onward.check())
        .map_err(|what| Failure::usage(anyhow!(what)))?;
    let mut config = Config {
        otlp_grpc: args.otlp_grpc,
        otlp_http: args.otlp_http,
        http: args.http,
        retention: args.keeping.retention(),
        most_log_bytes: args.keeping.backlog_size,
        otlp_tls: tls(&args.senders),
        otlp_token_file: args.senders.otlp_token_file.clone(),
        export: export(&args.onward),
        webhook: webhook(&args.onward),
        pages_url: args.onward.pages_url.clone(),
        ..Config::new(args.store.clone())
    };
    config.matcher.settle = args.settle;
    let collector = Collector::bind(config)
        .await
        .context("cannot start the collector")
        .map_err(Failure::cannot_start)?;
    let addresses = collector.addresses();
    let listeners = [
        ("otlp_grpc", addresses.otlp_grpc),
        ("otlp_http", addresses.otlp_http),
        ("http", addresses.http),
    ];
    let notes = [
        format!("store: {}", args.store.display()),
        format!("page: http://{}/", addresses.http),
    ];
    start_line::announce(&listeners, &notes)
        .context("cannot say where the collector listens")
        .map_err(Failure::cannot_start)?;
    collector
        .serve(async move { shutdown.requested().await })
        .await
        .context("the collector broke")
        .map_err(Failure::broken)?;
    Ok(Exit::Done)
}

/// The files are asked for together, so there are both or none.
fn tls(args: &SenderArgs) -> Option<TlsFiles> {
    Some(TlsFiles {
        certificate: args.otlp_tls_cert.clone()?,
        key: args.otlp_tls_key.clone()?,
        client_ca: args.otlp_client_ca.clone(),
    })
}

fn export(args: &OnwardArgs) -> Option<ExportConfig> {
    let mut export = ExportConfig::new(args.export_otlp.clone()?);
    if let Some(protocol) = args.export_protocol {
        export.protocol = match protocol {
            ExportFormat::Grpc => ExportProtocol::Grpc,
            ExportFormat::Http => ExportProtocol::Http,
        };
    }
    export.headers.clone_from(&args.export_header);
    export.authorities.clone_from(&args.export_ca);
    export.metrics_every = args.export_metrics.then_some(METRICS_EVERY);
    export.write_back = !args.no_write_back;
    Some(export)
}

fn webhook(args: &OnwardArgs) -> Option<WebhookConfig> {
    Some(WebhookConfig {
        format: match args.webhook_format {
            MessageFormat::Json => WebhookFormat::Json,
            MessageFormat::Slack => WebhookFormat::Slack,
        },
        every: args.webhook_every,
        ..WebhookConfig::new(args.webhook.clone()?)
    })
}
