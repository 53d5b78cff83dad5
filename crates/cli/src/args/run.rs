//! Flags of `skewtap run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args};
use jiff::SignedDuration;
use skewtap_core::cause;
use url::Url;

use super::endpoint::http_origin;

const NOTES: &str = "\
Examples:
  skewtap run -- curl http://127.0.0.1:9000/
      where did the time of each request go?
  skewtap run --max-unexplained 50ms --fail-on client_blind_sleep -- ./integration-tests
      a gate for CI: ends with 1 if a request shows what it must not
  skewtap run --map 8081=127.0.0.1:9000 -- ./client http://127.0.0.1:8081
      for a client that takes no notice of HTTP_PROXY
  skewtap run --intercept api.example.com -- curl https://api.example.com/
      looks inside TLS to that host, for this one command
  skewtap run --json - --quiet -- ./client | jq '.requests[].stages.server_wait'

The command gets HTTP_PROXY and its kin, NO_PROXY, and the OTEL_* variables that send its spans
here, unless they are set already; docs/run.md tells what each language makes of them.

Exit codes:
  the command's own, 128 + N if signal N ended it, except
  0    the command succeeded, and so did the gate
  1    the command succeeded, and the gate did not (--max-unexplained, --fail-on)
  2    wrong command line or environment; the command was not run
  3    proxy or collector could not start; the command was not run
  4    the command succeeded, and a gate or --json could not be served
  126  the command cannot be executed
  127  there is no such command
  130  interrupted after the command had ended";

/// Run a client, and show where the time of each of its requests went
///
/// Starts a proxy and a collector for as long as the command runs, points the command at them by
/// environment variables, and prints a breakdown to standard error at the end. Standard input and
/// output, signals and the exit code are the command's own.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct RunArgs {
    /// Listen on this port of 127.0.0.1 and send on to the server named, instead of being a
    /// forward proxy: for a client that takes no notice of HTTP_PROXY; may be given several times
    #[arg(
        long,
        value_name = "PORT=HOST:PORT",
        env = "SKEWTAP_RUN_MAP",
        value_delimiter = ','
    )]
    pub(crate) map: Vec<Map>,
    /// Hosts that the command is to reach without the proxy, as NO_PROXY has them [default: what
    /// NO_PROXY is set to, less this machine's own names]
    #[arg(long, value_name = "LIST", env = "SKEWTAP_RUN_NO_PROXY")]
    pub(crate) no_proxy: Option<String>,
    /// Look inside the command's TLS to this host, or to all below it when written as *.host; may be
    /// given several times. The command is made to trust an authority that ends with this run
    #[arg(
        long,
        value_name = "HOST",
        env = "SKEWTAP_RUN_INTERCEPT",
        value_delimiter = ',',
        conflicts_with = "map"
    )]
    pub(crate) intercept: Vec<String>,
    /// Take the authority in this folder for that, which `skewtap ca init` made [default: a new one]
    #[arg(
        long,
        value_name = "DIR",
        env = "SKEWTAP_RUN_CA_DIR",
        requires = "intercept"
    )]
    pub(crate) ca_dir: Option<PathBuf>,
    /// Trust servers whose TLS is intercepted with a certificate from these authorities (PEM),
    /// besides the system's
    #[arg(
        long,
        value_name = "FILE",
        env = "SKEWTAP_RUN_UPSTREAM_CA",
        requires = "intercept"
    )]
    pub(crate) upstream_ca: Option<PathBuf>,
    /// Write one JSON document there, after the command has ended; `-` is standard output
    #[arg(long, value_name = "FILE", env = "SKEWTAP_RUN_JSON")]
    pub(crate) json: Option<JsonTarget>,
    /// Fail if more time of any request is unexplained beyond doubt, such as 50ms
    #[arg(long, value_name = "TIME", env = "SKEWTAP_RUN_MAX_UNEXPLAINED", value_parser = time)]
    pub(crate) max_unexplained: Option<Duration>,
    /// Fail if any request shows this cause; `any` stands for all causes, `flagged` for any gap
    /// that deserves attention, explained or not; may be given several times
    #[arg(
        long,
        value_name = "CAUSE",
        env = "SKEWTAP_RUN_FAIL_ON",
        value_delimiter = ','
    )]
    pub(crate) fail_on: Vec<FailOn>,
    /// Print no breakdown; a gate that fails still says why
    #[arg(
        long,
        short,
        env = "SKEWTAP_RUN_QUIET",
        action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new()
    )]
    pub(crate) quiet: bool,
    /// Keep what was received and judged in this directory, for `skewtap collector --store` to
    /// show [default: a temporary one]
    #[arg(
        long,
        value_name = "DIR",
        env = "SKEWTAP_RUN_STORE",
        conflicts_with = "collector"
    )]
    pub(crate) store: Option<PathBuf>,
    /// How long to wait at the end for spans of either side, 100ms to 5m; many exporters hold
    /// spans back for 5s [default: 500ms; with --collector 15s, which is what a collector waits]
    #[arg(
        long,
        value_name = "TIME",
        env = "SKEWTAP_RUN_SETTLE",
        value_parser = settle_time
    )]
    pub(crate) settle: Option<Duration>,
    /// Use this collector, which is running already, by the address of its page
    #[arg(long, value_name = "URL", env = "SKEWTAP_RUN_COLLECTOR", value_parser = http_origin)]
    pub(crate) collector: Option<Url>,
    /// Where that collector takes OTLP over gRPC [default: port 4317 of its host]
    #[arg(
        long,
        value_name = "URL",
        env = "SKEWTAP_RUN_OTLP",
        value_parser = http_origin,
        requires = "collector"
    )]
    pub(crate) otlp: Option<Url>,
    /// Where that collector takes OTLP over HTTP [default: port 4318 of its host]
    #[arg(
        long,
        value_name = "URL",
        env = "SKEWTAP_RUN_OTLP_HTTP",
        value_parser = http_origin,
        requires = "collector"
    )]
    pub(crate) otlp_http: Option<Url>,
    /// The command and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// How long the collector waits for spans that are missing.
    pub(crate) fn settle(&self) -> Duration {
        let usual_ms = if self.collector.is_some() {
            15_000
        } else {
            500
        };
        self.settle.unwrap_or(Duration::from_millis(usual_ms))
    }
}

