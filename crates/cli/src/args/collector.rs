//! Flags of `skewtap collector`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::failure::Exit;

const NOTES: &str = "\
Examples:
  skewtap collector --store /var/lib/skewtap
      then point every OpenTelemetry SDK at it:
      OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc
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
    /// End when standard input reaches its end: for a program that starts this one
    #[arg(long, hide = true)]
    pub(crate) end_with_stdin: bool,
}
