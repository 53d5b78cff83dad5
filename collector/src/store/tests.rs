use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use skewtap_core::audit::{KnownClocks, audit};
use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::policy::Policy;
use skewtap_core::verdict::Verdict;
use skewtap_simulator::scenario::Scenario;
use skewtap_simulator::world::World;
use tempfile::{TempDir, tempdir};

mod aggregates;
mod listing;
mod migrating;
mod week;

use super::Store;
use super::packed::Packer;
use super::query::{EdgeFilter, Filter, Queries};
use super::retention::Retention;
use super::verdict_row::{Before, VerdictRow, Written};
use super::writer::{self, AppendError, Limits, Results, StoreWriter};
use crate::matcher::{Match, MatchKey, MatchKind};
use crate::observation_log::{self, LogEnd, LogNews};

const S: i64 = 1_000_000_000;

/// A store with a running writer.
struct Bench {
    directory: TempDir,
    writer: StoreWriter,
    log_end: std::sync::Arc<LogEnd>,
    thread: std::thread::JoinHandle<()>,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let directory = tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let (writer, worker) = writer::prepare(store, limits).unwrap();
        let log_end = worker.log_end();
        Self {
            directory,
            writer,
            log_end,
            thread: std::thread::spawn(|| worker.run()),
        }
    }

    fn write(&self, rows: Vec<VerdictRow>, now_ns: i64) -> Vec<Written> {
        let results = Results {
            rows: rows.into(),
            log_needed_from: 0,
            now_ns,
        };
        self.writer.write_results(results).unwrap()
    }

    fn queries(&self) -> Queries {
        Queries::new(self.directory.path().join("skewtap.db"))
    }

    fn close(self) -> TempDir {
        self.writer.close();
        self.thread.join().unwrap();
        self.directory
    }
}

fn limits() -> Limits {
    Limits {
        log_bytes: 1 << 20,
        retention: Retention::default(),
    }
}

/// The verdict on client span number `n`.
fn verdict(n: u64) -> Verdict {
    let observed = Scenario::healthy(S / 100).observe(&World::PLAIN);
    let verdict = audit(&observed, &KnownClocks::default(), &Policy::default()).unwrap();
    Verdict {
        client_span_id: span_id(n),
        started_ns: Some(S),
        ..verdict
    }
}

fn row(n: u64, evidence: i64) -> VerdictRow {
    row_of(&verdict(n), evidence)
}

/// `verdict` ready to be written, as judged from some observations. It revises one that rests on
/// one less.
pub(crate) fn row_of(verdict: &Verdict, evidence: i64) -> VerdictRow {
    row_from(Scenario::healthy(S / 100), verdict, evidence)
}

fn row_from(scenario: Scenario, verdict: &Verdict, evidence: i64) -> VerdictRow {
    let found = Match {
        key: MatchKey {
            trace_id: verdict.trace_id,
            span_id: verdict.client_span_id,
        },
        observed: scenario.observe(&World::PLAIN),
        others: vec![],
        evidence,
        revises: evidence - 1,
        kind: MatchKind::Complete,
    };
    VerdictRow::new(verdict, &found, 0, &mut Packer::new().unwrap()).unwrap()
}

fn span_id(n: u64) -> SpanId {
    SpanId::from_bytes(&n.to_be_bytes()).unwrap()
}

fn trace_id() -> TraceId {
    verdict(1).trace_id
}

/// Runs `body` where blocking calls are allowed, within a runtime.
fn on_runtime(body: impl FnOnce(&tokio::runtime::Runtime)) {
    body(&tokio::runtime::Runtime::new().unwrap());
}

#[test]
fn a_verdict_is_replaced_only_by_one_that_knows_what_it_rests_on() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        let mut early = verdict(1);
        early.flagged = true;
        let early = row_of(&early, 5);
        assert_eq!(bench.write(vec![early.clone()], 1), [Written::New]);
        assert_eq!(bench.write(vec![early.clone()], 2), [Written::Kept]);
        assert_eq!(bench.write(vec![row(1, 4)], 3), [Written::Kept]);
        // Judged from something else, by one who did not know of the first.
        for evidence in [1, 5, 9] {
            let ignorant = row_from(Scenario::healthy(S / 50), &verdict(1), evidence);
            assert_eq!(bench.write(vec![ignorant], 3), [Written::Outdated]);
        }
        let stored = || runtime.block_on(bench.queries().exchange(trace_id(), span_id(1)));
        let first = stored().unwrap().unwrap();
        assert_eq!(
            (first.revision, first.stored_ns, first.flagged),
            (1, 1, true)
        );
        let before = Before {
            flagged: true,
            causes: vec![],
        };
        assert_eq!(
            bench.write(vec![row(1, 6), row(2, 1)], 4),
            [Written::Revised(before), Written::New]
        );
        let second = stored().unwrap().unwrap();
        assert_eq!(
            (second.revision, second.stored_ns, second.flagged),
            (2, 4, false)
        );
        bench.close();
    });
}

#[test]
fn verdicts_that_began_together_are_paged_one_by_one() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        bench.write((1..=5).map(|n| row(n, 1)).collect(), 1);
        let mut filter = Filter {
            limit: 2,
            ..Filter::default()
        };
        let mut seen = Vec::new();
        loop {
            let page = runtime
                .block_on(bench.queries().exchanges(filter.clone()))
                .unwrap();
            seen.extend(
                page.verdicts
                    .into_iter()
                    .map(|verdict| verdict.client_span_id),
            );
            match page.next {
                Some(next) => filter.after = Some(next.to_string().parse().unwrap()),
                None => break,
            }
        }
        assert_eq!(seen, [5, 4, 3, 2, 1].map(span_id));
        bench.close();
    });
}

