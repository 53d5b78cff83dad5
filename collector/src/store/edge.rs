//! Who called whom, for what: each combination of names is written once and has a number.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Transaction};

/// Edges told apart. Verdicts on further ones are counted under [`EdgeNames::other`]; the
/// verdicts themselves have the right names.
const MOST: usize = 10_000;

/// The names of an edge; empty where nothing gives one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EdgeNames {
    /// `service.name` of the client.
    pub(crate) client_service: String,
    /// `service.name` of the server.
    pub(crate) server_service: String,
    /// Low-cardinality path.
    pub(crate) route: String,
}

impl EdgeNames {
    /// What stands for every edge beyond the cap.
    fn other() -> Self {
        Self {
            client_service: "other".to_owned(),
            server_service: "other".to_owned(),
            route: "other".to_owned(),
        }
    }
}

/// The numbers of edges met so far.
#[derive(Debug, Default)]
pub(super) struct EdgeNumbers {
    known: HashMap<EdgeNames, i64>,
    /// How many the store has; `None` before they are counted.
    stored: Option<usize>,
}

impl EdgeNumbers {
    /// The number of an edge, which is written down if it is new.
    pub(super) fn number(
        &mut self,
        transaction: &Transaction<'_>,
        names: &EdgeNames,
    ) -> Result<i64, rusqlite::Error> {
        if let Some(number) = self.known.get(names) {
            return Ok(*number);
        }
        let number = match find(transaction, names)? {
            Some(number) => number,
            None if self.count(transaction)? < MOST => self.add(transaction, names)?,
            None => return self.other(transaction),
        };
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(names.clone(), number);
        Ok(number)
    }

    /// Forgets everything: after a commit that failed, or when edges were deleted.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    fn other(&mut self, transaction: &Transaction<'_>) -> Result<i64, rusqlite::Error> {
        let names = EdgeNames::other();
        if let Some(number) = self.known.get(&names) {
            return Ok(*number);
        }
        let number = match find(transaction, &names)? {
            Some(number) => number,
            None => self.add(transaction, &names)?,
        };
        self.known.insert(names, number);
        Ok(number)
    }

    fn count(&mut self, transaction: &Transaction<'_>) -> Result<usize, rusqlite::Error> {
        if let Some(count) = self.stored {
            return Ok(count);
        }
        let count: i64 =
            transaction.query_row("SELECT count(*) FROM edge", [], |row| row.get(0))?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.stored = Some(count);
        Ok(count)
    }

    fn add(
        &mut self,
        transaction: &Transaction<'_>,
        names: &EdgeNames,
    ) -> Result<i64, rusqlite::Error> {
        let number = transaction
            .prepare_cached(
                "INSERT INTO edge (client_service, server_service, route) VALUES (?1, ?2, ?3)",
            )?
            .insert((&names.client_service, &names.server_service, &names.route))?;
        self.stored = self.stored.map(|count| count.saturating_add(1));
        Ok(number)
    }
}

/// Deletes the edges on which no verdict is left.
pub(super) fn drop_unused(transaction: &Transaction<'_>) -> Result<usize, rusqlite::Error> {
    transaction.execute(
        "DELETE FROM edge WHERE NOT EXISTS (SELECT 1 FROM verdict WHERE verdict.edge = edge.id)",
        [],
    )
}

fn find(transaction: &Transaction<'_>, names: &EdgeNames) -> Result<Option<i64>, rusqlite::Error> {
    transaction
        .prepare_cached(
            "SELECT id FROM edge
             WHERE client_service = ?1 AND server_service = ?2 AND route = ?3",
        )?
        .query_row(
            (&names.client_service, &names.server_service, &names.route),
            |row| row.get(0),
        )
        .optional()
}
