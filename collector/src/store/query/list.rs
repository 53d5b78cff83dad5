//! Lists of verdicts, newest first.

use std::fmt;
use std::str::FromStr;

use rusqlite::types::ToSql;
use rusqlite::{Connection, params_from_iter};

use super::edges_matching::list;
use super::{EdgeFilter, Queries, QueryError, SELECT_VERDICT, StoredVerdict, stored_verdict};

/// The most verdicts one page can hold.
pub(crate) const MOST_PER_PAGE: usize = 1000;

/// Edges that are looked through one by one; where more are meant, all verdicts are.
const MOST_SINGLY: usize = 50;

/// Which verdicts to list. The default lists all, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Only those flagged, or only those not.
    pub(crate) flagged: Option<bool>,
    /// Only those that began at or after this, in nanoseconds since the Unix epoch.
    pub(crate) since_ns: Option<i64>,
    /// Only those that began before this, in nanoseconds since the Unix epoch.
    pub(crate) until_ns: Option<i64>,
    /// Only those on these edges.
    pub(crate) edges: EdgeFilter,
    /// Only those with this cause.
    pub(crate) cause: Option<String>,
    /// Only those whose gap is at least this, in nanoseconds.
    pub(crate) least_gap_ns: Option<i64>,
    /// Only those after this place in the list.
    pub(crate) after: Option<Cursor>,
    /// How many at most; 1 to [`MOST_PER_PAGE`].
    pub(crate) limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            flagged: None,
            since_ns: None,
            until_ns: None,
            edges: EdgeFilter::default(),
            cause: None,
            least_gap_ns: None,
            after: None,
            limit: 100,
        }
    }
}

/// A place in the list of verdicts. Its text form is opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    started_ns: i64,
    id: i64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.started_ns, self.id)
    }
}

/// A text that is no [`Cursor`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a cursor; use the next_cursor of an earlier answer")]
pub(crate) struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (started, id) = text.split_once('.').ok_or(NoCursor)?;
        Ok(Self {
            started_ns: started.parse().map_err(|_| NoCursor)?,
            id: id.parse().map_err(|_| NoCursor)?,
        })
    }
}

/// A part of the list of verdicts, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// The verdicts.
    pub(crate) verdicts: Vec<StoredVerdict>,
    /// Where the next page starts; `None` on the last one.
    pub(crate) next: Option<Cursor>,
}

impl Queries {
    /// A page of the list that `filter` describes.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn exchanges(&self, filter: Filter) -> Result<Page, QueryError> {
        self.with_connection(move |connection| page(connection, &filter))
            .await
    }
}

/// Finds the places of the page with indexes alone, then reads what stands there.
fn page(connection: &Connection, filter: &Filter) -> Result<Page, rusqlite::Error> {
    // What is deleted between the two steps must not be missed.
    let reading = connection.unchecked_transaction()?;
    let limit = filter.limit.clamp(1, MOST_PER_PAGE);
    let mut places = places(&reading, filter, limit + 1)?;
    let more = places.len() > limit;
    places.truncate(limit);
    let mut statement =
        reading.prepare_cached(&format!("{SELECT_VERDICT} WHERE verdict.id = ?1"))?;
    let verdicts: Result<Vec<_>, _> = places
        .iter()
        .map(|place| statement.query_row([place.id], stored_verdict))
        .collect();
    Ok(Page {
        verdicts: verdicts?,
        next: places.last().filter(|_| more).copied(),
    })
}

/// The first `most` places of a list, newest first.
fn places(
    connection: &Connection,
    filter: &Filter,
    most: usize,
) -> Result<Vec<Cursor>, rusqlite::Error> {
    if filter.edges.is_open() {
        return places_on(connection, filter, "", most);
    }
    let edges = filter.edges.numbers(connection)?;
    if edges.len() > MOST_SINGLY {
        let among = format!("+edge IN ({})", list(&edges));
        return places_on(connection, filter, &among, most);
    }
    let mut found = Vec::new();
    for edge in edges {
        found.extend(places_on(
            connection,
            filter,
            &format!("edge = {edge}"),
            most,
        )?);
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.truncate(most);
    Ok(found)
}

fn places_on(
    connection: &Connection,
    filter: &Filter,
    edges: &str,
    most: usize,
) -> Result<Vec<Cursor>, rusqlite::Error> {
    let (conditions, values) = conditions(filter, edges);
    connection
        .prepare_cached(&format!(
            "SELECT started_ns, id FROM verdict{conditions}
             ORDER BY started_ns DESC, id DESC LIMIT {most}"
        ))?
        .query_map(params_from_iter(values), |row| {
            Ok(Cursor {
                started_ns: row.get(0)?,
                id: row.get(1)?,
            })
        })?
        .collect()
}

/// The `WHERE` clause of a filter, and the values for its placeholders.
fn conditions(filter: &Filter, edges: &str) -> (String, Vec<Box<dyn ToSql>>) {
    let mut terms: Vec<&str> = Vec::new();
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
    if !edges.is_empty() {
        terms.push(edges);
    }
    match filter.flagged {
        // Written as the partial index has it, so that it is used.
        Some(true) => terms.push("flagged = 1"),
        Some(false) => terms.push("flagged = 0"),
        None => {}
    }
    if let Some(since) = filter.since_ns {
        terms.push("started_ns >= ?");
        values.push(Box::new(since));
    }
    if let Some(until) = filter.until_ns {
        terms.push("started_ns < ?");
        values.push(Box::new(until));
    }
    if let Some(cause) = &filter.cause {
        terms.push("causes <> '' AND instr(causes, ?) > 0");
        values.push(Box::new(format!(",{cause},")));
    }
    if let Some(least) = filter.least_gap_ns {
        terms.push("gap_ns >= ?");
        values.push(Box::new(least));
    }
    if let Some(cursor) = filter.after {
        terms.push("(started_ns, id) < (?, ?)");
        values.push(Box::new(cursor.started_ns));
        values.push(Box::new(cursor.id));
    }
    if terms.is_empty() {
        (String::new(), values)
    } else {
        (format!(" WHERE {}", terms.join(" AND ")), values)
    }
}
