//! The flag for the version of HTTP spoken to servers.

use clap::ValueEnum;
use skewtap_proxy::config::UpstreamHttp;

/// A version, or whose choice it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HttpArg {
    /// The client's; a server with TLS may choose a lower one
    Auto,
    /// HTTP/1.1
    #[value(name = "1")]
    One,
    /// HTTP/2; without TLS by prior knowledge
    #[value(name = "2")]
    Two,
}

impl From<HttpArg> for UpstreamHttp {
    fn from(version: HttpArg) -> Self {
        match version {
            HttpArg::Auto => Self::Auto,
            HttpArg::One => Self::Http1,
            HttpArg::Two => Self::Http2,
        }
    }
}
