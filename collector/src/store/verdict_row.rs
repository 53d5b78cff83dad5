//! Writing a verdict as one row.

use rusqlite::{OptionalExtension, Transaction};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::verdict::Verdict;
use skewtap_core::verdict_json::VerdictJson;

/// A verdict ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct VerdictRow {
    trace_id: TraceId,
    client_span_id: SpanId,
    evidence: i64,
    started_ns: i64,
    flagged: bool,
    client_service: Option<String>,
    server_service: Option<String>,
    route: Option<String>,
    causes: String,
    gap_ns: Option<i64>,
    unexplained_ns: Option<i64>,
    document: String,
}

impl VerdictRow {
    /// Takes what filters need out of `verdict` and writes the rest as JSON.
    ///
    /// `evidence` is how many observations and stamps it rests on; `else_started_ns` is when the
    /// exchange began where the verdict itself cannot tell.
    ///
    /// # Errors
    /// When the verdict cannot be written as JSON.
    pub(crate) fn new(
        verdict: &Verdict,
        evidence: i64,
        else_started_ns: i64,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            trace_id: verdict.trace_id,
            client_span_id: verdict.client_span_id,
            evidence,
            started_ns: verdict.started_ns.unwrap_or(else_started_ns),
            flagged: verdict.flagged,
            client_service: verdict.client_service.clone(),
            server_service: verdict.server_service.clone(),
            route: verdict.route.clone(),
            causes: causes(verdict),
            gap_ns: verdict.gap_ns(),
            unexplained_ns: verdict
                .ledger
                .as_ref()
                .map(|ledger| ledger.unexplained_ns()),
            document: serde_json::to_string(&VerdictJson::from(verdict))?,
        })
    }
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The first verdict on its client span.
    New,
    /// It replaced one that rested on less.
    Revised,
    /// The one already there rests on as much or more, so it stays.
    ///
    /// This is what keeps a restart, which judges again what the log still holds, from
    /// changing or doubling anything.
    Kept,
}

/// Writes `row` unless the store holds a verdict on the same span that rests on as much.
pub(super) fn write(
    transaction: &Transaction<'_>,
    row: &VerdictRow,
    stored_ns: i64,
) -> Result<Written, rusqlite::Error> {
    let revision: Option<i64> = transaction
        .prepare_cached(UPSERT)?
        .query_row(
            rusqlite::params![
                row.trace_id.bytes(),
                row.client_span_id.bytes(),
                row.evidence,
                stored_ns,
                row.started_ns,
                row.flagged,
                row.client_service,
                row.server_service,
                row.route,
                row.causes,
                row.gap_ns,
                row.unexplained_ns,
                row.document,
            ],
            |row| row.get(0),
        )
        .optional()?;
    Ok(match revision {
        None => Written::Kept,
        Some(1) => Written::New,
        Some(_) => Written::Revised,
    })
}

const UPSERT: &str = "
    INSERT INTO verdict (trace_id, client_span_id, revision, evidence, stored_ns, started_ns,
        flagged, client_service, server_service, route, causes, gap_ns, unexplained_ns, document)
    VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT (trace_id, client_span_id) DO UPDATE SET
        revision = revision + 1, evidence = excluded.evidence, stored_ns = excluded.stored_ns,
        started_ns = excluded.started_ns, flagged = excluded.flagged,
        client_service = excluded.client_service, server_service = excluded.server_service,
        route = excluded.route, causes = excluded.causes, gap_ns = excluded.gap_ns,
        unexplained_ns = excluded.unexplained_ns, document = excluded.document
    WHERE excluded.evidence > verdict.evidence
    RETURNING revision";

/// Each name once, in alphabetical order, with a comma on either side.
fn causes(verdict: &Verdict) -> String {
    let mut names: Vec<&str> = verdict
        .findings
        .iter()
        .map(|finding| finding.cause)
        .collect();
    names.sort_unstable();
    names.dedup();
    names.iter().fold(String::new(), |mut text, name| {
        if text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push(',');
        text
    })
}
