//! Flags that say who may send to the collector.

use std::path::PathBuf;

use clap::Args;

/// Who may send.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Senders of OTLP")]
pub(crate) struct SenderArgs {
    /// Speak TLS on both OTLP ports, with this certificate in PEM and those that lead to its
    /// authority
    #[arg(
        long,
        value_name = "FILE",
        env = "SKEWTAP_OTLP_TLS_CERT",
        requires = "otlp_tls_key"
    )]
    pub(crate) otlp_tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "SKEWTAP_OTLP_TLS_KEY",
        requires = "otlp_tls_cert"
    )]
    pub(crate) otlp_tls_key: Option<PathBuf>,
    /// Let in only senders with a certificate from one of these authorities, in PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "SKEWTAP_OTLP_CLIENT_CA",
        requires = "otlp_tls_cert"
    )]
    pub(crate) otlp_client_ca: Option<PathBuf>,
    /// Let in only senders with the header `authorization: Bearer TOKEN`, for a token of this
    /// file, which has one on each line
    #[arg(long, value_name = "FILE", env = "SKEWTAP_OTLP_TOKEN_FILE")]
    pub(crate) otlp_token_file: Option<PathBuf>,
}
