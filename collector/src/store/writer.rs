//! The one thread that writes to the store. Whatever waits when it comes to the queue
//! shares a commit, so the cost of a disk flush is paid once for all of it.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rusqlite::{Connection, Transaction};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::Store;
use super::counts::CountChanges;
use super::edge::EdgeNumbers;
use super::health::StoreHealth;
use super::retention::{self, Retention};
use super::verdict_row::{self, VerdictRow, Written};
use crate::handover::{DecodedBatch, Handover};
use crate::observation::Observation;
use crate::observation_log::{self, LogEnd};

/// Requests that may wait; each is a batch or the results of many.
const QUEUE: usize = 1024;

/// Bytes of batches that may wait.
const QUEUED_KIB: usize = 64 * 1024;

/// Requests that share a commit at most.
const MOST_PER_COMMIT: usize = 256;

/// Time between two looks at what retention asks for, in nanoseconds.
const RETENTION_EVERY_NS: i64 = 5_000_000_000;

/// What the pipeline found out, to be written in one transaction.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// The verdicts.
    pub(crate) rows: Arc<[VerdictRow]>,
    /// The number of the first batch that is still needed; earlier ones are cut off.
    pub(crate) log_needed_from: i64,
    /// The time, in nanoseconds since the Unix epoch.
    pub(crate) now_ns: i64,
}

/// Why a batch was not taken.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum AppendError {
    /// Too much is waiting already.
    #[error("the store is busy; send the batch again later")]
    Busy,
    /// The log has reached its cap, because what is in it is not settled yet.
    #[error("the observation log is full; send the batch again later")]
    LogFull,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] WriteError),
}

/// Why nothing was written.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The database refused the commit, and with it everything in it.
    #[error("the store cannot be written: {0}")]
    Database(Arc<rusqlite::Error>),
    /// The writer has ended.
    #[error("the collector is shutting down")]
    Closed,
}

/// Access to the writer; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct StoreWriter {
    requests: mpsc::Sender<Request>,
    room: Arc<Semaphore>,
    log_bytes: Arc<AtomicU64>,
    most_log_bytes: u64,
}

/// How much of anything the writer lets the store hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of the observation log from which batches are refused.
    pub(crate) log_bytes: u64,
    /// Which verdicts to let go.
    pub(crate) retention: Retention,
}

/// A writer for `store` that is ready to run, and access to it.
///
/// # Errors
/// When the log cannot be read.
pub(crate) fn prepare(
    store: Store,
    limits: Limits,
) -> Result<(StoreWriter, Worker), rusqlite::Error> {
    let (log_bytes, last_batch) = observation_log::extent(&store.connection)?;
    let log_bytes = Arc::new(AtomicU64::new(log_bytes));
    let (requests, queue) = mpsc::channel(QUEUE);
    let worker = Worker {
        connection: store.connection,
        lock: store.lock,
        queue,
        log_end: Arc::new(LogEnd::new(last_batch)),
        handover: Arc::new(Handover::new(last_batch)),
        log_bytes: Arc::clone(&log_bytes),
        health: StoreHealth::default(),
        edges: EdgeNumbers::default(),
        retention: limits.retention,
        last_retention_ns: i64::MIN,
    };
    let writer = StoreWriter {
        requests,
        room: Arc::new(Semaphore::new(QUEUED_KIB)),
        log_bytes,
        most_log_bytes: limits.log_bytes,
    };
    Ok((writer, worker))
}

impl StoreWriter {
    /// Writes a batch to the log. When this returns `Ok` the disk has it, and `observations`,
    /// which are what `body` says, are on their way to the pipeline.
    ///
    /// # Errors
    /// [`AppendError`]; the batch is then not in the log.
    pub(crate) async fn append(
        &self,
        received_ns: i64,
        body: Bytes,
        observations: Vec<Observation>,
    ) -> Result<(), AppendError> {
        if self.log_bytes() >= self.most_log_bytes {
            return Err(AppendError::LogFull);
        }
        let kib = u32::try_from(body.len() / 1024 + 1).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room)
            .try_acquire_many_owned(kib)
            .map_err(|_| AppendError::Busy)?;
        let (committed, answer) = oneshot::channel();
        let batch = Request::Append(Append {
            received_ns,
            body,
            observations,
            committed,
            _room: room,
        });
        self.requests.try_send(batch).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AppendError::Busy,
            mpsc::error::TrySendError::Closed(_) => WriteError::Closed.into(),
        })?;
        answer.await.unwrap_or(Err(WriteError::Closed))?;
        Ok(())
    }

    /// Writes results and cuts off the log, all or nothing, and says what became of each row.
    /// Blocks; not for use on an async thread.
    ///
    /// # Errors
    /// [`WriteError`]; nothing is then written.
    pub(crate) fn write_results(&self, results: Results) -> Result<Vec<Written>, WriteError> {
        let (committed, answer) = oneshot::channel();
        self.requests
            .blocking_send(Request::Results(results, committed))
            .map_err(|_| WriteError::Closed)?;
        answer.blocking_recv().unwrap_or(Err(WriteError::Closed))
    }

    /// Asks the writer to end once it has written what waits. Blocks while the queue is full.
    pub(crate) fn close(&self) {
        // An error means that it has ended already.
        drop(self.requests.blocking_send(Request::Close));
    }

    /// Bytes of all batches in the log.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_bytes.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
enum Request {
    Append(Append),
    Results(Results, oneshot::Sender<Result<Vec<Written>, WriteError>>),
    Close,
}

#[derive(Debug)]
struct Append {
    received_ns: i64,
    body: Bytes,
    observations: Vec<Observation>,
    committed: oneshot::Sender<Result<(), WriteError>>,
    /// Given back when the batch has left the queue.
    _room: OwnedSemaphorePermit,
}

