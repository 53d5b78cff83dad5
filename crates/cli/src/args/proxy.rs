//! Flags of `skewtap proxy`.

mod limits;
mod route;
mod tls;
mod upstream_http;

use std::env;
use std::net::SocketAddr;

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args};
use url::Url;

use self::limits::LimitArgs;
pub(crate) use self::route::RouteArgs;
use self::tls::TlsArgs;
use self::upstream_http::HttpArg;
use super::endpoint::{http_origin, server_origin};
use crate::failure::Exit;

const DEFAULT_OTLP: &str = "http://127.0.0.1:4317";

const NOTES: &str = "\
Examples:
  skewtap proxy --upstream http://127.0.0.1:9000
      then send to http://127.0.0.1:8080 what went to http://127.0.0.1:9000
  skewtap proxy --upstream unix:/run/server.sock
      the server listens on a Unix socket
  skewtap proxy
      forward proxy: http_proxy=http://127.0.0.1:8080 your-client
  skewtap proxy --intercept api.example.com
      looks inside TLS to that host, see skewtap ca --help:
      https_proxy=http://127.0.0.1:8080 your-client
  skewtap proxy --listen 127.0.0.1:0
      any free port; the first line of standard output says which:
      listening traffic=127.0.0.1:40163

Several servers by host or path: [[proxy.route]] in a configuration file, see docs/configuration.md.
SIGHUP takes on the configuration file and all certificates anew: for new connections, while those
there are go on as before. What is wrong with the file is logged, and nothing changes then.

Packets need CAP_NET_RAW (as root, or once: setcap cap_net_raw+ep PATH-TO-skewtap); process
samples need the right to trace the client. What is not permitted is said at the start and done
without.

The proxy's own spans go where the exchanges go, as service skewtap-proxy; OTEL_SDK_DISABLED=true or
OTEL_TRACES_EXPORTER=none keeps them back, OTEL_TRACES_SAMPLER thins them, OTEL_SERVICE_NAME
renames it.";

/// Forward HTTP, stamp every exchange, and send what was seen to a collector
#[derive(Debug, Args)]
#[command(after_help = format!("{NOTES}\n\n{}", Exit::HELP))]
pub(crate) struct ProxyArgs {
    /// Where clients connect, may be given several times; port 0 takes any free one. An IPv6
    /// address for all interfaces takes IPv4 as well, unless an IPv4 address has the same port
    #[arg(
        long,
        value_name = "IP:PORT",
        env = "SKEWTAP_LISTEN",
        default_value = "127.0.0.1:8080",
        value_delimiter = ','
    )]
    pub(crate) listen: Vec<SocketAddr>,
    /// The server to forward to: http://host:port, https://host:port or unix:/path [default: none,
    /// work as a forward proxy only]
    #[arg(long, value_name = "URL", env = "SKEWTAP_UPSTREAM", value_parser = server_origin)]
    pub(crate) upstream: Option<Url>,
    /// Send each connection on to where the client meant it to go, before the kernel redirected it
    /// here (REDIRECT of iptables, redirect of nftables). What is not HTTP is carried as it is
    #[arg(
        long,
        env = "SKEWTAP_TRANSPARENT",
        action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new(),
        conflicts_with_all = ["upstream", "tls_cert"]
    )]
    pub(crate) transparent: bool,
    /// The version of HTTP spoken to servers
    #[arg(
        long,
        value_name = "VERSION",
        env = "SKEWTAP_UPSTREAM_HTTP",
        value_enum,
        default_value_t = HttpArg::Auto
    )]
    pub(crate) upstream_http: HttpArg,
    /// The collector, OTLP over gRPC [default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, else
    /// OTEL_EXPORTER_OTLP_ENDPOINT, else http://127.0.0.1:4317]
    #[arg(long, value_name = "URL", env = "SKEWTAP_OTLP", value_parser = http_origin)]
    pub(crate) otlp: Option<Url>,
    /// Where /healthz and /metrics are answered [default: nowhere]
    #[arg(long, value_name = "IP:PORT", env = "SKEWTAP_ADMIN")]
    pub(crate) admin: Option<SocketAddr>,
    /// Threads that forward; each takes connections by itself
    #[arg(
        long,
        value_name = "NUMBER",
        env = "SKEWTAP_WORKERS",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub(crate) workers: u16,
    /// Do not capture packets
    #[arg(
        long,
        env = "SKEWTAP_NO_CAPTURE",
        action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new()
    )]
    pub(crate) no_capture: bool,
    /// Do not look at the receive queues of clients and servers on this machine
    #[arg(
        long,
        env = "SKEWTAP_NO_QUEUES",
        action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new()
    )]
    pub(crate) no_queues: bool,
    /// Do not look at what a client's or server's process does while bytes lie unread
    #[arg(
        long,
        env = "SKEWTAP_NO_PROCESSES",
        action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new()
    )]
    pub(crate) no_processes: bool,
    /// From the configuration file alone.
    #[arg(skip)]
    pub(crate) routes: Vec<RouteArgs>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Do not have the kernel stamp what arrives: for measuring what that costs
    #[arg(long, hide = true)]
    pub(crate) no_stamps: bool,
    /// Ship no records: for measuring what that costs
    #[arg(long, hide = true)]
    pub(crate) no_records: bool,
    /// End when standard input reaches its end: for a program that starts this one
    #[arg(long, hide = true)]
    pub(crate) end_with_stdin: bool,
}

