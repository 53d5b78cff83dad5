//! What every long-running subcommand runs in: a runtime, logs, and its last spans at the end.

use std::future::Future;

use anyhow::Context as _;

use crate::args::LogArgs;
use crate::failure::{Exit, Failure};
use crate::telemetry::{OwnSpans, Telemetry};

/// Runs `work` to its end, logging what `log` says, or else `default_level`.
///
/// # Errors
/// Those of `work`; or the runtime cannot be made, or the log filter cannot be read.
pub(crate) fn run(
    log: &LogArgs,
    default_level: &str,
    spans: Option<OwnSpans>,
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")
        .map_err(Failure::cannot_start)?;
    runtime.block_on(async {
        let telemetry = Telemetry::start(log, default_level, spans).map_err(Failure::usage)?;
        let done = work.await;
        telemetry.close().await;
        done
    })
}
