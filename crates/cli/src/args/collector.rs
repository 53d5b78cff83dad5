//! Flags of `skewtap collector`.

mod onward;
mod senders;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;

pub(crate) use self::onward::{ExportFormat, MessageFormat, OnwardArgs};
pub(crate) use self::senders::SenderArgs;
use super::keeping::KeepingArgs;
use crate::failure::Exit;

const NOTES: &str = "\
Examples:
  skewtap collector --store /var/lib/skewtap
      then point every OpenTelemetry SDK at it:
      OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc
  skewtap collector --export-otlp http://tempo:4317
      sends every span on, and adds what was found out to each trace
  curl 'http://127.0.0.1:4390/api/v1/exchanges?flagged=true&since=15m'

The first line of standard output says where it listens, also when a port 0 was asked for:
  listening otlp_grpc=127.0.0.1:4317 otlp_http=127.0.0.1:4318 http=127.0.0.1:4390";

/// Receive spans and exchanges, match them, and show where the time went
#[derive(Debug, Args)]
#[command(after_help = format!("{NOTES}\n\n{}", Exit::HELP))]
pub(crate) struct CollectorArgs {
    /// Where OTLP over gRPC is received; port 0 takes any free one
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "SKEWTAP_OTLP_GRPC",
        default_value = "127.0.0.1:4317"
    )]
    pub(crate) otlp_grpc: SocketAddr,
    /// Where OTLP over HTTP is received
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "SKEWTAP_OTLP_HTTP",
        default_value = "127.0.0.1:4318"
    )]
    pub(crate) otlp_http: SocketAddr,
    /// Where the page, the API and /metrics are answered
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "SKEWTAP_HTTP",
        default_value = "127.0.0.1:4390"
    )]
    pub(crate) http: SocketAddr,
    /// The directory that keeps what was received and judged; made if absent
    #[arg(
        long,
        value_name = "DIR",
        env = "SKEWTAP_STORE",
        default_value = "skewtap-store"
    )]
    pub(crate) store: PathBuf,
    #[command(flatten)]
    pub(crate) keeping: KeepingArgs,
    /// How long to wait for a missing side before judging what is there, 1s to 5m; exporters hold
    /// spans back for up to 5s
    #[arg(
        long,
        value_name = "TIME",
        env = "SKEWTAP_SETTLE",
        default_value = "15s",
        value_parser = settle_time
    )]
    pub(crate) settle: Duration,
    #[command(flatten)]
    pub(crate) senders: SenderArgs,
    #[command(flatten)]
    pub(crate) onward: OnwardArgs,
    /// End when standard input reaches its end: for a program that starts this one
    #[arg(long, hide = true)]
    pub(crate) end_with_stdin: bool,
}

fn settle_time(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=Duration::from_secs(300);
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|time| Duration::try_from(time).ok())
        .filter(|time| range.contains(time))
        .ok_or_else(|| "write a time from 1s to 5m, such as 15s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settle_time_has_a_unit_and_a_range() {
        assert_eq!(settle_time("3s"), Ok(Duration::from_secs(3)));
        assert_eq!(settle_time("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(settle_time("5m"), Ok(Duration::from_secs(300)));
        for bad in ["", "3", "0s", "999ms", "301s", "-3s", "soon"] {
            assert!(settle_time(bad).is_err(), "{bad}");
        }
    }
}
