//! What the collector is told at the start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use skewtap_core::policy::Policy;

use url::Url;

use crate::export::ExportConfig;
use crate::matcher::MatcherLimits;
use crate::receive::tls::TlsFiles;
use crate::store::retention::Retention;
use crate::webhook::WebhookConfig;

/// Where to listen, where to store, and every limit. [`Config::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where OTLP over gRPC is received; `127.0.0.1:4317` by default. Port 0 takes a free one.
    pub otlp_grpc: SocketAddr,
    /// Where OTLP over HTTP is received; `127.0.0.1:4318` by default. Port 0 takes a free one.
    pub otlp_http: SocketAddr,
    /// Where pages, API and metrics are served; `127.0.0.1:4390` by default. Port 0 takes a free one.
    pub http: SocketAddr,
    /// TLS on both OTLP ports; plain text by default.
    pub otlp_tls: Option<TlsFiles>,
    /// A file with the tokens that senders of OTLP must name one of, one a line; by default
    /// everybody may send.
    pub otlp_token_file: Option<PathBuf>,
    /// Where all spans are sent on to; nowhere by default.
    pub export: Option<ExportConfig>,
    /// Whom to tell of flagged verdicts; nobody by default.
    pub webhook: Option<WebhookConfig>,
    /// The address at which others reach the pages, for links; by default the one they are
    /// served on.
    pub pages_url: Option<Url>,
    /// The directory of the store; made if it is not there.
    pub store: PathBuf,
    /// The thresholds of the audit.
    pub policy: Policy,
    /// How long to wait for what belongs together, and how much to hold.
    pub matcher: MatcherLimits,
    /// How long and how much to keep.
    pub retention: Retention,
    /// Bytes of received batches that may be on disk without being settled; at least 16 MiB,
    /// 1 GiB by default. At four fifths of it the oldest are settled early, at all of it
    /// batches are refused with an answer that asks to send them again.
    pub most_log_bytes: u64,
    /// Bytes of one request as it is sent; 4 MiB by default.
    pub most_request_bytes: usize,
    /// Bytes of one request once decompressed; 16 MiB by default.
    pub most_decompressed_bytes: usize,
    /// Combinations of client, server and route that metrics tell apart; 1 to 10,000, 200 by
    /// default. Further ones are counted together under `other`.
    pub most_edges: usize,
}

impl Config {
    /// The defaults, with the store in `store`.
    #[must_use]
    pub fn new(store: PathBuf) -> Self {
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            otlp_grpc: loopback(4317),
            otlp_http: loopback(4318),
            http: loopback(4390),
            otlp_tls: None,
            otlp_token_file: None,
            export: None,
            webhook: None,
            pages_url: None,
            store,
            policy: Policy::default(),
            matcher: MatcherLimits::default(),
            retention: Retention::default(),
            most_log_bytes: 1 << 30,
            most_request_bytes: 4 << 20,
            most_decompressed_bytes: 16 << 20,
            most_edges: 200,
        }
    }
}
