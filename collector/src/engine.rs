//! The two threads behind the servers: one writes to the store, one judges what is in the log.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio_util::sync::CancellationToken;

use crate::announcements::Announcements;
use crate::arrival_clock::ArrivalClock;
use crate::background;
use crate::collector::Addresses;
use crate::config::Config;
use crate::export::ExportQueue;
use crate::matcher::Matcher;
use crate::metrics::Metrics;
use crate::observation_log::LogEnd;
use crate::onward::Onward;
use crate::peer_clocks::SharedClocks;
use crate::pipeline::Pipeline;
use crate::receive::Intake;
use crate::receive::bearer_tokens::BearerTokens;
use crate::store::Store;
use crate::store::packed::Packer;
use crate::store::query::{self, Queries};
use crate::store::writer::{self, StoreWriter};
use crate::web::{Listeners, WebState};

/// Why the threads could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] rusqlite::Error),
    /// The system gave no thread.
    #[error(transparent)]
    Thread(#[from] io::Error),
}

/// What the threads and the receivers have in common with the rest.
#[derive(Debug)]
pub(crate) struct Outside {
    /// Where it listens, for pages to tell.
    pub(crate) addresses: Addresses,
    /// Where everything is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// Who may send.
    pub(crate) tokens: BearerTokens,
    /// Where everything that is received is sent on to.
    pub(crate) export: Option<ExportQueue>,
    /// Where verdicts go.
    pub(crate) onward: Onward,
}

/// The running threads, and what the servers need of them.
#[derive(Debug)]
pub(crate) struct Engine {
    /// For the receivers.
    pub(crate) intake: Intake,
    /// For pages, API and metrics.
    pub(crate) web: WebState,
    /// Cancelled when a thread ended, which none does by itself.
    pub(crate) ended: CancellationToken,
    writer: StoreWriter,
    log_end: Arc<LogEnd>,
    writing: JoinHandle<()>,
    judging: JoinHandle<()>,
}

impl Engine {
    /// Starts the threads on `store`.
    ///
    /// # Errors
    /// [`EngineError`] when the store cannot be read or no thread can be had.
    pub(crate) fn start(
        store: Store,
        config: &Config,
        outside: Outside,
    ) -> Result<Self, EngineError> {
        let queries = Queries::new(store.path.clone());
        let log = query::open_reader(&store.path)?;
        let metrics = outside.metrics;
        let clock = ArrivalClock::new();
        let clocks = SharedClocks::new(config.policy.drift_ppm);
        let announcements = Announcements::new();
        let ended = CancellationToken::new();
        let limits = writer::Limits {
            log_bytes: config.most_log_bytes,
            retention: config.retention,
        };
        let (writer, worker) = writer::prepare(store, limits)?;
        let (log_end, health) = (worker.log_end(), worker.health());
        let handover = worker.handover();
        let pipeline = Pipeline {
            log,
            log_end: Arc::clone(&log_end),
            handover,
            writer: writer.clone(),
            health: health.clone(),
            crowded_log_bytes: config.most_log_bytes / 5 * 4,
            matcher: Matcher::new(config.matcher),
            clocks: clocks.clone(),
            policy: config.policy,
            packer: Packer::new()?,
            clock,
            metrics: Arc::clone(&metrics),
            onward: outside.onward,
            announcements: announcements.clone(),
        };
        Ok(Self {
            intake: Intake {
                writer: writer.clone(),
                metrics: Arc::clone(&metrics),
                clock,
                tokens: outside.tokens,
                export: outside.export,
            },
            web: WebState {
                queries,
                health,
                metrics,
                clock,
                addresses: outside.addresses,
                clocks,
                announcements,
                stopping: CancellationToken::new(),
                listeners: Listeners::default(),
            },
            writer,
            log_end,
            writing: spawn("store-writer", &ended, move || worker.run())?,
            judging: spawn("pipeline", &ended, move || {
                background::step_back();
                pipeline.run();
            })?,
            ended,
        })
    }

    /// Judges what is in the log, writes it down and closes the store. What comes for the
    /// log in the meantime is either written or refused. Blocks.
    ///
    /// # Errors
    /// The name of a thread that had ended with a panic.
    pub(crate) fn stop(self) -> Result<(), &'static str> {
        self.log_end.close();
        let judged = self.judging.join().map_err(|_| "pipeline");
        self.writer.close();
        let written = self.writing.join().map_err(|_| "store-writer");
        judged.and(written)
    }
}

/// A thread that cancels `ended` when it ends, however that happens.
fn spawn(
    name: &str,
    ended: &CancellationToken,
    run: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let guard = ended.clone().drop_guard();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            run();
            drop(guard);
        })
}
