//! What a `[[proxy.route]]` of the configuration file can set, in the form of flags.

use std::path::PathBuf;

use clap::Args;
use skewtap_proxy::config::Route;
use url::Url;

use super::tls::identity;
use crate::args::endpoint::server_origin;

/// One route.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct RouteArgs {
    /// The host asked for, without a port: a name or an address, or `*.name` for all names below
    /// one [default: all]
    #[arg(long, value_name = "HOST", value_parser = host)]
    pub(crate) host: Option<String>,
    /// What the path begins with, in whole segments: `/api` stands for `/api` and all below
    /// `/api/` [default: all]
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub(crate) path: Option<String>,
    /// The server to forward to, as for the proxy; needed
    #[arg(long, value_name = "URL", required = true, value_parser = server_origin)]
    pub(crate) upstream: Url,
    /// Trust this server with a certificate from these authorities (PEM), besides the system's
    /// [default: as for the proxy]
    #[arg(long, value_name = "FILE")]
    pub(crate) upstream_ca: Option<PathBuf>,
    /// Show this certificate (PEM) to this server [default: as for the proxy]
    #[arg(long, value_name = "FILE", requires = "upstream_key")]
    pub(crate) upstream_cert: Option<PathBuf>,
    /// Its private key in PEM
    #[arg(long, value_name = "FILE", requires = "upstream_cert")]
    pub(crate) upstream_key: Option<PathBuf>,
}

impl RouteArgs {
    /// What the proxy is told.
    pub(crate) fn route(&self) -> Route {
        Route {
            host: self.host.clone(),
            path: self.path.clone(),
            upstream: self.upstream.clone(),
            upstream_ca: self.upstream_ca.clone(),
            upstream_identity: identity(self.upstream_cert.as_ref(), self.upstream_key.as_ref()),
        }
    }
}

fn host(text: &str) -> Result<String, String> {
    checked(text, Route::host_fault(text))
}

fn path(text: &str) -> Result<String, String> {
    checked(text, Route::path_fault(text))
}

fn checked(text: &str, fault: Option<&str>) -> Result<String, String> {
    fault.map_or(Ok(text.to_owned()), |fault| Err(fault.to_owned()))
}
