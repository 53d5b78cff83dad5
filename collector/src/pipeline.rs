//! The way of every batch: log, decode, match, clocks, audit, store.
//!
//! One thread, which follows the log: it is handed what was just committed, and reads what it was
//! not handed, as after a start. Until a client span is settled its batches stay
//! in the log, so a start simply begins at the log's first batch: what is judged again rests
//! on the same as what the store has, and changes nothing there. What comes for a client span
//! that was settled is joined with what the store has of it, and judged anew.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use rusqlite::Connection;
use skewtap_core::audit::{Observed, audit};
use skewtap_core::policy::Policy;
use skewtap_core::verdict::Verdict;

use crate::announcements::Announcements;
use crate::arrival_clock::ArrivalClock;
use crate::handover::{DecodedBatch, Handover};
use crate::matcher::{Match, MatchKey, MatchKind, Matcher, Past};
use crate::metrics::Metrics;
use crate::observation_log::{self, LogEnd, LogNews, LoggedBatch};
use crate::onward::Onward;
use crate::otlp_decode::decode;
use crate::peer_clocks::SharedClocks;
use crate::store::health::StoreHealth;
use crate::store::packed::Packer;
use crate::store::past;
use crate::store::verdict_row::{VerdictRow, Written};
use crate::store::writer::{Results, StoreWriter, WriteError};

/// Bytes of batches taken from the log before results are written again.
const BYTES_PER_ROUND: usize = 2 << 20;

/// The longest pause between two looks at what is due.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long to go on with what is in the log once it is closed; the rest is for the next start.
const FINISH_WITHIN: Duration = Duration::from_secs(10);

/// How long to wait after the store refused.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The thread's state.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// Reads the log.
    pub(crate) log: Connection,
    /// Where the log ends.
    pub(crate) log_end: Arc<LogEnd>,
    /// Has the batches that need not be read from the log.
    pub(crate) handover: Arc<Handover>,
    /// Writes results.
    pub(crate) writer: StoreWriter,
    /// Whether the store can be written.
    pub(crate) health: StoreHealth,
    /// Bytes of the log at which the oldest matches are settled early.
    pub(crate) crowded_log_bytes: u64,
    /// Holds what is open.
    pub(crate) matcher: Matcher,
    /// Knows the peers' clocks.
    pub(crate) clocks: SharedClocks,
    /// The thresholds of the audit.
    pub(crate) policy: Policy,
    /// Packs verdicts.
    pub(crate) packer: Packer,
    /// Stamps arrivals.
    pub(crate) clock: ArrivalClock,
    /// Where everything is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// Where verdicts go besides the store.
    pub(crate) onward: Onward,
    /// Where findings are announced.
    pub(crate) announcements: Announcements,
}

impl Pipeline {
    /// Runs until the log is closed and read to its end, or was closed some time ago.
    pub(crate) fn run(mut self) {
        let mut position = 0;
        let mut needed_from = 0;
        loop {
            position = self.match_after(position);
            self.make_room_in_the_log(position);
            if self.settle(position, &mut needed_from).is_err() {
                break;
            }
            let late = self
                .log_end
                .closed_for()
                .is_some_and(|closed| closed > FINISH_WITHIN);
            if late || self.log_end.wait_beyond(position, self.pause()) == LogNews::Closed {
                break;
            }
        }
    }

    /// Judges all that is due, and writes down a part of it at a time. `needed_from` is what the
    /// log was last said to be needed from.
    fn settle(&mut self, position: i64, needed_from: &mut i64) -> Result<(), WriteError> {
        loop {
            let judged = self.judge();
            // Before results can be seen, so that nothing seems settled that is not.
            self.publish_sizes();
            let now_needed_from = self.matcher.needed_from().unwrap_or(position + 1);
            // While the store refuses, an empty write finds out when it takes again.
            let probe = self.health.trouble().is_some();
            if !judged.is_empty() || now_needed_from > *needed_from || probe {
                *needed_from = now_needed_from;
                self.store(judged, now_needed_from)?;
            }
            self.publish_sizes();
            if !self.matcher.is_due(self.clock.now_ns()) {
                return Ok(());
            }
        }
    }

