//! Flags for how much and how long clients and servers may take.

use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use skewtap_proxy::Config;

/// Limits; what is outside their ranges is refused at the start.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Most client connections at once, 1 to 1000000; more wait to be accepted
    #[arg(
        long,
        value_name = "NUMBER",
        env = "SKEWTAP_MAX_CONNECTIONS",
        default_value_t = 10_000
    )]
    pub(crate) max_connections: usize,
    /// Longest head of a message in bytes, 8192 to 65536
    #[arg(
        long,
        value_name = "BYTES",
        env = "SKEWTAP_MAX_HEAD_BYTES",
        default_value_t = 65_536
    )]
    pub(crate) max_head_bytes: usize,
    /// Most streams at once on one HTTP/2 connection, 1 to 10000; more are refused
    #[arg(
        long,
        value_name = "NUMBER",
        env = "SKEWTAP_MAX_STREAMS",
        default_value_t = 100
    )]
    pub(crate) max_streams: u32,
    /// Most streams that a client may take back within a second on one HTTP/2 connection, 1 to
    /// 1000000; with more the connection is closed
    #[arg(
        long,
        value_name = "NUMBER",
        env = "SKEWTAP_MAX_RESETS",
        default_value_t = 1_000
    )]
    pub(crate) max_resets: u64,
    /// Longest time for a request's head, or a TLS handshake, from begin to end, 100ms to 1h
    #[arg(long, value_name = "TIME", env = "SKEWTAP_HEAD_TIMEOUT", default_value = "30s", value_parser = time)]
    pub(crate) head_timeout: Duration,
    /// How long a client's connection may lie idle between requests, 1s to 1d; it is closed by
    /// twice that
    #[arg(long, value_name = "TIME", env = "SKEWTAP_IDLE_TIMEOUT", default_value = "1h", value_parser = time)]
    pub(crate) idle_timeout: Duration,
    /// Longest time to connect to a server, 100ms to 10m
    #[arg(long, value_name = "TIME", env = "SKEWTAP_CONNECT_TIMEOUT", default_value = "30s", value_parser = time)]
    pub(crate) connect_timeout: Duration,
    /// How long open exchanges may go on once the proxy is told to stop, and then records to be
    /// shipped, 0s to 10m each
    #[arg(long, value_name = "TIME", env = "SKEWTAP_DRAIN_TIMEOUT", default_value = "10s", value_parser = time)]
    pub(crate) drain_timeout: Duration,
}

impl LimitArgs {
    /// The usual settings of a proxy, with these limits.
    pub(crate) fn config(&self) -> Config {
        Config {
            max_connections: self.max_connections,
            max_head_bytes: self.max_head_bytes,
            max_streams: self.max_streams,
            max_resets: self.max_resets,
            head_timeout: self.head_timeout,
            idle_timeout: self.idle_timeout,
            connect_timeout: self.connect_timeout,
            drain_timeout: self.drain_timeout,
            ..Config::default()
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|time| Duration::try_from(time).ok())
        .ok_or_else(|| "write a time such as 30s or 500ms".to_owned())
}
