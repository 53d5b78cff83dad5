//! Writing a verdict.

use std::io;

use rusqlite::{OptionalExtension, Transaction, params};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::ledger::Segment;
use skewtap_core::verdict::Verdict;
use skewtap_core::verdict_json::VerdictJson;

use super::counts::{self, CountChanges, Counted};
use super::edge::{EdgeNames, EdgeNumbers};
use super::packed::Packer;
use super::past;
use crate::matcher::Match;
use crate::otlp_encode;

/// A verdict ready to be written.
#[derive(Clone, Debug)]
pub(crate) struct VerdictRow {
    trace_id: TraceId,
    client_span_id: SpanId,
    evidence: i64,
    revises: i64,
    started_ns: i64,
    flagged: bool,
    edge: EdgeNames,
    causes: String,
    client_ns: Option<i64>,
    server_ns: Option<i64>,
    wire_ns: Option<i64>,
    gap_ns: Option<i64>,
    lag_ns: Option<i64>,
    unexplained_ns: Option<i64>,
    document: Vec<u8>,
    observations: Vec<u8>,
}

/// Why a verdict cannot be made ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    /// It is no JSON.
    #[error("it cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It cannot be packed.
    #[error("it cannot be packed: {0}")]
    Pack(#[from] io::Error),
}

impl VerdictRow {
    /// Takes what filters and plots need out of `verdict`, and packs the rest with what it
    /// was judged from.
    ///
    /// `else_started_ns` is when the exchange began where the verdict itself cannot tell.
    ///
    /// # Errors
    /// When the verdict cannot be written as JSON, or there is no memory to pack it.
    pub(crate) fn new(
        verdict: &Verdict,
        found: &Match,
        else_started_ns: i64,
        packer: &mut Packer,
    ) -> Result<Self, RowError> {
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        let client_span = verdict.client.filter(|_| verdict.client_from_span);
        let ledger = verdict.ledger.as_ref();
        Ok(Self {
            trace_id: verdict.trace_id,
            client_span_id: verdict.client_span_id,
            evidence: found.evidence,
            revises: found.revises,
            started_ns: verdict.started_ns.unwrap_or(else_started_ns),
            flagged: verdict.flagged,
            edge: EdgeNames {
                client_service: name(&verdict.client_service),
                server_service: name(&verdict.server_service),
                route: name(&verdict.route),
            },
            causes: causes(verdict),
            client_ns: client_span.map(|span| span.lo()),
            server_ns: verdict.server_ns,
            wire_ns: verdict.wire.map(|wire| wire.middle()),
            gap_ns: verdict.gap_ns(),
            lag_ns: lag_ns(verdict),
            unexplained_ns: ledger.map(|ledger| ledger.unexplained_ns()),
            document: packer.pack(&serde_json::to_vec(&VerdictJson::from(verdict))?)?,
            observations: packer.pack(&otlp_encode::encode(found))?,
        })
    }

    fn counted(&self, edge: i64) -> Counted {
        Counted {
            started_ns: self.started_ns,
            edge,
            gap_ns: self.gap_ns,
            flagged: self.flagged,
            causes: self.causes.clone(),
        }
    }
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The first verdict on its client span.
    New,
    /// It replaced the one that it revises, which was this.
    Revised(Before),
    /// The one already there rests on the same, so it stays.
    ///
    /// This is what keeps a restart, which judges again what the log still holds, from
    /// changing or doubling anything.
    Kept,
    /// The one already there rests on something else, so it stays until the two are joined.
    Outdated,
}

/// What a replaced verdict said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    /// Whether it was flagged.
    pub(crate) flagged: bool,
    /// Names of the causes it had found.
    pub(crate) causes: Vec<String>,
}

impl Before {
    /// Whether it had found `cause`.
    pub(crate) fn found(&self, cause: &str) -> bool {
        self.causes.iter().any(|before| before == cause)
    }

    /// Whether people were told of `cause`, or of a gap without one where that is `None`.
    pub(crate) fn was_told(&self, cause: Option<&str>) -> bool {
        let same = cause.map_or(self.causes.is_empty(), |cause| self.found(cause));
        self.flagged && same
    }
}

impl Written {
    /// Whether the store has this verdict because it was just written.
    pub(crate) const fn is_news(&self) -> bool {
        matches!(self, Self::New | Self::Revised(_))
    }

    /// What was there before, where something was replaced.
    pub(crate) const fn before(&self) -> Option<&Before> {
        match self {
            Self::Revised(before) => Some(before),
            Self::New | Self::Kept | Self::Outdated => None,
        }
    }
}