    /// Matches the batches after number `position` of the log, up to about [`BYTES_PER_ROUND`],
    /// and gives the number of the last.
    fn match_after(&mut self, mut position: i64) -> i64 {
        let mut bytes = 0_usize;
        while bytes < BYTES_PER_ROUND
            && let Some(batch) = self.handover.take_after(position)
        {
            position = batch.number;
            bytes = bytes.saturating_add(batch.bytes);
            self.match_batch(batch);
        }
        if bytes > 0 {
            return position;
        }
        for batch in self.read_after(position) {
            position = batch.number;
            if let Some(batch) = self.decoded(&batch) {
                self.match_batch(batch);
            }
        }
        position
    }

    fn read_after(&self, position: i64) -> Vec<LoggedBatch> {
        observation_log::read_after(&self.log, position, BYTES_PER_ROUND).unwrap_or_else(|error| {
            tracing::error!(%error, "the observation log cannot be read; trying again");
            std::thread::sleep(RETRY_PAUSE);
            Vec::new()
        })
    }

    fn decoded(&self, batch: &LoggedBatch) -> Option<DecodedBatch> {
        match ExportTraceServiceRequest::decode(batch.body.as_slice()) {
            Ok(request) => Some(DecodedBatch {
                number: batch.number,
                received_ns: batch.received_ns,
                bytes: batch.body.len(),
                observations: decode(&request).observations,
            }),
            Err(error) => {
                tracing::error!(%error, batch = batch.number, "a logged batch cannot be read");
                self.metrics.pipeline.unreadable_batches.inc();
                None
            }
        }
    }

    fn match_batch(&mut self, batch: DecodedBatch) {
        // A batch of before a restart may have been stamped by a clock that was ahead.
        let received_ns = batch.received_ns.min(self.clock.now_ns());
        let before = self.matcher.counts();
        for observation in batch.observations {
            self.matcher.offer(observation, batch.number, received_ns);
        }
        self.metrics.pipeline.add(before, self.matcher.counts());
    }

    /// Lets go of the older half of what is open when the log is nearly full.
    fn make_room_in_the_log(&mut self, position: i64) {
        let before = self.matcher.counts();
        if self.writer.log_bytes() > self.crowded_log_bytes
            && let Some(oldest) = self.matcher.needed_from()
        {
            let half_way = oldest + (position - oldest) / 2 + 1;
            self.matcher.give_up_before(half_way);
        }
        self.metrics.pipeline.add(before, self.matcher.counts());
    }

    /// Judges a part of what is due.
    fn judge(&mut self) -> Vec<Judged> {
        let before = self.matcher.counts();
        // One look at the store for all of them: only what comes out of this changes a verdict.
        let reading = self.log.unchecked_transaction();
        let recall = |key| recall(&self.log, &self.log_end, key);
        let due = self.matcher.take_due(self.clock.now_ns(), recall);
        drop(reading);
        self.metrics.pipeline.add(before, self.matcher.counts());
        for due in &due {
            self.clocks.learn(&due.observed);
        }
        due.iter().filter_map(|due| self.audit(due)).collect()
    }

    fn audit(&mut self, due: &Match) -> Option<Judged> {
        let known = self.clocks.known(&due.observed);
        let verdict = audit(&due.observed, &known, &self.policy)?;
        let client_start = due.observed.client.as_ref().map(|client| client.start_ns);
        let else_started_ns = client_start.unwrap_or_else(|| self.clock.now_ns());
        let row = VerdictRow::new(&verdict, due, else_started_ns, &mut self.packer);
        match row {
            Ok(row) => Some(Judged {
                row,
                told: Told {
                    key: due.key,
                    verdict,
                    kind: due.kind,
                    evidence: due.evidence,
                    sampled: is_sampled(&due.observed),
                },
            }),
            Err(error) => {
                tracing::error!(%error, trace = %due.key.trace_id, "a verdict cannot be stored");
                None
            }
        }
    }

