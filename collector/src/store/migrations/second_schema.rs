//! From the first schema to the second: what only the documents held becomes columns. Counts are
//! left to the third, which counts anew.

use rusqlite::{Row, Transaction, params};
use skewtap_core::verdict_json::VerdictJson;

use super::MigrationError;
use crate::store::edge::{EdgeNames, EdgeNumbers};
use crate::store::packed::Packer;

/// Parts of the ledger that the column `lag_ns` adds up.
const LAG: [&str; 3] = ["client_unread", "client_after_read", "client_after_arrival"];

/// Makes the new tables and fills them from the old.
pub(super) fn migrate(transaction: &Transaction<'_>) -> Result<(), MigrationError> {
    transaction.execute_batch(include_str!("../schema_2.sql"))?;
    let mut copy = Copy {
        transaction,
        edges: EdgeNumbers::default(),
        packer: Packer::new()?,
    };
    let mut statement = transaction.prepare("SELECT * FROM first_verdict ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        copy.row(row)?;
    }
    drop(rows);
    drop(statement);
    transaction.execute_batch(include_str!("../schema_2_indexes.sql"))?;
    Ok(())
}

struct Copy<'a> {
    transaction: &'a Transaction<'a>,
    edges: EdgeNumbers,
    packer: Packer,
}

impl Copy<'_> {
    fn row(&mut self, old: &Row<'_>) -> Result<(), MigrationError> {
        let name = |column| -> Result<String, rusqlite::Error> {
            Ok(old.get::<_, Option<String>>(column)?.unwrap_or_default())
        };
        let names = EdgeNames {
            client_service: name("client_service")?,
            server_service: name("server_service")?,
            route: name("route")?,
        };
        let id: i64 = old.get("id")?;
        let edge = self.edges.number(self.transaction, &names)?;
        let document: String = old.get("document")?;
        self.verdict(id, old, edge, &Lengths::of(&document))?;
        self.transaction
            .prepare_cached("INSERT INTO verdict_document (id, verdict) VALUES (?1, ?2)")?
            .execute((id, self.packer.pack(document.as_bytes())?))?;
        Ok(())
    }

    fn verdict(
        &self,
        id: i64,
        old: &Row<'_>,
        edge: i64,
        lengths: &Lengths,
    ) -> Result<(), rusqlite::Error> {
        self.transaction
            .prepare_cached(
                "INSERT INTO verdict (id, trace_id, client_span_id, revision, evidence, stored_ns,
                     started_ns, flagged, edge, causes, client_ns, server_ns, wire_ns, gap_ns,
                     lag_ns, unexplained_ns)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            )?
            .execute(params![
                id,
                old.get::<_, Vec<u8>>("trace_id")?,
                old.get::<_, Vec<u8>>("client_span_id")?,
                old.get::<_, i64>("revision")?,
                old.get::<_, i64>("evidence")?,
                old.get::<_, i64>("stored_ns")?,
                old.get::<_, i64>("started_ns")?,
                old.get::<_, i64>("flagged")?,
                edge,
                old.get::<_, String>("causes")?,
                lengths.client_ns,
                lengths.server_ns,
                lengths.wire_ns,
                old.get::<_, Option<i64>>("gap_ns")?,
                lengths.lag_ns,
                old.get::<_, Option<i64>>("unexplained_ns")?,
            ])?;
        Ok(())
    }
}

/// What the first schema had in the document only. All unknown if that cannot be read.
#[derive(Default)]
struct Lengths {
    client_ns: Option<i64>,
    server_ns: Option<i64>,
    wire_ns: Option<i64>,
    lag_ns: Option<i64>,
}

impl Lengths {
    fn of(document: &str) -> Self {
        let Ok(verdict) = serde_json::from_str::<VerdictJson>(document) else {
            return Self::default();
        };
        let rows = verdict.segments.iter();
        let lag = rows.filter(|row| LAG.contains(&&*row.name));
        Self {
            client_ns: verdict.client_seconds.map(nanoseconds),
            server_ns: verdict.server_seconds.map(nanoseconds),
            wire_ns: verdict.wire_seconds.map(nanoseconds),
            lag_ns: lag
                .map(|row| nanoseconds(row.seconds))
                .reduce(i64::saturating_add),
        }
    }
}

/// Seconds as they stand in a document, which holds lengths of up to 100 days to the nanosecond.
fn nanoseconds(seconds: f64) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounded, and what is too long ends at the longest"
    )]
    let ns = (seconds * 1e9).round() as i64;
    ns
}
