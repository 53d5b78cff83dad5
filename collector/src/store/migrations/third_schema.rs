//! From the second schema to the third: all verdicts are counted anew.

use rusqlite::Transaction;

use super::MigrationError;
use crate::store::counts::{CountChanges, Counted};

/// Verdicts counted before counts are written.
const AT_ONCE: usize = 10_000;

/// Makes the new table and fills it.
pub(super) fn migrate(transaction: &Transaction<'_>) -> Result<(), MigrationError> {
    transaction.execute_batch(include_str!("../schema_3.sql"))?;
    let mut counts = CountChanges::default();
    // In the order in which they began, so that few periods are written more than once.
    let mut statement = transaction.prepare(
        "SELECT started_ns, edge, gap_ns, flagged, causes FROM verdict ORDER BY started_ns, id",
    )?;
    let mut rows = statement.query([])?;
    let mut counted = 0_usize;
    while let Some(row) = rows.next()? {
        counts.add(&Counted::read(row)?);
        counted = counted.saturating_add(1);
        if counted.is_multiple_of(AT_ONCE) {
            std::mem::take(&mut counts).write(transaction)?;
        }
    }
    counts.write(transaction)?;
    Ok(())
}