impl ProxyArgs {
    /// The collector: the flag, else what OpenTelemetry's variables say, else the usual port here.
    ///
    /// # Errors
    /// What is wrong with the variables, in words.
    pub(crate) fn otlp(&self) -> anyhow::Result<Url> {
        if let Some(url) = &self.otlp {
            return Ok(url.clone());
        }
        otlp_from_environment(|name| env::var(name).ok())
    }
}

fn otlp_from_environment(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Url> {
    let set = |name: &'static str| {
        let value = variable(name).filter(|value| !value.trim().is_empty())?;
        Some((name, value.trim().to_owned()))
    };
    let either = |of_traces, of_all| set(of_traces).or_else(|| set(of_all));
    let Some((name, endpoint)) = either(
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ) else {
        return Ok(Url::parse(DEFAULT_OTLP)?);
    };
    let protocol = either(
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    );
    match protocol {
        Some((by, protocol)) if protocol != "grpc" => anyhow::bail!(
            "cannot send to {endpoint} ({name}): {by} is {protocol}, and the proxy speaks grpc only"
        ),
        Some(_) | None => {
            http_origin(&endpoint).map_err(|why| anyhow::anyhow!("{name} is {endpoint}: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> anyhow::Result<String> {
        otlp_from_environment(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
        .map(|url| url.to_string())
    }

    #[test]
    fn the_variable_for_traces_goes_before_the_general_one() {
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:4317");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4317");
        assert_eq!(with(&[]).unwrap(), "http://127.0.0.1:4317/");
        assert_eq!(with(&[general]).unwrap(), "http://general:4317/");
        assert_eq!(with(&[general, traces]).unwrap(), "http://traces:4317/");
        let empty = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", " ");
        assert_eq!(with(&[general, empty]).unwrap(), "http://general:4317/");
    }

    #[test]
    fn a_protocol_the_proxy_does_not_speak_is_refused() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://here:4318");
        let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        let http = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        assert!(with(&[endpoint, grpc]).is_ok());
        let why = with(&[endpoint, http]).unwrap_err().to_string();
        assert!(why.contains("OTEL_EXPORTER_OTLP_PROTOCOL"), "{why}");
    }

    #[test]
    fn a_bad_endpoint_names_its_variable() {
        let why = with(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "here:x")]).unwrap_err();
        assert!(why.to_string().contains("OTEL_EXPORTER_OTLP_ENDPOINT"));
    }
}
