//! The command line. Every flag can also be set by the variable its help names.

pub(crate) mod ca;
mod collector;
mod config;
mod demo;
mod endpoint;
mod keeping;
mod proxy;
mod run;

use std::path::PathBuf;

use clap::{Args as ArgGroup, Parser, Subcommand, ValueEnum};

pub(crate) use ca::{CaAction, CaArgs};
pub(crate) use collector::{CollectorArgs, ExportFormat, MessageFormat, OnwardArgs, SenderArgs};
pub(crate) use config::{ConfigAction, ConfigArgs};
pub(crate) use demo::{Behaviour, DemoArgs, DemoClientArgs, DemoOriginArgs};
pub(crate) use proxy::{ProxyArgs, RouteArgs};
pub(crate) use run::{FailOn, JsonTarget, Map, RunArgs};

use crate::failure::Exit;

const EXAMPLES: &str = "\
Examples:
  skewtap demo                                      see it find planted gaps, in about ten seconds
  skewtap run -- curl http://example.com/           run a client, see where each request's time went
  skewtap collector --store ./skewtap-store         receive spans, show verdicts
  skewtap proxy --upstream http://127.0.0.1:9000    stand before a server";

/// Says where the time between a client's span and a server's span went.
///
/// A proxy stamps requests on the wire, a collector matches them with the OpenTelemetry
/// spans of both sides, and the verdict says where the difference went, and why where
/// there is evidence.
#[derive(Debug, Parser)]
#[command(name = "skewtap", version, max_term_width = 100)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", Exit::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    /// A TOML file with settings; flags and variables go before it
    #[arg(long, global = true, value_name = "FILE", env = "SKEWTAP_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program writes about itself to standard error.
#[derive(Clone, Debug, ArgGroup)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArgs {
    /// What to log: a level (error, warn, info, debug, trace) or directives such as
    /// `warn,skewtap_proxy=debug` [default: RUST_LOG, else info; warn for the demo; error
    /// for run, where RUST_LOG is the command's]
    #[arg(long, global = true, value_name = "FILTER", env = "SKEWTAP_LOG")]
    pub(crate) log: Option<String>,
    /// How to write logs
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "SKEWTAP_LOG_FORMAT",
        default_value = "human"
    )]
    pub(crate) log_format: LogFormat,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For a person: one line each, coloured on a terminal
    Human,
    /// For a program: one JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Run(Box<RunArgs>),
    Proxy(Box<ProxyArgs>),
    Ca(CaArgs),
    Config(ConfigArgs),
    Collector(Box<CollectorArgs>),
    #[command(hide = true)]
    DemoOrigin(DemoOriginArgs),
    #[command(hide = true)]
    DemoClient(DemoClientArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_visible_flag_has_a_variable() {
        for command in Args::command().get_subcommands() {
            if command.is_hide_set() {
                continue;
            }
            let flags = command.get_arguments();
            for flag in flags.filter(|flag| !flag.is_hide_set() && !flag.is_positional()) {
                let name = flag.get_id().as_str();
                if name == "help" || flag.is_positional() {
                    continue;
                }
                let variable = flag.get_env().and_then(|name| name.to_str());
                assert!(
                    variable.is_some_and(|name| name.starts_with("SKEWTAP_")),
                    "{} --{name}",
                    command.get_name()
                );
            }
        }
    }
}
