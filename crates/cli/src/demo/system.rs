//! Everything between the demo's clients and its verdicts: collector, server and proxy.

use std::net::SocketAddr;

use anyhow::Context as _;
use tempfile::TempDir;
use url::Url;

use super::child::{Part, Program};

/// The parts at work, on free ports of the loopback address.
pub(super) struct System {
    /// Where clients send their requests.
    pub(super) proxy: SocketAddr,
    /// Where clients send their spans.
    pub(super) otlp: Url,
    /// Where the page and the API are.
    pub(super) http: SocketAddr,
    /// In the order they are ended: whoever sends to another goes first.
    parts: Vec<Part>,
    store: TempDir,
}

impl System {
    /// Starts the parts, one after the other.
    ///
    /// # Errors
    /// A part did not start, or there is no place for a temporary store.
    pub(super) async fn start(program: &Program) -> anyhow::Result<Self> {
        let store = tempfile::Builder::new()
            .prefix("skewtap-demo-")
            .tempdir()
            .context("cannot make a temporary directory")?;
        let any_port = "127.0.0.1:0";

        let mut arguments = vec!["--otlp-grpc", any_port, "--otlp-http", any_port];
        arguments.extend(["--http", any_port, "--store"]);
        let mut arguments: Vec<_> = arguments.into_iter().map(String::from).collect();
        arguments.push(store.path().to_string_lossy().into_owned());
        let collector = Part::start(program, "collector", arguments).await?;
        let otlp = origin_url(collector.address("otlp_grpc")?)?;

        let origin = Part::start(program, "demo-origin", ["--otlp", otlp.as_str()]).await?;
        let upstream = origin_url(origin.address("traffic")?)?;

        let mut arguments = vec!["--listen", any_port, "--upstream", upstream.as_str()];
        arguments.extend(["--otlp", otlp.as_str()]);
        let proxy = Part::start(program, "proxy", arguments).await?;

        Ok(Self {
            proxy: proxy.address("traffic")?,
            otlp,
            http: collector.address("http")?,
            parts: vec![proxy, origin, collector],
            store,
        })
    }

    /// Ends the parts and removes the store.
    ///
    /// # Errors
    /// The store could not be removed.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        for part in self.parts {
            part.end().await;
        }
        self.store
            .close()
            .context("cannot remove the demo's temporary store")
    }
}

fn origin_url(address: SocketAddr) -> anyhow::Result<Url> {
    Ok(Url::parse(&format!("http://{address}"))?)
}
