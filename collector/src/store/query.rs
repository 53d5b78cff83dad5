//! Reading verdicts. Readers have connections of their own and never hold up the writer.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::{ToSql, Type};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params_from_iter};
use skewtap_core::ids::{SpanId, TraceId};

/// The most verdicts one page can hold.
pub(crate) const MOST_PER_PAGE: usize = 1000;

/// Connections kept open between queries; more are opened while more are needed.
const IDLE_CONNECTIONS: usize = 4;

/// A verdict as it lies in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredVerdict {
    /// The trace.
    pub(crate) trace_id: TraceId,
    /// The client's span.
    pub(crate) client_span_id: SpanId,
    /// 1 for the first verdict on this span, one more for each that rests on more.
    pub(crate) revision: i64,
    /// When this revision was written, in nanoseconds since the Unix epoch.
    pub(crate) stored_ns: i64,
    /// When the exchange began, in nanoseconds since the Unix epoch.
    pub(crate) started_ns: i64,
    /// Whether it deserves attention.
    pub(crate) flagged: bool,
    /// `service.name` of the client.
    pub(crate) client_service: Option<String>,
    /// `service.name` of the server.
    pub(crate) server_service: Option<String>,
    /// Low-cardinality path.
    pub(crate) route: Option<String>,
    /// Names of the causes found.
    pub(crate) causes: Vec<String>,
    /// Client minus server in nanoseconds, signed.
    pub(crate) gap_ns: Option<i64>,
    /// Nanoseconds nothing explains.
    pub(crate) unexplained_ns: Option<i64>,
    /// A [`skewtap_core::verdict_json::VerdictJson`] as text.
    pub(crate) document: String,
}

/// Which verdicts to list. The default lists all, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Only those flagged, or only those not.
    pub(crate) flagged: Option<bool>,
    /// Only those that began at or after this, in nanoseconds since the Unix epoch.
    pub(crate) since_ns: Option<i64>,
    /// Only those that began before this, in nanoseconds since the Unix epoch.
    pub(crate) until_ns: Option<i64>,
    /// Only those with this service on either side.
    pub(crate) service: Option<String>,
    /// Only those with this cause.
    pub(crate) cause: Option<String>,
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
            service: None,
            cause: None,
            after: None,
            limit: 100,
        }
    }
}

/// A place in the list of verdicts. Its text form is opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Why verdicts could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueryError {
    /// The database refused.
    #[error("cannot read the store: {0}")]
    Database(#[from] rusqlite::Error),
    /// The collector is going down.
    #[error("the collector is shutting down")]
    ShuttingDown,
}

/// Read access to the store; clones share their connections.
#[derive(Clone, Debug)]
pub(crate) struct Queries {
    readers: Arc<Readers>,
}

impl Queries {
    /// Reads from the database at `path`, which must exist.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            readers: Arc::new(Readers {
                path,
                idle: Mutex::new(Vec::new()),
            }),
        }
    }

    /// The verdict on one client span.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn exchange(
        &self,
        trace_id: TraceId,
        client_span_id: SpanId,
    ) -> Result<Option<StoredVerdict>, QueryError> {
        self.with_connection(move |connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM verdict WHERE trace_id = ?1 AND client_span_id = ?2"
                ))?
                .query_row((trace_id.bytes(), client_span_id.bytes()), |row| {
                    stored_verdict(row).map(|(verdict, _)| verdict)
                })
                .optional()
        })
        .await
    }

    /// A page of the list that `filter` describes.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn exchanges(&self, filter: Filter) -> Result<Page, QueryError> {
        self.with_connection(move |connection| page(connection, &filter))
            .await
    }

    async fn with_connection<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, QueryError> {
        let readers = Arc::clone(&self.readers);
        tokio::task::spawn_blocking(move || {
            let connection = readers.take()?;
            let answer = query(&connection)?;
            readers.put_back(connection);
            Ok(answer)
        })
        .await
        .map_err(|_| QueryError::ShuttingDown)?
    }
}

/// Opens a connection that cannot write.
pub(crate) fn open_reader(path: &std::path::Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(2))?;
    Ok(connection)
}

#[derive(Debug)]
struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    fn take(&self) -> Result<Connection, rusqlite::Error> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match idle {
            Some(connection) => Ok(connection),
            None => open_reader(&self.path),
        }
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }
}

const COLUMNS: &str = "id, trace_id, client_span_id, revision, stored_ns, started_ns, flagged, \
     client_service, server_service, route, causes, gap_ns, unexplained_ns, document";

fn page(connection: &Connection, filter: &Filter) -> Result<Page, rusqlite::Error> {
    let limit = filter.limit.clamp(1, MOST_PER_PAGE);
    let (conditions, values) = conditions(filter);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM verdict{conditions} ORDER BY started_ns DESC, id DESC LIMIT {}",
        limit + 1
    ))?;
    let rows = statement.query_map(params_from_iter(values), stored_verdict)?;
    let mut found = rows.collect::<Result<Vec<_>, _>>()?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|(verdict, id)| Cursor {
        started_ns: verdict.started_ns,
        id: *id,
    });
    Ok(Page {
        verdicts: found.into_iter().map(|(verdict, _)| verdict).collect(),
        next,
    })
}

/// The `WHERE` clause of a filter, and the values for its placeholders.
fn conditions(filter: &Filter) -> (String, Vec<Box<dyn ToSql>>) {
    let mut terms: Vec<&str> = Vec::new();
    let mut values: Vec<Box<dyn ToSql>> = Vec::new();
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
    if let Some(service) = &filter.service {
        terms.push("(client_service = ? OR server_service = ?)");
        values.push(Box::new(service.clone()));
        values.push(Box::new(service.clone()));
    }
    if let Some(cause) = &filter.cause {
        terms.push("instr(causes, ?) > 0");
        values.push(Box::new(format!(",{cause},")));
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

fn stored_verdict(row: &Row<'_>) -> Result<(StoredVerdict, i64), rusqlite::Error> {
    let causes: String = row.get("causes")?;
    let verdict = StoredVerdict {
        trace_id: TraceId::from_bytes(&row.get::<_, Vec<u8>>("trace_id")?)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(1, Type::Blob, Box::new(e)))?,
        client_span_id: SpanId::from_bytes(&row.get::<_, Vec<u8>>("client_span_id")?)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(2, Type::Blob, Box::new(e)))?,
        revision: row.get("revision")?,
        stored_ns: row.get("stored_ns")?,
        started_ns: row.get("started_ns")?,
        flagged: row.get("flagged")?,
        client_service: row.get("client_service")?,
        server_service: row.get("server_service")?,
        route: row.get("route")?,
        causes: causes
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        gap_ns: row.get("gap_ns")?,
        unexplained_ns: row.get("unexplained_ns")?,
        document: row.get("document")?,
    };
    Ok((verdict, row.get("id")?))
}
