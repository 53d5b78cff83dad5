//! Flags for TLS towards clients and servers.

use std::path::PathBuf;

use clap::Args;
use skewtap_proxy::config::Intercept;
use skewtap_proxy::tls::{Identity, TlsSettings};

use crate::args::ca::CaFolder;

/// TLS on either side.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Speak TLS to clients, with this certificate in PEM and those that lead to its authority
    #[arg(
        long,
        value_name = "FILE",
        env = "SKEWTAP_TLS_CERT",
        requires = "tls_key"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "SKEWTAP_TLS_KEY",
        requires = "tls_cert"
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// Trust servers with a certificate from these authorities (PEM), besides the system's
    #[arg(long, value_name = "FILE", env = "SKEWTAP_UPSTREAM_CA")]
    pub(crate) upstream_ca: Option<PathBuf>,
    /// Show this certificate (PEM) to servers that ask for one
    #[arg(
        long,
        value_name = "FILE",
        env = "SKEWTAP_UPSTREAM_CERT",
        requires = "upstream_key"
    )]
    pub(crate) upstream_cert: Option<PathBuf>,
    /// Its private key in PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "SKEWTAP_UPSTREAM_KEY",
        requires = "upstream_cert"
    )]
    pub(crate) upstream_key: Option<PathBuf>,
    /// Look inside tunnels to this host, or to all below it when written as *.host; can be given
    /// several times. Clients must trust the authority that `skewtap ca init` makes
    #[arg(
        long,
        value_name = "HOST",
        env = "SKEWTAP_INTERCEPT",
        value_delimiter = ','
    )]
    pub(crate) intercept: Vec<String>,
    #[command(flatten)]
    pub(crate) authority: CaFolder,
}

impl TlsArgs {
    /// What the proxy is told of certificates.
    pub(crate) fn settings(&self) -> TlsSettings {
        TlsSettings {
            server: identity(self.tls_cert.as_ref(), self.tls_key.as_ref()),
            upstream_ca: self.upstream_ca.clone(),
            upstream_identity: identity(self.upstream_cert.as_ref(), self.upstream_key.as_ref()),
        }
    }

    /// Which tunnels are opened up.
    ///
    /// # Errors
    /// The folder of the authority is not known.
    pub(crate) fn interception(&self) -> anyhow::Result<Option<Intercept>> {
        if self.intercept.is_empty() {
            return Ok(None);
        }
        Ok(Some(Intercept {
            hosts: self.intercept.clone(),
            authority: self.authority.path()?,
        }))
    }
}

pub(super) fn identity(certificates: Option<&PathBuf>, key: Option<&PathBuf>) -> Option<Identity> {
    Some(Identity {
        certificates: certificates?.clone(),
        key: key?.clone(),
    })
}
