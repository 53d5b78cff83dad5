//! Flags of `skewtap ca`.

use std::env;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::failure::Exit;

const NOTES: &str = "\
Examples:
  skewtap ca init
  skewtap ca trust                              (with sudo, for the whole system)
  skewtap proxy --intercept api.example.com
      then: https_proxy=http://127.0.0.1:8080 curl https://api.example.com/
  CURL_CA_BUNDLE=\"$(skewtap ca show --path)\" curl ...
      trusts it for one command only

Whoever holds the key can pose as any host to those who trust the certificate. It is readable
for you alone; do not copy it, and do not share the certificate with others.";

/// Make, show or trust the local authority that lets the proxy look inside TLS
#[derive(Debug, Args)]
#[command(after_help = format!("{NOTES}\n\n{}", Exit::HELP))]
pub(crate) struct CaArgs {
    #[command(flatten)]
    pub(crate) folder: CaFolder,
    #[command(subcommand)]
    pub(crate) action: CaAction,
}

/// Where the authority is kept.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CaFolder {
    /// The folder of the local authority [default: skewtap below XDG_DATA_HOME, which is usually
    /// ~/.local/share]
    #[arg(long, value_name = "DIR", env = "SKEWTAP_CA_DIR")]
    pub(crate) ca_dir: Option<PathBuf>,
}

/// What to do with the authority.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum CaAction {
    /// Make one, unless there is one
    Init,
    /// Print its certificate in PEM, and how to have clients trust it
    Show {
        /// Print only where the certificate is
        #[arg(long)]
        path: bool,
    },
    /// Add its certificate to those that this system trusts
    Trust,
}

impl CaFolder {
    /// The folder.
    ///
    /// # Errors
    /// It is not given, and the user's own is not known.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        if let Some(folder) = &self.ca_dir {
            return Ok(folder.clone());
        }
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let data = set("XDG_DATA_HOME").map(PathBuf::from).or_else(|| {
            let home = set("HOME").map(PathBuf::from);
            home.map(|home| home.join(".local").join("share"))
        });
        match data {
            Some(data) => Ok(data.join("skewtap")),
            None => {
                anyhow::bail!("no HOME to keep an authority below; name a folder with --ca-dir")
            }
        }
    }
}