/// A port here that stands for a server elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    /// The port of 127.0.0.1.
    pub(crate) port: u16,
    /// The server.
    pub(crate) server: Url,
}

impl FromStr for Map {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "write it as PORT=HOST:PORT, such as 8081=127.0.0.1:9000".to_owned();
        let (port, server) = text.split_once('=').ok_or_else(form)?;
        let port = port.parse().ok().filter(|port| *port > 0);
        let url = if server.contains("://") {
            http_origin(server)
        } else {
            http_origin(&format!("http://{server}"))
        };
        match (port, url) {
            (Some(port), Ok(server)) => Ok(Self { port, server }),
            (None, _) => Err(form()),
            (_, Err(why)) => Err(format!("{server}: {why}")),
        }
    }
}

/// Where a document goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonTarget {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl From<OsString> for JsonTarget {
    fn from(text: OsString) -> Self {
        if text == "-" {
            Self::Stdout
        } else {
            Self::File(text.into())
        }
    }
}

/// What a request must not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailOn {
    /// This cause.
    Cause(&'static str),
    /// Any cause.
    AnyCause,
    /// A gap that deserves attention.
    Flagged,
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = cause::NAMES.iter().find(|name| **name == text);
        match (text, known) {
            ("any", _) => Ok(Self::AnyCause),
            ("flagged", _) => Ok(Self::Flagged),
            (_, Some(name)) => Ok(Self::Cause(name)),
            _ => Err(format!(
                "no such cause; there are {}, any and flagged",
                cause::NAMES.join(", ")
            )),
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|time| Duration::try_from(time).ok())
        .ok_or_else(|| "write a time such as 50ms or 1s".to_owned())
}

fn settle_time(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(100)..=Duration::from_secs(300);
    time(text)
        .ok()
        .filter(|time| range.contains(time))
        .ok_or_else(|| "write a time from 100ms to 5m, such as 6s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_names_a_port_and_a_server() {
        let map: Map = "8081=127.0.0.1:9000".parse().unwrap();
        assert_eq!(
            (map.port, map.server.as_str()),
            (8081, "http://127.0.0.1:9000/")
        );
        let map: Map = "1=http://[::1]:80".parse().unwrap();
        assert_eq!(map.server.as_str(), "http://[::1]/");
        for bad in [
            "8081",
            "x=host:1",
            "0=host:1",
            "65536=host:1",
            "1=",
            "1=ftp://x",
        ] {
            assert!(bad.parse::<Map>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_slip_in_a_cause_is_refused_with_the_names_there_are() {
        assert_eq!("any".parse(), Ok(FailOn::AnyCause));
        assert_eq!("flagged".parse(), Ok(FailOn::Flagged));
        assert_eq!(
            "client_blind_sleep".parse(),
            Ok(FailOn::Cause("client_blind_sleep"))
        );
        let why = "client_blind_slep".parse::<FailOn>().unwrap_err();
        assert!(why.contains("client_blind_sleep"), "{why}");
    }

    #[test]
    fn times_have_units() {
        assert_eq!(time("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(time("0s"), Ok(Duration::ZERO));
        for bad in ["", "50", "-1s", "soon"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        for bad in ["99ms", "6m"] {
            assert!(settle_time(bad).is_err(), "{bad}");
        }
    }
}