/// The thread's state.
#[derive(Debug)]
pub(crate) struct Worker {
    connection: Connection,
    lock: File,
    queue: mpsc::Receiver<Request>,
    log_end: Arc<LogEnd>,
    handover: Arc<Handover>,
    log_bytes: Arc<AtomicU64>,
    health: StoreHealth,
    edges: EdgeNumbers,
    retention: Retention,
    last_retention_ns: i64,
}

/// What a transaction changed, to be made known once it is committed.
#[derive(Default)]
struct Changes {
    /// The numbers of the batches added.
    batches: Vec<i64>,
    added_bytes: u64,
    freed_bytes: u64,
    counts: CountChanges,
    written: Vec<Vec<Written>>,
}

impl Worker {
    /// Where the log ends.
    pub(crate) fn log_end(&self) -> Arc<LogEnd> {
        Arc::clone(&self.log_end)
    }

    /// The short way to the pipeline.
    pub(crate) fn handover(&self) -> Arc<Handover> {
        Arc::clone(&self.handover)
    }

    /// Whether the store can be written.
    pub(crate) fn health(&self) -> StoreHealth {
        self.health.clone()
    }

    /// Writes until it is asked to close.
    pub(crate) fn run(mut self) {
        let mut requests = Vec::with_capacity(MOST_PER_COMMIT);
        while self
            .queue
            .blocking_recv_many(&mut requests, MOST_PER_COMMIT)
            > 0
        {
            if requests.iter().any(|r| matches!(r, Request::Close)) {
                self.queue.close();
            }
            let outcome = self.commit(&requests);
            self.health
                .note(outcome.as_ref().err().map(ToString::to_string));
            match outcome {
                Ok(changes) => self.announce(changes, &mut requests),
                Err(error) => {
                    // Numbers may have been given out that were never written.
                    self.edges.forget();
                    refuse(&WriteError::Database(Arc::new(error)), requests.drain(..));
                }
            }
        }
        if let Err((_, error)) = self.connection.close() {
            tracing::warn!(%error, "the store was not closed cleanly; nothing committed is lost");
        }
        drop(self.lock);
    }

    fn commit(&mut self, requests: &[Request]) -> Result<Changes, rusqlite::Error> {
        let transaction = self.connection.transaction()?;
        let mut changes = Changes::default();
        for request in requests {
            match request {
                Request::Append(append) => {
                    let Append {
                        received_ns, body, ..
                    } = append;
                    let number = observation_log::append(&transaction, *received_ns, body)?;
                    changes.batches.push(number);
                    changes.added_bytes += u64::try_from(body.len()).unwrap_or(u64::MAX);
                }
                Request::Close => {}
                Request::Results(results, _) => {
                    write_results(&transaction, results, &mut self.edges, &mut changes)?;
                    if results.now_ns.saturating_sub(self.last_retention_ns) > RETENTION_EVERY_NS {
                        let log_bytes = self.log_bytes.load(Ordering::Relaxed);
                        let (now_ns, counts) = (results.now_ns, &mut changes.counts);
                        let let_go = retention::apply(
                            &transaction,
                            self.retention,
                            now_ns,
                            log_bytes,
                            counts,
                        )?;
                        if let_go.edges > 0 {
                            self.edges.forget();
                        }
                        self.last_retention_ns = results.now_ns;
                    }
                }
            }
        }
        std::mem::take(&mut changes.counts).write(&transaction)?;
        transaction.commit()?;
        Ok(changes)
    }

    /// Tells everyone who waited that it is done.
    fn announce(&self, changes: Changes, requests: &mut Vec<Request>) {
        self.log_bytes
            .fetch_add(changes.added_bytes, Ordering::Relaxed);
        self.log_bytes
            .fetch_sub(changes.freed_bytes, Ordering::Relaxed);
        self.hand_over(&changes.batches, requests);
        if let Some(last_batch) = changes.batches.last() {
            self.log_end.advance(*last_batch);
        }
        let mut written = changes.written.into_iter();
        for request in requests.drain(..) {
            // A sender that went away in the meantime has no use for the answer.
            match request {
                Request::Close => {}
                Request::Append(append) => drop(append.committed.send(Ok(()))),
                Request::Results(_, committed) => {
                    drop(committed.send(Ok(written.next().unwrap_or_default())));
                }
            }
        }
    }

    fn hand_over(&self, numbers: &[i64], requests: &mut [Request]) {
        let appends = requests.iter_mut().filter_map(|request| match request {
            Request::Append(append) => Some(append),
            _ => None,
        });
        for (append, number) in appends.zip(numbers) {
            self.handover.put(DecodedBatch {
                number: *number,
                received_ns: append.received_ns,
                bytes: append.body.len(),
                observations: std::mem::take(&mut append.observations),
            });
        }
    }
}

fn write_results(
    transaction: &Transaction<'_>,
    results: &Results,
    edges: &mut EdgeNumbers,
    changes: &mut Changes,
) -> Result<(), rusqlite::Error> {
    let rows = results.rows.iter();
    let counts = &mut changes.counts;
    let written: Result<Vec<Written>, _> = rows
        .map(|row| verdict_row::write(transaction, row, results.now_ns, edges, counts))
        .collect();
    changes.written.push(written?);
    changes.freed_bytes += observation_log::trim(transaction, results.log_needed_from)?;
    Ok(())
}

fn refuse(error: &WriteError, requests: impl Iterator<Item = Request>) {
    for request in requests {
        match request {
            Request::Close => {}
            Request::Append(append) => drop(append.committed.send(Err(error.clone()))),
            Request::Results(_, committed) => drop(committed.send(Err(error.clone()))),
        }
    }
}
