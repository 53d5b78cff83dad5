//! Bringing a database to the schema this version writes.

use rusqlite::Connection;

/// One step for each schema, the first from an empty database. `user_version` counts the steps done.
const STEPS: &[&str] = &[include_str!("schema.sql")];

/// Why a database could not be brought to the current schema.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrationError {
    /// A later version of the program wrote it.
    #[error("its schema is number {found}, this version knows up to {known}")]
    Newer {
        /// The number found.
        found: i64,
        /// The last number this version knows.
        known: usize,
    },
    /// The database refused a step.
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// Runs the steps that `connection`'s database has not had yet, all or none.
///
/// # Errors
/// [`MigrationError`]; the database is then as it was.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), MigrationError> {
    let transaction = connection.transaction()?;
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let missing = usize::try_from(found)
        .ok()
        .and_then(|done| STEPS.get(done..));
    let missing = missing.ok_or(MigrationError::Newer {
        found,
        known: STEPS.len(),
    })?;
    for (step, number) in missing.iter().zip(found + 1..) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", number)?;
    }
    transaction.commit()?;
    Ok(())
}
