//! Flags of `skewtap config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::failure::Exit;

const NOTES: &str = "\
Examples:
  skewtap config example > skewtap.toml
  skewtap config check skewtap.toml
  skewtap collector --config skewtap.toml       (or SKEWTAP_CONFIG=skewtap.toml)";

/// Check a configuration file, or write one to start from
#[derive(Debug, Args)]
#[command(after_help = format!("{NOTES}\n\n{}", Exit::HELP))]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

/// What to do with a configuration file.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Say everything that is wrong with a file, each with its line
    Check {
        /// The file [default: the one that --config or SKEWTAP_CONFIG names]
        file: Option<PathBuf>,
    },
    /// Print a file with every key and its usual value, commented out
    Example,
    /// Print the reference of all keys, in Markdown
    Reference,
}
