//! Waits for the verdicts on what a command did, and reads them.

use std::time::Duration;

use serde::Deserialize;
use skewtap_core::verdict_json::VerdictJson;
use tokio::time::{Instant, sleep};

use super::environment::SpanReceivers;
use super::outcome::unexplained_seconds;
use super::system::System;
use crate::api_client::{ApiClient, ApiError};

/// Time between two looks.
const ROUND: Duration = Duration::from_millis(25);
/// Longest wait for a command's connections to close once it has ended. What it left behind may
/// keep them open for good.
const CLOSING: Duration = Duration::from_secs(1);
/// Longest wait for the proxies to ship what has ended.
const SHIPPING: Duration = Duration::from_secs(5);
/// Time between two readings of all verdicts.
const PAUSE: Duration = Duration::from_millis(100);
/// How long after its settle time a collector has judged what came last.
const LAST_WORD: Duration = Duration::from_millis(250);
/// Longest wait for verdicts once all records are with the collector, beyond its settle time.
const JUDGING: Duration = Duration::from_secs(10);
/// Verdicts kept; of more, only those that show something, as many again.
const MOST_VERDICTS: usize = 10_000;
/// Verdicts asked for at once.
const PAGE: usize = 200;

/// What came of a command's requests.
#[derive(Debug)]
pub(super) struct Collected {
    /// The verdicts, by start.
    pub(super) verdicts: Vec<VerdictJson>,
    /// Exchanges whose verdicts show nothing and found no room.
    pub(super) left_out: u64,
    /// Exchanges on which there is no verdict here.
    pub(super) not_judged: u64,
}

/// What has been read of the API's list.
#[derive(Default)]
struct Read {
    kept: Vec<VerdictJson>,
    left_out: u64,
    /// Exchanges of all that was taken note of.
    judged: u64,
}

impl Read {
    fn take(&mut self, verdict: VerdictJson, exchanges: usize) {
        let exchanges = exchanges.try_into().unwrap_or(u64::MAX);
        let shows_something =
            verdict.flagged || !verdict.findings.is_empty() || unexplained_seconds(&verdict) > 0.0;
        let room = MOST_VERDICTS * if shows_something { 2 } else { 1 };
        if self.kept.len() < room {
            self.kept.push(verdict);
        } else if shows_something {
            return;
        } else {
            self.left_out += exchanges;
        }
        self.judged += exchanges;
    }
}

/// A page of the API's list.
#[derive(Debug, Deserialize)]
struct Page {
    exchanges: Vec<VerdictJson>,
    next_cursor: Option<String>,
}

/// Waits until all is judged that was asked through the proxies since `since_seconds` after the
/// Unix epoch, or until it has taken too long, and gives it. Ends the proxies on the way.
///
/// # Errors
/// A part does not answer or broke.
pub(super) async fn collect(
    system: &mut System,
    settle: Duration,
    since_seconds: u64,
) -> anyhow::Result<Collected> {
    let exchanges = wait_until_shipped(system).await?;
    system.end_proxies().await?;
    let began = Instant::now();
    loop {
        let looked = Instant::now();
        let mut read = read_all(&system.api, &system.asked_at, since_seconds).await?;
        let not_judged = exchanges.saturating_sub(read.judged);
        // Spans that came last, at the command's end, may still change a verdict.
        let final_word = began.elapsed() >= settle + LAST_WORD || read.kept.iter().all(is_whole);
        let given_up = began.elapsed() >= settle + JUDGING;
        if (not_judged == 0 && final_word) || given_up {
            read.kept
                .retain(|verdict| !is_export(verdict, &system.receivers));
            return Ok(Collected {
                verdicts: read.kept,
                left_out: read.left_out,
                not_judged,
            });
        }
        sleep(PAUSE.max(looked.elapsed())).await;
    }
}

/// Whether both sides have reported.
fn is_whole(verdict: &VerdictJson) -> bool {
    let missing = &verdict.quality.missing;
    !missing
        .iter()
        .any(|what| *what == "client_span" || *what == "server_span")
}

/// Whether it is about the command's exporter, which did not heed `NO_PROXY`.
fn is_export(verdict: &VerdictJson, receivers: &SpanReceivers) -> bool {
    let receivers = [receivers.grpc.authority(), receivers.http.authority()];
    receivers.contains(&verdict.authority.as_str())
}

/// Gives how many exchanges there were.
async fn wait_until_shipped(system: &System) -> anyhow::Result<u64> {
    let began = Instant::now();
    loop {
        let tally = system.tally().await?;
        let waited = began.elapsed();
        let closed = tally.open_connections == 0 || waited >= CLOSING;
        if (closed && tally.is_shipped()) || waited >= SHIPPING {
            return Ok(tally.exchanges);
        }
        sleep(ROUND).await;
    }
}

async fn read_all(
    api: &ApiClient,
    asked_at: &[String],
    since_seconds: u64,
) -> Result<Read, ApiError> {
    let mut read = Read::default();
    let first = format!("/api/v1/exchanges?since={since_seconds}&limit={PAGE}");
    let mut path = first.clone();
    while let Some(page) = api.json::<Page>(&path).await? {
        for verdict in page.exchanges {
            // A collector that is running already serves others as well.
            let ours = count_ours(&verdict, asked_at);
            if ours > 0 {
                read.take(verdict, ours);
            }
        }
        let Some(cursor) = page.next_cursor else {
            break;
        };
        path = format!("{first}&cursor={cursor}");
    }
    // The API gives the newest first.
    read.kept.sort_by_key(|verdict| {
        let started = verdict.started_unix_nano.as_deref();
        started.and_then(|ns| ns.parse::<i64>().ok())
    });
    Ok(read)
}

/// How many of a verdict's exchanges went through the proxies at `asked_at`.
fn count_ours(verdict: &VerdictJson, asked_at: &[String]) -> usize {
    let exchanges = verdict.exchanges_detail.iter();
    exchanges
        .filter(|exchange| asked_at.contains(&exchange.proxy))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::outcome::cases::verdict;

    #[test]
    fn what_shows_something_is_kept_when_the_rest_is_only_counted() {
        let mut read = Read::default();
        let (healthy, flagged) = (verdict(0.0, false), verdict(0.4, true));
        for _ in 0..MOST_VERDICTS + 3 {
            read.take(healthy.clone(), 1);
        }
        read.take(flagged, 2);
        assert_eq!(read.kept.len(), MOST_VERDICTS + 1);
        assert!(read.kept.last().unwrap().flagged);
        assert_eq!((read.left_out, read.judged), (3, MOST_VERDICTS as u64 + 5));
    }
}
