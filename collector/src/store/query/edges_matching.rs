//! Which edges a filter by names means.

use rusqlite::Connection;

/// Names that an edge must have. `None` takes any; an empty text means that nothing gives one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EdgeFilter {
    /// `service.name` of either side.
    pub(crate) service: Option<String>,
    /// `service.name` of the client.
    pub(crate) client_service: Option<String>,
    /// `service.name` of the server.
    pub(crate) server_service: Option<String>,
    /// Low-cardinality path.
    pub(crate) route: Option<String>,
}

impl EdgeFilter {
    /// Whether every edge is meant.
    pub(crate) fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// The numbers of the edges that are meant.
    pub(super) fn numbers(&self, connection: &Connection) -> Result<Vec<i64>, rusqlite::Error> {
        connection
            .prepare_cached(
                "SELECT id FROM edge
                 WHERE (?1 IS NULL OR client_service = ?1 OR server_service = ?1)
                     AND (?2 IS NULL OR client_service = ?2)
                     AND (?3 IS NULL OR server_service = ?3)
                     AND (?4 IS NULL OR route = ?4)
                 ORDER BY id",
            )?
            .query_map(
                (
                    &self.service,
                    &self.client_service,
                    &self.server_service,
                    &self.route,
                ),
                |row| row.get(0),
            )?
            .collect()
    }
}

/// `numbers` as a list to stand in a statement. They are integers of ours, so they are safe there.
pub(super) fn list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}