#[test]
fn the_log_is_refused_when_full_and_taken_again_once_cut_off() {
    on_runtime(|runtime| {
        let bench = Bench::new(Limits {
            log_bytes: 100,
            ..limits()
        });
        let append = |bytes: usize| {
            let body = Bytes::from(vec![7; bytes]);
            runtime.block_on(bench.writer.append(S, body, vec![]))
        };
        append(60).unwrap();
        append(60).unwrap();
        assert!(matches!(append(1), Err(AppendError::LogFull)));
        let cut = |log_needed_from| {
            let rows = Vec::new().into();
            bench
                .writer
                .write_results(Results {
                    rows,
                    log_needed_from,
                    now_ns: S,
                })
                .unwrap()
        };
        cut(2);
        assert_eq!(bench.writer.log_bytes(), 60);
        append(1).unwrap();
        cut(4);
        assert_eq!(bench.writer.log_bytes(), 0);
        // Numbers go on although the log is empty, or a reader would pass over new batches.
        append(5).unwrap();
        assert_eq!(bench.log_end.wait_beyond(3, Duration::ZERO), LogNews::More);
        assert_eq!(
            bench.log_end.wait_beyond(4, Duration::ZERO),
            LogNews::Nothing
        );
        let directory = bench.close();
        let store = Store::open(directory.path()).unwrap();
        assert_eq!(observation_log::extent(&store.connection).unwrap(), (5, 4));
        let batches = observation_log::read_after(&store.connection, 0, usize::MAX).unwrap();
        assert_eq!(batches.len(), 1);
        assert_eq!((batches[0].number, batches[0].received_ns), (4, S));
        assert_eq!(batches[0].body, [7; 5]);
    });
}

#[test]
fn more_than_fits_in_the_queue_is_refused_at_once() {
    let directory = tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    // The writer does not run, so nothing leaves the queue.
    let (writer, _worker) = writer::prepare(store, limits()).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut append = |mebibytes: usize| {
        let body = Bytes::from(vec![0; mebibytes << 20]);
        let mut appending = Box::pin(writer.append(S, body, vec![]));
        let answer = appending.as_mut().poll(&mut context);
        (answer, appending)
    };
    let (first, _waiting) = append(40);
    assert!(first.is_pending());
    let (second, _) = append(40);
    assert!(
        matches!(second, Poll::Ready(Err(AppendError::Busy))),
        "{second:?}"
    );
    let (third, _also_waiting) = append(20);
    assert!(third.is_pending());
}

#[test]
fn a_small_read_still_gives_one_batch() {
    on_runtime(|runtime| {
        let bench = Bench::new(limits());
        for _ in 0..3 {
            runtime
                .block_on(bench.writer.append(S, Bytes::from(vec![1; 50]), vec![]))
                .unwrap();
        }
        let directory = bench.close();
        let store = Store::open(directory.path()).unwrap();
        let read = |position, bytes| {
            let read = observation_log::read_after(&store.connection, position, bytes).unwrap();
            read.iter().map(|batch| batch.number).collect::<Vec<_>>()
        };
        assert_eq!(read(0, 1), [1]);
        assert_eq!(read(1, 60), [2, 3]);
        assert_eq!(read(3, 60), [0_i64; 0]);
    });
}

#[test]
fn verdicts_that_are_too_old_are_let_go() {
    on_runtime(|runtime| {
        let bench = Bench::new(Limits {
            retention: Retention {
                age: Duration::from_secs(60),
                ..Retention::default()
            },
            ..limits()
        });
        bench.write(vec![row(1, 1)], S);
        bench.write(vec![row(2, 1)], 40 * S);
        bench.write(vec![], 62 * S);
        let page = runtime
            .block_on(bench.queries().exchanges(Filter::default()))
            .unwrap();
        let left: Vec<_> = page
            .verdicts
            .iter()
            .map(|verdict| verdict.client_span_id)
            .collect();
        assert_eq!(left, [span_id(2)]);
        bench.close();
    });
}

#[test]
fn the_oldest_verdicts_are_let_go_when_there_are_too_many() {
    on_runtime(|runtime| {
        let bench = Bench::new(Limits {
            retention: Retention {
                bytes: 200_000,
                ..Retention::default()
            },
            ..limits()
        });
        for n in 1..=200 {
            let now = i64::try_from(n).unwrap() * 6 * S;
            bench.write(vec![row(n, 1)], now);
        }
        let filter = Filter {
            limit: 1000,
            ..Filter::default()
        };
        let page = runtime.block_on(bench.queries().exchanges(filter)).unwrap();
        let left = page.verdicts.len();
        assert!((20..200).contains(&left), "{left} are left");
        // Newest first, and the newest are all there.
        let newest = u64::try_from(200 - left + 1).unwrap();
        let expected: Vec<_> = (newest..=200).rev().map(span_id).collect();
        let found: Vec<_> = page
            .verdicts
            .iter()
            .map(|verdict| verdict.client_span_id)
            .collect();
        assert_eq!(found, expected);
        bench.close();
    });
}

#[test]
fn a_clock_that_was_set_back_deletes_nothing_and_keeps_taking_verdicts() {
    on_runtime(|runtime| {
        let bench = Bench::new(Limits {
            retention: Retention {
                age: Duration::from_secs(60),
                ..Retention::default()
            },
            ..limits()
        });
        bench.write(vec![row(1, 1)], 10_000 * S);
        assert_eq!(bench.write(vec![row(2, 1)], 50 * S), [Written::New]);
        let revised = bench.write(vec![row(1, 2)], 51 * S);
        assert!(matches!(*revised, [Written::Revised(_)]), "{revised:?}");
        let page = runtime.block_on(bench.queries().exchanges(Filter::default()));
        assert_eq!(page.unwrap().verdicts.len(), 2);
        bench.close();
    });
}
