//! Waits for the verdicts on what a command did, and reads them.

use std::time::Duration;

use serde::Deserialize;
use skewtap_core::verdict_json::VerdictJson;
use tokio::time::{Instant, sleep};

use super::environment::SpanReceivers;
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
/// Verdicts kept; more are counted.
pub(super) const MOST_VERDICTS: usize = 10_000;
/// Verdicts asked for at once.
const PAGE: usize = 200;

/// What came of a command's requests.
#[derive(Debug)]
pub(super) struct Collected {
    /// The verdicts, by start.
    pub(super) verdicts: Vec<VerdictJson>,
    /// Exchanges on which there is no verdict here.
    pub(super) not_judged: u64,
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
        let mut verdicts = read_all(&system.api, &system.asked_at, since_seconds).await?;
        let judged: usize = verdicts
            .iter()
            .map(|verdict| count_ours(verdict, &system.asked_at))
            .sum();
        let not_judged = exchanges.saturating_sub(judged.try_into().unwrap_or(u64::MAX));
        // Spans that came last, at the command's end, may still change a verdict.
        let final_word = began.elapsed() >= settle + LAST_WORD || verdicts.iter().all(is_whole);
        let given_up = began.elapsed() >= settle + JUDGING || verdicts.len() >= MOST_VERDICTS;
        if (not_judged == 0 && final_word) || given_up {
            verdicts.retain(|verdict| !is_export(verdict, &system.receivers));
            return Ok(Collected {
                verdicts,
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
) -> Result<Vec<VerdictJson>, ApiError> {
    let mut verdicts = Vec::new();
    let first = format!("/api/v1/exchanges?since={since_seconds}&limit={PAGE}");
    let mut path = first.clone();
    while let Some(page) = api.json::<Page>(&path).await? {
        let ours = |verdict: &VerdictJson| count_ours(verdict, asked_at) > 0;
        verdicts.extend(page.exchanges.into_iter().filter(ours));
        match page.next_cursor {
            Some(cursor) if verdicts.len() < MOST_VERDICTS => {
                path = format!("{first}&cursor={cursor}");
            }
            _ => break,
        }
    }
    verdicts.truncate(MOST_VERDICTS);
    // A collector that others use as well has the newest first.
    verdicts.sort_by_key(|verdict| {
        let started = verdict.started_unix_nano.as_deref();
        started.and_then(|ns| ns.parse::<i64>().ok())
    });
    Ok(verdicts)
}

/// How many of a verdict's exchanges went through the proxies at `asked_at`.
fn count_ours(verdict: &VerdictJson, asked_at: &[String]) -> usize {
    let exchanges = verdict.exchanges_detail.iter();
    exchanges
        .filter(|exchange| asked_at.contains(&exchange.proxy))
        .count()
}
