//! `skewtap collector`.

use anyhow::Context as _;
use skewtap_collector::{Collector, Config};

use crate::args::{CollectorArgs, LogArgs};
use crate::failure::{Exit, Failure};
use crate::shutdown::Shutdown;
use crate::{runtime, start_line};

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
    let mut config = Config {
        otlp_grpc: args.otlp_grpc,
        otlp_http: args.otlp_http,
        http: args.http,
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
