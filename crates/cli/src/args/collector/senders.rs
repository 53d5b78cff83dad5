//! Flags that say who may send to the collector.

use std::path::PathBuf;

use clap::Args;

/// Who may send.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Senders of OTLP")]
pub(crate) struct SenderArgs {
    /// Speak TLS on both OTLP ports, with this certificate in PEM and those that lead to its
    /// authority
    #[arg(long, value_name = "FILE", env = "SKEWTAP_OTLP_TLS_CERT")]
    pub(crate) otlp_tls_cert: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE", env = "SKEWTAP_OTLP_TLS_KEY")]
    pub(crate) otlp_tls_key: Option<PathBuf>,
    /// Let in only senders with a certificate from one of these authorities, in PEM
    #[arg(long, value_name = "FILE", env = "SKEWTAP_OTLP_CLIENT_CA")]
    pub(crate) otlp_client_ca: Option<PathBuf>,
    /// Let in only senders with the header `authorization: Bearer TOKEN`, for a token of this
    /// file, which has one on each line
    #[arg(long, value_name = "FILE", env = "SKEWTAP_OTLP_TOKEN_FILE")]
    pub(crate) otlp_token_file: Option<PathBuf>,
}

impl SenderArgs {
    /// Makes sure that no sender is let in by a flag that was left out, from wherever the others
    /// were set.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match (
            &self.otlp_tls_cert,
            &self.otlp_tls_key,
            &self.otlp_client_ca,
        ) {
            (Some(_), None, _) => Err("--otlp-tls-cert needs --otlp-tls-key beside it"),
            (None, Some(_), _) => Err("--otlp-tls-key needs --otlp-tls-cert beside it"),
            (None, None, Some(_)) => {
                Err("--otlp-client-ca needs --otlp-tls-cert and --otlp-tls-key beside it")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_tls_is_refused() {
        let path = || Some(PathBuf::from("file.pem"));
        let plain = SenderArgs::default();
        let whole = SenderArgs {
            otlp_tls_cert: path(),
            otlp_tls_key: path(),
            ..plain.clone()
        };
        assert!(plain.check().is_ok() && whole.check().is_ok());
        for half in [
            SenderArgs {
                otlp_tls_key: None,
                ..whole.clone()
            },
            SenderArgs {
                otlp_tls_cert: None,
                ..whole.clone()
            },
            SenderArgs {
                otlp_client_ca: path(),
                ..plain.clone()
            },
        ] {
            assert!(half.check().is_err(), "{half:?}");
        }
    }
}
