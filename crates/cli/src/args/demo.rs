//! Flags of `skewtap demo` and of the programs it starts.

use std::net::SocketAddr;

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, ValueEnum};
use url::Url;

use super::endpoint::http_origin;
use crate::failure::Exit;

const NOTES: &str = "\
Examples:
  skewtap demo                       the table and a summary
  skewtap demo --keep                then look at the page
  skewtap demo --json | jq '.exchanges[] | select(.flagged)'

It uses free ports of the loopback address and a temporary store, and leaves nothing behind.";

/// Plant gaps between a client and a server, and see them found
///
/// Starts a collector, a proxy, a server and twenty clients. Half of the clients wait for their
/// response as libcurl 7.61 does: a second with an eye on the socket, a second without.
#[derive(Debug, Args)]
#[command(after_help = format!("{NOTES}\n\n{}", Exit::HELP))]
pub(crate) struct DemoArgs {
    /// Print one JSON document instead of the table
    #[arg(
        long,
        env = "SKEWTAP_DEMO_JSON",
        action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new()
    )]
    pub(crate) json: bool,
    /// Leave everything running afterwards, until Ctrl-C, and say where the page is
    #[arg(
        long,
        env = "SKEWTAP_DEMO_KEEP",
        action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new()
    )]
    pub(crate) keep: bool,
}

/// Serve the demo's requests: answer each after the delay it asks for
#[derive(Debug, Args)]
pub(crate) struct DemoOriginArgs {
    /// Where to listen
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Where server spans go, OTLP over gRPC
    #[arg(long, value_name = "URL", value_parser = http_origin)]
    pub(crate) otlp: Url,
    /// End when standard input reaches its end
    #[arg(long)]
    pub(crate) end_with_stdin: bool,
}

/// Send one request, report a client span, and print what was measured as JSON
#[derive(Debug, Args)]
pub(crate) struct DemoClientArgs {
    /// How to wait for the response
    #[arg(long)]
    pub(crate) behaviour: Behaviour,
    /// Whom to ask
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) server: SocketAddr,
    /// The delay to ask the server for, in milliseconds
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) delay_ms: u64,
    /// Where the client span goes, OTLP over gRPC
    #[arg(long, value_name = "URL", value_parser = http_origin)]
    pub(crate) otlp: Url,
}

/// How a client of the demo waits for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Behaviour {
    /// Watches its socket all the time
    Healthy,
    /// Watches it for a second, sleeps for a second without, and so on
    BlindSleep,
}

impl Behaviour {
    /// The name used on the command line, in `service.name` and in the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::BlindSleep => "blind-sleep",
        }
    }
}