/// Writes `row` unless the store holds a verdict on the same span other than the one it revises.
pub(super) fn write(
    transaction: &Transaction<'_>,
    row: &VerdictRow,
    stored_ns: i64,
    edges: &mut EdgeNumbers,
    counts: &mut CountChanges,
) -> Result<Written, rusqlite::Error> {
    let edge = edges.number(transaction, &row.edge)?;
    let Some((id, evidence, old)) = stored(transaction, row)? else {
        let id = insert(transaction, row, edge, stored_ns)?;
        transaction
            .prepare_cached(
                "INSERT INTO verdict_document (id, verdict, observations) VALUES (?1, ?2, ?3)",
            )?
            .execute((id, &row.document, &row.observations))?;
        counts.add(&row.counted(edge));
        return Ok(Written::New);
    };
    if evidence != row.revises {
        let basis = past::basis(transaction, row.trace_id, row.client_span_id)?;
        match basis.and_then(|basis| basis.observations) {
            Some(same) if same == row.observations => return Ok(Written::Kept),
            Some(_) => return Ok(Written::Outdated),
            // Nothing to join with; the one that rests on more stays.
            None if row.evidence <= evidence => return Ok(Written::Kept),
            None => {}
        }
    }
    update(transaction, row, id, edge, stored_ns)?;
    transaction
        .prepare_cached(
            "UPDATE verdict_document SET verdict = ?2, observations = ?3 WHERE id = ?1",
        )?
        .execute((id, &row.document, &row.observations))?;
    counts.take_back(&old);
    counts.add(&row.counted(edge));
    Ok(Written::Revised(Before {
        flagged: old.flagged,
        causes: counts::names(&old.causes).map(str::to_owned).collect(),
    }))
}

/// The number and the evidence of the verdict that is there already, and what was counted of it.
fn stored(
    transaction: &Transaction<'_>,
    row: &VerdictRow,
) -> Result<Option<(i64, i64, Counted)>, rusqlite::Error> {
    transaction
        .prepare_cached(
            "SELECT id, evidence, started_ns, edge, gap_ns, flagged, causes FROM verdict
             WHERE trace_id = ?1 AND client_span_id = ?2",
        )?
        .query_row(
            (row.trace_id.bytes(), row.client_span_id.bytes()),
            |found| {
                let counted = Counted::read(found)?;
                Ok((found.get("id")?, found.get("evidence")?, counted))
            },
        )
        .optional()
}

fn insert(
    transaction: &Transaction<'_>,
    row: &VerdictRow,
    edge: i64,
    stored_ns: i64,
) -> Result<i64, rusqlite::Error> {
    transaction
        .prepare_cached(
            "INSERT INTO verdict (trace_id, client_span_id, revision, evidence, stored_ns,
                 started_ns, flagged, edge, causes, client_ns, server_ns, wire_ns, gap_ns,
                 lag_ns, unexplained_ns)
             VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .insert(params![
            row.trace_id.bytes(),
            row.client_span_id.bytes(),
            row.evidence,
            stored_ns,
            row.started_ns,
            row.flagged,
            edge,
            row.causes,
            row.client_ns,
            row.server_ns,
            row.wire_ns,
            row.gap_ns,
            row.lag_ns,
            row.unexplained_ns,
        ])
}

fn update(
    transaction: &Transaction<'_>,
    row: &VerdictRow,
    id: i64,
    edge: i64,
    stored_ns: i64,
) -> Result<(), rusqlite::Error> {
    transaction
        .prepare_cached(
            "UPDATE verdict SET revision = revision + 1, evidence = ?2, stored_ns = ?3,
                 started_ns = ?4, flagged = ?5, edge = ?6, causes = ?7, client_ns = ?8,
                 server_ns = ?9, wire_ns = ?10, gap_ns = ?11, lag_ns = ?12, unexplained_ns = ?13
             WHERE id = ?1",
        )?
        .execute(params![
            id,
            row.evidence,
            stored_ns,
            row.started_ns,
            row.flagged,
            edge,
            row.causes,
            row.client_ns,
            row.server_ns,
            row.wire_ns,
            row.gap_ns,
            row.lag_ns,
            row.unexplained_ns,
        ])?;
    Ok(())
}

/// What the client surely took after the response had been passed on to it; `None` where no
/// row of the ledger tells.
fn lag_ns(verdict: &Verdict) -> Option<i64> {
    let rows = verdict.ledger.as_ref()?.rows.iter();
    rows.filter(|row| is_lag(row.segment))
        .map(|row| row.counted_ns)
        .reduce(i64::saturating_add)
}

/// Whether time in this part passes in the client after the response was there.
pub(super) const fn is_lag(segment: Segment) -> bool {
    matches!(
        segment,
        Segment::ClientUnread | Segment::ClientAfterRead | Segment::ClientAfterArrival
    )
}

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
