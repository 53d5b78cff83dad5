//! Flags that say where the collector sends what it has.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hyper::header::{HeaderName, HeaderValue};
use jiff::SignedDuration;
use url::Url;

/// Where spans and findings go.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sending on")]
pub(crate) struct OnwardArgs {
    /// Send every span on to this OTLP backend as it came, and add the wire, the dwell and the
    /// verdict to each trace
    #[arg(long, value_name = "URL", env = "SKEWTAP_EXPORT_OTLP")]
    pub(crate) export_otlp: Option<Url>,
    /// How to speak to it [default: http for port 4318 or an address with a path, else grpc]
    #[arg(long, value_name = "PROTOCOL", env = "SKEWTAP_EXPORT_PROTOCOL")]
    pub(crate) export_protocol: Option<ExportFormat>,
    /// A header for it, such as its key; may be given several times, in the variable with
    /// commas between
    #[arg(
        long,
        value_name = "NAME=VALUE",
        env = "SKEWTAP_EXPORT_HEADER",
        hide_env_values = true,
        value_delimiter = ',',
        value_parser = header
    )]
    pub(crate) export_header: Vec<(HeaderName, HeaderValue)>,
    /// Trust it by these authorities, in PEM, rather than by those of the system
    #[arg(long, value_name = "FILE", env = "SKEWTAP_EXPORT_CA")]
    pub(crate) export_ca: Option<PathBuf>,
    /// Push the collector's own metrics to it as well, once a minute
    #[arg(long, env = "SKEWTAP_EXPORT_METRICS")]
    pub(crate) export_metrics: bool,
    /// Send spans on and add none
    #[arg(long, env = "SKEWTAP_NO_WRITE_BACK")]
    pub(crate) no_write_back: bool,
    /// Post a message about flagged exchanges here, by edge and cause
    #[arg(
        long,
        value_name = "URL",
        env = "SKEWTAP_WEBHOOK",
        hide_env_values = true
    )]
    pub(crate) webhook: Option<Url>,
    /// How to write it
    #[arg(
        long,
        value_name = "FORMAT",
        env = "SKEWTAP_WEBHOOK_FORMAT",
        default_value = "json"
    )]
    pub(crate) webhook_format: MessageFormat,
    /// The least time between two messages about one edge and cause, 1s to 24h
    #[arg(
        long,
        value_name = "TIME",
        env = "SKEWTAP_WEBHOOK_EVERY",
        default_value = "5m",
        value_parser = pause
    )]
    pub(crate) webhook_every: Duration,
    /// The address at which others reach the pages, for links [default: where they are served]
    #[arg(long, value_name = "URL", env = "SKEWTAP_PAGES_URL")]
    pub(crate) pages_url: Option<Url>,
}

impl OnwardArgs {
    /// Makes sure that nothing is said of a backend that is not named, wherever it was said.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let says_more = self.export_protocol.is_some()
            || !self.export_header.is_empty()
            || self.export_ca.is_some()
            || self.export_metrics
            || self.no_write_back;
        if says_more && self.export_otlp.is_none() {
            return Err(
                "--export-protocol, --export-header, --export-ca, --export-metrics and \
                        --no-write-back need --export-otlp beside them",
            );
        }
        Ok(())
    }
}

/// How OTLP travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// gRPC
    Grpc,
    /// Protobuf over HTTP
    Http,
}

/// How messages about flagged exchanges are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// Every figure by name
    Json,
    /// A text, as Slack and what is like it take it
    Slack,
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write it as NAME=VALUE, such as x-api-key=SECRET")?;
    let name = name
        .trim()
        .parse()
        .map_err(|_| "no name of a header before the =")?;
    let mut value: HeaderValue = value
        .trim()
        .parse()
        .map_err(|_| "a value has characters that no header may have")?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn pause(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|time| Duration::try_from(time).ok())
        .filter(|time| range.contains(time))
        .ok_or_else(|| "write a time from 1s to 24h, such as 5m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_name_and_a_value() {
        let (name, value) = header("X-Api-Key = a=b").unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("x-api-key", &b"a=b"[..])
        );
        for bad in ["x-api-key", "=value", "bad name=value", "name=\u{1}"] {
            assert!(header(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pause_has_a_unit_and_a_range() {
        assert_eq!(pause("90s"), Ok(Duration::from_secs(90)));
        for bad in ["5", "0s", "25h", "-1m"] {
            assert!(pause(bad).is_err(), "{bad}");
        }
    }
}
