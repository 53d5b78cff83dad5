//! The clients.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::bodies::{Found, Transfer, sha256, sha256_of};
use super::hyper_client;
use super::processes::{node_packages, python, run, script};

/// A client by its name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Client {
    Curl,
    Requests,
    Httpx,
    Aiohttp,
    NodeHttp,
    NodeFetch,
    /// Node's fetch that opens a tunnel whatever it asks for.
    NodeTunnelledFetch,
    Hyper,
    /// The library websockets, which opens tunnels.
    WebSockets,
    /// WebSocket by aiohttp, which asks for the whole URL where it is not under TLS.
    AiohttpWebSocket,
    Grpcio,
}

impl Client {
    /// All that speak HTTP.
    pub(super) const HTTP: [Self; 7] = [
        Self::Curl,
        Self::Requests,
        Self::Httpx,
        Self::Aiohttp,
        Self::NodeHttp,
        Self::NodeFetch,
        Self::Hyper,
    ];

    /// All that speak WebSocket.
    pub(super) const WEBSOCKET: [Self; 2] = [Self::WebSockets, Self::AiohttpWebSocket];

    /// Makes the transfers, one after the other: what came of each.
    pub(super) fn transfer(self, way: &Way, all: &[Transfer]) -> Result<Vec<Found>, String> {
        let scripted = |words: &[&str]| {
            let plan: Vec<_> = all.iter().map(Transfer::plan).collect();
            let plan = json!({"proxy": way.proxy, "roots": way.roots, "transfers": plan});
            let printed = run(words, plan.to_string().as_bytes())?;
            serde_json::from_slice(&printed).map_err(|error| error.to_string())
        };
        let (python, script) = (python(), |name: &str| script(&format!("clients/{name}")));
        let node = |library| {
            let packages = node_packages();
            scripted(&["node", &script("transfer.mjs"), library, &packages])
        };
        match self {
            Self::Curl => all.iter().map(|transfer| curl(way, transfer)).collect(),
            Self::Requests => scripted(&[&python, &script("transfer.py"), "requests"]),
            Self::Httpx => scripted(&[&python, &script("transfer.py"), "httpx"]),
            Self::Aiohttp => scripted(&[&python, &script("transfer.py"), "aiohttp"]),
            Self::NodeHttp => node("http"),
            Self::NodeFetch => node("fetch"),
            Self::NodeTunnelledFetch => node("tunnelled-fetch"),
            Self::Hyper => hyper_client::transfer(way, all),
            Self::WebSockets => scripted(&[&python, &script("websocket.py"), "websockets"]),
            Self::AiohttpWebSocket => scripted(&[&python, &script("websocket.py"), "aiohttp"]),
            Self::Grpcio => scripted(&[&python, &script("grpc_echo.py")]),
        }
    }
}

/// How the clients get to the servers.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// The forward proxy, if it is one.
    pub(super) proxy: Option<String>,
    /// Whom to trust, if it is under TLS.
    pub(super) roots: Option<PathBuf>,
}

fn curl(way: &Way, transfer: &Transfer) -> Result<Found, String> {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("body");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let mut words = vec![String::from("curl"), String::from("--silent")];
    words.extend(["--show-error", "--write-out", "%{http_code}"].map(String::from));
    words.extend([String::from("--output"), text(&output)]);
    if let Some(proxy) = &way.proxy {
        words.extend([String::from("--proxy"), proxy.clone()]);
    }
    if let Some(roots) = &way.roots {
        words.extend([String::from("--cacert"), text(roots)]);
    }
    if let Some(file) = &transfer.file {
        words.extend([String::from("--upload-file"), text(file)]);
    }
    if transfer.chunked {
        words.extend(["--header", "Transfer-Encoding: chunked"].map(String::from));
    }
    words.push(transfer.url.clone());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let printed = String::from_utf8(run(&words, b"")?).unwrap();
    let sha256 = if output.exists() {
        sha256_of(&output)
    } else {
        sha256(b"")
    };
    let status = printed.parse().map_err(|_| printed)?;
    Ok(Found { status, sha256 })
}
