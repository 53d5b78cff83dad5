//! `skewtap proxy`.

mod reload;

use anyhow::Context as _;
use skewtap_core::exchange::{SourceState, Sources};
use skewtap_proxy::{Config, Proxy};
use tracing::Instrument as _;
use url::Url;

use crate::args::{LogArgs, ProxyArgs, RouteArgs};
use crate::failure::{Exit, Failure};
use crate::shutdown::Shutdown;
use crate::telemetry::OwnSpans;
use crate::{runtime, start_line};

/// Forwards until it is told to stop.
///
/// # Errors
/// It cannot start, or it breaks later.
pub(crate) fn run(args: &ProxyArgs, log: &LogArgs) -> Result<Exit, Failure> {
    let otlp = args.otlp().map_err(Failure::usage)?;
    let spans = OwnSpans {
        service: "skewtap-proxy",
        otlp: otlp.clone(),
    };
    runtime::run(log, "info", Some(spans), forward(args, otlp))
}

async fn forward(args: &ProxyArgs, otlp: Url) -> Result<Exit, Failure> {
    let mut shutdown = Shutdown::listen(args.end_with_stdin)
        .context("cannot listen for signals")
        .map_err(Failure::cannot_start)?;
    // Listened for from the start: a hangup must not end the proxy while it starts.
    let hangups = reload::hangups()
        .context("cannot listen for signals")
        .map_err(Failure::cannot_start)?;
    let notes_of_destination = [destination_note(args), format!("collector: {otlp}")];
    let config = config(args, otlp).map_err(Failure::usage)?;
    let proxy = Proxy::bind(config)
        .instrument(tracing::info_span!("start", listen = ?args.listen))
        .await
        .context("cannot start the proxy")
        .map_err(Failure::cannot_start)?;
    let addresses = proxy.addresses();
    let traffic = addresses.traffic.iter();
    let mut listeners: Vec<_> = traffic.map(|address| ("traffic", *address)).collect();
    listeners.extend(addresses.admin.map(|admin| ("admin", admin)));
    let notes: Vec<_> = notes_of_destination
        .into_iter()
        .chain(source_notes(&proxy.sources()))
        .collect();
    start_line::announce(&listeners, &notes)
        .context("cannot say where the proxy listens")
        .map_err(Failure::cannot_start)?;
    let reloading = tokio::spawn(reload::at_each(hangups, proxy.reloader()));
    let served = proxy.serve(async move { shutdown.requested().await }).await;
    reloading.abort();
    served.context("the proxy broke").map_err(Failure::broken)?;
    Ok(Exit::Done)
}

/// Where requests go.
fn destination_note(args: &ProxyArgs) -> String {
    let elsewhere = match (&args.upstream, args.transparent) {
        (_, true) => "wherever each connection was going (transparent proxy)".to_owned(),
        (Some(upstream), _) => upstream.to_string(),
        (None, _) => "whatever the request names (forward proxy)".to_owned(),
    };
    match args.routes.len() {
        0 => format!("upstream: {elsewhere}"),
        routes => format!("upstream: by {routes} routes, else {elsewhere}"),
    }
}

/// What the proxy is told.
fn config(args: &ProxyArgs, otlp: Url) -> anyhow::Result<Config> {
    Ok(Config {
        tls: args.tls.settings(),
        intercept: args.tls.interception()?,
        listen: args.listen.clone(),
        admin: args.admin,
        upstream: args.upstream.clone(),
        routes: args.routes.iter().map(RouteArgs::route).collect(),
        transparent: args.transparent,
        forward: !args.transparent,
        upstream_http: args.upstream_http.into(),
        otlp: (!args.no_records).then_some(otlp),
        kernel_stamps: !args.no_stamps,
        capture: !args.no_capture,
        queues: !args.no_queues,
        processes: !args.no_processes,
        workers: usize::from(args.workers),
        ..args.limits.config()
    })
}

/// One line for each source of stamps.
fn source_notes(sources: &Sources) -> [String; 4] {
    [
        ("kernel stamps", &sources.kernel_stamps),
        ("packets", &sources.capture),
        ("receive queues", &sources.queues),
        ("process samples", &sources.processes),
    ]
    .map(|(name, state)| match state {
        SourceState::Used => format!("{name}: at work"),
        SourceState::Off => format!("{name}: switched off"),
        SourceState::Unavailable(why) => format!("{name}: {why}: going on without"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_its_line() {
        let notes = source_notes(&Sources {
            kernel_stamps: SourceState::Used,
            capture: SourceState::Unavailable("not permitted (needs CAP_NET_RAW)".to_owned()),
            queues: SourceState::Off,
            processes: SourceState::Used,
        });
        assert_eq!(
            notes,
            [
                "kernel stamps: at work",
                "packets: not permitted (needs CAP_NET_RAW): going on without",
                "receive queues: switched off",
                "process samples: at work",
            ]
        );
    }
}