    /// Writes until the store takes it, or fails when the collector is going down.
    fn store(&mut self, judged: Vec<Judged>, log_needed_from: i64) -> Result<(), WriteError> {
        let (rows, told): (Vec<_>, Vec<_>) = judged
            .into_iter()
            .map(|judged| (judged.row, judged.told))
            .unzip();
        let mut results = Results {
            rows: rows.into(),
            log_needed_from,
            now_ns: self.clock.now_ns(),
        };
        let written = loop {
            match self.writer.write_results(results.clone()) {
                Ok(written) => break written,
                Err(error @ WriteError::Closed) => return Err(error),
                Err(error) => {
                    self.metrics.pipeline.store_retries.inc();
                    tracing::warn!(%error, "results wait for the store");
                    let closed = self.log_end.wait_beyond(i64::MAX, RETRY_PAUSE);
                    if closed == LogNews::Closed {
                        return Err(error);
                    }
                    results.now_ns = self.clock.now_ns();
                }
            }
        };
        for (told, written) in told.iter().zip(&written) {
            self.metrics
                .verdicts
                .count(&told.verdict, told.kind, written);
            self.announcements.tell(&told.verdict, written);
            self.onward.verdict(told, written);
            if *written == Written::Outdated {
                let past = recall(&self.log, &self.log_end, told.key);
                self.matcher.look_back(told.key, past);
            }
        }
        Ok(())
    }

    fn publish_sizes(&self) {
        let open = i64::try_from(self.matcher.open()).unwrap_or(i64::MAX);
        self.metrics.pipeline.open.set(open);
        let log_bytes = i64::try_from(self.writer.log_bytes()).unwrap_or(i64::MAX);
        self.metrics.pipeline.log_bytes.set(log_bytes);
    }

    /// How long to wait for more batches before something is due.
    fn pause(&self) -> Duration {
        let Some(due_ns) = self.matcher.next_due_ns() else {
            return LONGEST_PAUSE;
        };
        let wait_ns = due_ns.saturating_sub(self.clock.now_ns()).max(0);
        Duration::from_nanos(wait_ns.unsigned_abs()).min(LONGEST_PAUSE)
    }
}

/// A verdict on its way to the store.
struct Judged {
    row: VerdictRow,
    told: Told,
}

/// A verdict with what is told of it besides.
#[derive(Debug)]
pub(crate) struct Told {
    /// What it is on.
    pub(crate) key: MatchKey,
    /// The verdict.
    pub(crate) verdict: Verdict,
    /// Which sides it rests on.
    pub(crate) kind: MatchKind,
    /// How many observations and stamps it rests on.
    pub(crate) evidence: i64,
    /// Whether anybody records spans of its trace.
    pub(crate) sampled: bool,
}

/// What the store has of a match. Tries again while the store cannot be read; `None` when the
/// collector goes down meanwhile, since the log still has what this is asked for.
fn recall(log: &Connection, log_end: &LogEnd, key: MatchKey) -> Option<Past> {
    loop {
        match past::recall(log, key) {
            Ok(past) => return past,
            Err(error) => {
                tracing::error!(%error, "earlier verdicts cannot be read; trying again");
                if log_end.wait_beyond(i64::MAX, RETRY_PAUSE) == LogNews::Closed {
                    return None;
                }
            }
        }
    }
}

/// Where neither end sent a span, the client's context tells.
fn is_sampled(observed: &Observed) -> bool {
    let has_spans = observed.client.is_some() || !observed.servers.is_empty();
    has_spans || observed.exchanges.iter().any(|exchange| exchange.sampled)
}
