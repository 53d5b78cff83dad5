//! Letting go of verdicts that are too old or too many.

use std::time::Duration;

use rusqlite::Transaction;

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

/// Deletes a part of what need not be kept, and gives how many verdicts that were.
///
/// `log_bytes` is how much of the file is the observation log, which has a cap of its own.
pub(super) fn apply(
    transaction: &Transaction<'_>,
    retention: Retention,
    now_ns: i64,
    log_bytes: u64,
) -> Result<usize, rusqlite::Error> {
    let age_ns = i64::try_from(retention.age.as_nanos()).unwrap_or(i64::MAX);
    let too_old = transaction
        .prepare_cached(
            "DELETE FROM verdict WHERE id IN
                (SELECT id FROM verdict WHERE stored_ns < ?1 ORDER BY stored_ns LIMIT ?2)",
        )?
        .execute((now_ns.saturating_sub(age_ns), MOST_PER_COMMIT))?;
    if used_bytes(transaction)?.saturating_sub(log_bytes) <= retention.bytes {
        return Ok(too_old);
    }
    let too_many = transaction
        .prepare_cached(
            "DELETE FROM verdict WHERE id IN
                (SELECT id FROM verdict ORDER BY stored_ns, id
                 LIMIT (SELECT min(?1, 1 + count(*) / 20) FROM verdict))",
        )?
        .execute([MOST_PER_COMMIT])?;
    Ok(too_old.saturating_add(too_many))
}

/// Bytes of the pages in use; freed ones are used again before the file grows.
fn used_bytes(transaction: &Transaction<'_>) -> Result<u64, rusqlite::Error> {
    let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(u64::try_from(pages.saturating_mul(pragma("page_size")?)).unwrap_or(0))
}
