//! Bringing a database to the schema this version writes.

mod second_schema;
mod third_schema;

use std::io;

use rusqlite::{Connection, Transaction};

/// A change from one schema to the next.
type Step = fn(&Transaction<'_>) -> Result<(), MigrationError>;

/// One step for each schema, the first from an empty database. `user_version` counts the steps done.
const STEPS: &[Step] = &[first_schema, second_schema::migrate, third_schema::migrate];

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
    /// What is stored cannot be packed.
    #[error("a verdict cannot be packed: {0}")]
    Pack(#[from] io::Error),
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
    if found > 0 && !missing.is_empty() {
        tracing::info!(
            from = found,
            to = STEPS.len(),
            "bringing the store to a new schema; this can take minutes"
        );
    }
    for (step, number) in missing.iter().zip(found + 1..) {
        step(&transaction)?;
        transaction.pragma_update(None, "user_version", number)?;
    }
    transaction.commit()?;
    Ok(())
}

fn first_schema(transaction: &Transaction<'_>) -> Result<(), MigrationError> {
    transaction.execute_batch(include_str!("schema_1.sql"))?;
    Ok(())
}
