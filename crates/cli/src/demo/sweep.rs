//! The requests of the demo: every server delay with each kind of client.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::ProgressBar;
use tokio::task::JoinSet;
use tokio::time::sleep;
use url::Url;

use super::child::Program;
use super::client_report::ClientReport;
use crate::args::Behaviour;

/// The server delays, in milliseconds, longest first so that all end soon. The blind client
/// does not watch its socket from 1 to 2 s and from 3 to 4 s: six of these fall in there, all of
/// them far enough from an edge that a busy machine does not push them over it.
const DELAYS_MS: [u64; 10] = [3750, 3500, 3250, 2600, 2250, 1750, 1500, 1250, 600, 300];

/// Time between the starts of two clients, so that starting them does not look like a gap.
const STAGGER: Duration = Duration::from_millis(60);

/// How many requests there are.
pub(super) const REQUESTS: usize = 2 * DELAYS_MS.len();

/// Sends them all, each in a process of its own, and returns what the clients say, in the order
/// of behaviour and delay.
///
/// # Errors
/// A client failed.
pub(super) async fn run(
    program: &Program,
    server: SocketAddr,
    otlp: &Url,
    progress: &ProgressBar,
) -> anyhow::Result<Vec<ClientReport>> {
    let mut clients = JoinSet::new();
    for delay_ms in DELAYS_MS {
        for behaviour in [Behaviour::Healthy, Behaviour::BlindSleep] {
            let client = Client {
                program: program.clone(),
                server,
                otlp: otlp.clone(),
                behaviour,
                delay_ms,
            };
            clients.spawn(client.run());
            sleep(STAGGER).await;
        }
    }
    let mut reports = Vec::with_capacity(REQUESTS);
    while let Some(ended) = clients.join_next().await {
        reports.push(ended??);
        progress.inc(1);
    }
    reports.sort_by(|a, b| {
        let key = |report: &ClientReport| report.behaviour == Behaviour::Healthy;
        key(a)
            .cmp(&key(b))
            .then(a.delay_seconds.total_cmp(&b.delay_seconds))
    });
    Ok(reports)
}

struct Client {
    program: Program,
    server: SocketAddr,
    otlp: Url,
    behaviour: Behaviour,
    delay_ms: u64,
}

impl Client {
    async fn run(self) -> anyhow::Result<ClientReport> {
        let who = format!("{} client at {} ms", self.behaviour.name(), self.delay_ms);
        let output = self
            .program
            .command("demo-client")
            .args(["--behaviour", self.behaviour.name()])
            .args(["--server", &self.server.to_string()])
            .args(["--delay-ms", &self.delay_ms.to_string()])
            .args(["--otlp", self.otlp.as_str()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .await
            .with_context(|| format!("cannot run the {who}"))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            anyhow::bail!("the {who} failed ({}): {}", output.status, words.trim());
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the {who} does not say what it measured"))
    }
}
