//! Waits until the collector has judged what the clients sent.

use std::time::Duration;

use indicatif::ProgressBar;
use tokio::time::{Instant, sleep};

use super::client_report::ClientReport;
use super::verdict_document::VerdictDocument;
use crate::api_client::ApiClient;

/// Time between two rounds of questions.
const ROUND: Duration = Duration::from_millis(200);

/// The verdict on each report, in the same order; `None` where none came before `deadline`.
/// At the deadline a verdict that still lacks one side is taken as it is.
///
/// # Errors
/// The API fails, or answers something else.
pub(super) async fn await_verdicts(
    api: &ApiClient,
    reports: &[ClientReport],
    deadline: Instant,
    progress: &ProgressBar,
) -> anyhow::Result<Vec<Option<VerdictDocument>>> {
    let mut verdicts: Vec<Option<VerdictDocument>> = vec![None; reports.len()];
    loop {
        let mut open = 0_usize;
        for (report, verdict) in reports.iter().zip(&mut verdicts) {
            if verdict
                .as_ref()
                .is_some_and(VerdictDocument::has_both_sides)
            {
                continue;
            }
            let answer = api.exchange(&report.trace_id, &report.span_id).await?;
            if let Some(answer) = answer {
                *verdict = Some(VerdictDocument::read(answer)?);
            }
            if verdict
                .as_ref()
                .is_some_and(VerdictDocument::has_both_sides)
            {
                progress.inc(1);
            } else {
                open = open.saturating_add(1);
            }
        }
        if open == 0 || Instant::now() >= deadline {
            return Ok(verdicts);
        }
        sleep(ROUND).await;
    }
}
