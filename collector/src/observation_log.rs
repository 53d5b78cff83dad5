//! The log of batches as they came: written before they are acknowledged, read by the
//! pipeline, and cut off once everything a batch belongs to is settled.
//!
//! So the log holds exactly what a restart has to judge again, and nothing has to remember
//! how far the pipeline got.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rusqlite::{Connection, Transaction};

/// A batch as it lies in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedBatch {
    /// Its number; later batches have higher ones.
    pub(crate) number: i64,
    /// When it was received, in nanoseconds since the Unix epoch on the collector's clock.
    pub(crate) received_ns: i64,
    /// An `ExportTraceServiceRequest` in protobuf.
    pub(crate) body: Vec<u8>,
}

/// Adds a batch and gives its number.
pub(crate) fn append(
    transaction: &Transaction<'_>,
    received_ns: i64,
    body: &Bytes,
) -> Result<i64, rusqlite::Error> {
    transaction
        .prepare_cached("INSERT INTO observation_log (received_ns, body) VALUES (?1, ?2)")?
        .insert((received_ns, body.as_ref()))
}

/// The batches after number `position`, oldest first, up to about `most_bytes` of them but
/// at least one if there is one.
pub(crate) fn read_after(
    connection: &Connection,
    position: i64,
    most_bytes: usize,
) -> Result<Vec<LoggedBatch>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "SELECT batch, received_ns, body FROM observation_log WHERE batch > ?1 ORDER BY batch",
    )?;
    let mut rows = statement.query([position])?;
    let mut batches = Vec::new();
    let mut bytes = 0_usize;
    while let Some(row) = rows.next()? {
        let batch = LoggedBatch {
            number: row.get(0)?,
            received_ns: row.get(1)?,
            body: row.get(2)?,
        };
        bytes = bytes.saturating_add(batch.body.len());
        batches.push(batch);
        if bytes >= most_bytes {
            break;
        }
    }
    Ok(batches)
}

/// Cuts off all batches before number `needed_from`, and gives how many bytes they held.
pub(crate) fn trim(
    transaction: &Transaction<'_>,
    needed_from: i64,
) -> Result<u64, rusqlite::Error> {
    let freed: i64 = transaction
        .prepare_cached(
            "SELECT coalesce(sum(length(body)), 0) FROM observation_log WHERE batch < ?1",
        )?
        .query_row([needed_from], |row| row.get(0))?;
    transaction
        .prepare_cached("DELETE FROM observation_log WHERE batch < ?1")?
        .execute([needed_from])?;
    Ok(u64::try_from(freed).unwrap_or(0))
}

/// The bytes of all batches in the log, and the number of the last one ever written.
pub(crate) fn extent(connection: &Connection) -> Result<(u64, i64), rusqlite::Error> {
    let bytes: i64 = connection.query_row(
        "SELECT coalesce(sum(length(body)), 0) FROM observation_log",
        [],
        |row| row.get(0),
    )?;
    let last: i64 = connection.query_row(
        "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'observation_log'",
        [],
        |row| row.get(0),
    )?;
    Ok((u64::try_from(bytes).unwrap_or(0), last))
}

/// How far the log has been written: the writer moves it on, the pipeline waits for it.
#[derive(Debug)]
pub(crate) struct LogEnd {
    state: Mutex<EndState>,
    moved: Condvar,
}

#[derive(Clone, Copy, Debug)]
struct EndState {
    last_batch: i64,
    closed: Option<Instant>,
}

impl LogEnd {
    /// The end of a log whose last batch has the number `last_batch`.
    pub(crate) fn new(last_batch: i64) -> Self {
        Self {
            state: Mutex::new(EndState {
                last_batch,
                closed: None,
            }),
            moved: Condvar::new(),
        }
    }

    /// Says that batches up to number `last_batch` are committed.
    pub(crate) fn advance(&self, last_batch: i64) {
        let mut state = self.lock();
        state.last_batch = state.last_batch.max(last_batch);
        self.moved.notify_all();
    }

    /// Says that no batch will follow.
    pub(crate) fn close(&self) {
        self.lock().closed.get_or_insert_with(Instant::now);
        self.moved.notify_all();
    }

    /// How long ago it was closed; `None` while it is open.
    pub(crate) fn closed_for(&self) -> Option<Duration> {
        self.lock().closed.map(|closed| closed.elapsed())
    }

    /// Waits for a batch after number `position`, but no longer than `longest`.
    pub(crate) fn wait_beyond(&self, position: i64, longest: Duration) -> LogNews {
        let state = self.lock();
        let (state, _) = self
            .moved
            .wait_timeout_while(state, longest, |state| {
                state.last_batch <= position && state.closed.is_none()
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.last_batch > position {
            LogNews::More
        } else if state.closed.is_some() {
            LogNews::Closed
        } else {
            LogNews::Nothing
        }
    }

    fn lock(&self) -> MutexGuard<'_, EndState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a wait at the end of the log brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogNews {
    /// There are more batches.
    More,
    /// Nothing came in time.
    Nothing,
    /// There are no more batches and none will follow.
    Closed,
}
