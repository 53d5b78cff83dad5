//! Letting go of verdicts that are too old or too many.

use std::time::Duration;

use rusqlite::{Connection, Params, Transaction};

use super::counts::{CountChanges, Counted};
use super::edge;

/// Verdicts deleted in one commit, so that no acknowledgement waits long for it.
const MOST_PER_COMMIT: i64 = 5_000;

/// How long and how much to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Verdicts written longer ago than this are deleted; above 0, 7 days by default.
    pub age: Duration,
    /// When verdicts take more than this many bytes the oldest are deleted; 4 GiB by default.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            age: Duration::from_secs(7 * 24 * 3600),
            bytes: 4 << 30,
        }
    }
}

/// What one look at the store let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LetGo {
    /// Verdicts.
    pub(super) verdicts: usize,
    /// Names of edges.
    pub(super) edges: usize,
}

/// Deletes a part of what need not be kept.
///
/// `log_bytes` is how much of the file is the observation log, which has a cap of its own.
pub(super) fn apply(
    transaction: &Transaction<'_>,
    retention: Retention,
    now_ns: i64,
    log_bytes: u64,
    counts: &mut CountChanges,
) -> Result<LetGo, rusqlite::Error> {
    let age_ns = i64::try_from(retention.age.as_nanos()).unwrap_or(i64::MAX);
    let mut verdicts = delete(
        transaction,
        "SELECT id FROM verdict WHERE stored_ns < ?1 ORDER BY stored_ns LIMIT ?2",
        (now_ns.saturating_sub(age_ns), MOST_PER_COMMIT),
        counts,
    )?;
    if used_bytes(transaction)?.saturating_sub(log_bytes) > retention.bytes {
        verdicts += delete(
            transaction,
            "SELECT id FROM verdict ORDER BY stored_ns, id
             LIMIT (SELECT min(?1, 1 + count(*) / 20) FROM verdict)",
            [MOST_PER_COMMIT],
            counts,
        )?;
    }
    let edges = if verdicts > 0 {
        edge::drop_unused(transaction)?
    } else {
        0
    };
    Ok(LetGo { verdicts, edges })
}

/// Deletes the verdicts that `which` selects the numbers of.
fn delete(
    transaction: &Transaction<'_>,
    which: &str,
    values: impl Params,
    counts: &mut CountChanges,
) -> Result<usize, rusqlite::Error> {
    let mut statement = transaction.prepare_cached(&format!(
        "DELETE FROM verdict WHERE id IN ({which})
         RETURNING started_ns, edge, gap_ns, flagged, causes"
    ))?;
    let mut rows = statement.query(values)?;
    let mut deleted = 0;
    while let Some(row) = rows.next()? {
        counts.take_back(&Counted::read(row)?);
        deleted += 1;
    }
    Ok(deleted)
}

/// Bytes of the pages in use; freed ones are used again before the file grows.
pub(super) fn used_bytes(connection: &Connection) -> Result<u64, rusqlite::Error> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(u64::try_from(pages.saturating_mul(pragma("page_size")?)).unwrap_or(0))
}
