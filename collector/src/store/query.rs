//! Reading verdicts. Readers have connections of their own and never hold up the writer.

pub(crate) mod aggregates;
mod counted;
mod edges_matching;
mod list;
mod quantiles;
pub(crate) mod scatter;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::Type;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row};
use skewtap_core::ids::{SpanId, TraceId};

pub(crate) use self::edges_matching::EdgeFilter;
pub(crate) use self::list::{Filter, MOST_PER_PAGE, NoCursor, Page};
pub(crate) use self::quantiles::Quantiles;
use super::{counts, packed, past, retention};

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
                    "{SELECT_VERDICT} WHERE trace_id = ?1 AND client_span_id = ?2"
                ))?
                .query_row((trace_id.bytes(), client_span_id.bytes()), stored_verdict)
                .optional()
        })
        .await
    }

    /// What the verdict on one client span was judged from: an `ExportTraceServiceRequest` in
    /// protobuf. `None` where an earlier version judged, which did not keep it.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn observations(
        &self,
        trace_id: TraceId,
        client_span_id: SpanId,
    ) -> Result<Option<Vec<u8>>, QueryError> {
        self.with_connection(move |connection| {
            let found = past::basis(connection, trace_id, client_span_id)?;
            let packed = found.and_then(|basis| basis.observations);
            packed.map(|packed| unpacked(&packed)).transpose()
        })
        .await
    }

    /// Bytes of the store in use.
    ///
    /// # Errors
    /// [`QueryError`] when the store cannot be read.
    pub(crate) async fn used_bytes(&self) -> Result<u64, QueryError> {
        self.with_connection(retention::used_bytes).await
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
    super::prepare(&connection)?;
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

/// All of a verdict; a condition follows.
const SELECT_VERDICT: &str = "SELECT verdict.id, trace_id, client_span_id, revision, stored_ns,
        started_ns, flagged, client_service, server_service, route, causes, gap_ns,
        unexplained_ns, verdict_document.verdict AS document
    FROM verdict CROSS JOIN edge ON edge.id = verdict.edge
        CROSS JOIN verdict_document ON verdict_document.id = verdict.id";

fn stored_verdict(row: &Row<'_>) -> Result<StoredVerdict, rusqlite::Error> {
    let causes: String = row.get("causes")?;
    let document = unpacked(&row.get::<_, Vec<u8>>("document")?)?;
    Ok(StoredVerdict {
        trace_id: TraceId::from_bytes(&row.get::<_, Vec<u8>>("trace_id")?)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(1, Type::Blob, Box::new(e)))?,
        client_span_id: SpanId::from_bytes(&row.get::<_, Vec<u8>>("client_span_id")?)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(2, Type::Blob, Box::new(e)))?,
        revision: row.get("revision")?,
        stored_ns: row.get("stored_ns")?,
        started_ns: row.get("started_ns")?,
        flagged: row.get("flagged")?,
        client_service: known(row.get("client_service")?),
        server_service: known(row.get("server_service")?),
        route: known(row.get("route")?),
        causes: counts::names(&causes).map(str::to_owned).collect(),
        gap_ns: row.get("gap_ns")?,
        unexplained_ns: row.get("unexplained_ns")?,
        document: String::from_utf8(document)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(e)))?,
    })
}

/// The store has an empty text for a name that nothing gives.
fn known(name: String) -> Option<String> {
    Some(name).filter(|name| !name.is_empty())
}

fn unpacked(packed: &[u8]) -> Result<Vec<u8>, rusqlite::Error> {
    packed::unpack(packed)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(e)))
}
