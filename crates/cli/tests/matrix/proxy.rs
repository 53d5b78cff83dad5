//! The proxy between them.

use std::net::SocketAddr;
use std::process::Command;

use super::processes::{Process, get};

/// A running `skewtap proxy`.
pub(super) struct Proxy {
    _process: Process,
    traffic: SocketAddr,
    admin: SocketAddr,
}

impl Proxy {
    pub(super) fn start(flags: &[&str]) -> Self {
        let (process, line) = Process::start(
            Command::new(env!("CARGO_BIN_EXE_skewtap"))
                .args(["proxy", "--no-records", "--no-capture"])
                .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
                .args(flags)
                .env("OTEL_SDK_DISABLED", "true"),
        );
        let address = |name: &str| {
            let mut pairs = line.split_whitespace();
            let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            let value = value.unwrap_or_else(|| panic!("no {name} in {line:?}"));
            value.parse().unwrap()
        };
        Self {
            _process: process,
            traffic: address("traffic"),
            admin: address("admin"),
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.traffic)
    }

    /// How many exchanges ended in each way.
    pub(super) fn outcomes(&self) -> Vec<(String, u32)> {
        let text = get(self.admin, "/metrics");
        let counts = text.lines().filter_map(|line| {
            let rest = line.strip_prefix("skewtap_proxy_exchanges_total{outcome=\"")?;
            let (outcome, count) = rest.split_once("\"} ")?;
            Some((outcome.to_owned(), count.parse().unwrap()))
        });
        counts.filter(|(_, count)| *count > 0).collect()
    }
}
