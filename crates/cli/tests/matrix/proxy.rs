//! The proxy between them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::processes::{Process, get};

/// A running `skewtap proxy`.
pub(super) struct Proxy {
    _process: Process,
    /// With the authority, if it has one.
    _folder: Option<TempDir>,
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
            _folder: None,
            traffic: address("traffic"),
            admin: address("admin"),
        }
    }

    /// Starts one that looks inside of tunnels to `localhost`, and that trusts servers by `trusted`;
    /// gives whom clients must trust.
    pub(super) fn intercepting(trusted: &Path) -> (Self, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca");
        let ca_dir = ["--ca-dir", ca.to_str().unwrap()];
        let authority = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_skewtap"));
            let output = command.arg("ca").args(ca_dir).args(words).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        authority(&["init"]);
        let roots = PathBuf::from(authority(&["show", "--path"]).trim());
        let trusted = ["--upstream-ca", trusted.to_str().unwrap()];
        let flags = [["--intercept", "localhost"], ca_dir, trusted].concat();
        let proxy = Self::start(&flags);
        let proxy = Self {
            _folder: Some(folder),
            ..proxy
        };
        (proxy, roots)
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
