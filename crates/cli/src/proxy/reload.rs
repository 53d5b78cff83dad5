//! Taking on the configuration file and the certificates anew at SIGHUP.

use std::io;

use anyhow::Context as _;
use skewtap_proxy::Reloader;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Command;

/// Catches hangups from now on.
///
/// # Errors
/// The system refused a signal handler.
pub(super) fn hangups() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// Reloads at each of `hangups`, and says how that went in one line.
pub(super) async fn at_each(mut hangups: Signal, reloader: Reloader) {
    while hangups.recv().await.is_some() {
        match reload(&reloader).await {
            Ok(fixed) if fixed.is_empty() => tracing::info!("settings taken on anew"),
            Ok(fixed) => tracing::warn!(
                restart_needed_for = fixed.join(", "),
                "settings taken on anew, but for some"
            ),
            Err(error) => tracing::error!(
                error = format!("{error:#}").replace('\n', "; "),
                "settings not taken on, those before stay in use"
            ),
        }
    }
}

/// Gives the names of settings that changed but need a restart.
async fn reload(reloader: &Reloader) -> anyhow::Result<Vec<&'static str>> {
    let config = read().inspect_err(|_| reloader.failed())?;
    Ok(reloader.reload(config).await?)
}

fn read() -> anyhow::Result<skewtap_proxy::Config> {
    let Command::Proxy(args) = crate::arguments()?.command else {
        anyhow::bail!("the command line is not that of a proxy");
    };
    let otlp = args.otlp()?;
    super::config(&args, otlp).context("the settings cannot be used")
}
