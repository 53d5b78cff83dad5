//! Records that wait for the collector, already in the form in which they are sent.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use skewtap_core::exchange_attributes::Writer;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::span_batch::SpanBatch;
use crate::record::Record;

/// Most records of one request to the collector.
const BATCH: usize = 512;

/// How long the first record of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_millis(200);

/// A queue with a fixed room.
#[derive(Debug)]
pub(super) struct Queue {
    /// Most records in it.
    room: usize,
    waiting: Mutex<Waiting>,
    /// There is a batch that was not there before, or it became full, or no more will come.
    news: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    writer: Writer,
    /// The last one is filled while it waits.
    batches: VecDeque<Opened>,
    records: usize,
    /// A batch that has been sent, for its memory.
    spare: Option<SpanBatch>,
    closed: bool,
}

#[derive(Debug)]
struct Opened {
    batch: SpanBatch,
    at: Instant,
}

impl Queue {
    /// An empty queue for up to `room` records.
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            waiting: Mutex::default(),
            news: Notify::new(),
        }
    }

    /// Takes a record without waiting; whether there was room.
    pub(super) fn add(&self, record: &Record<'_>) -> bool {
        let mut waiting = self.waiting();
        let Waiting {
            writer,
            batches,
            records,
            spare,
            closed,
        } = &mut *waiting;
        if *closed || *records >= self.room {
            return false;
        }
        let has_space = |opened: &Opened| opened.batch.len() < BATCH;
        if !batches.back().is_some_and(has_space) {
            batches.push_back(Opened {
                batch: spare.take().unwrap_or_default(),
                at: Instant::now(),
            });
            self.news.notify_one();
        }
        if let Some(last) = batches.back_mut() {
            last.batch.add(record, writer);
            *records += 1;
            if self.is_full(&last.batch) {
                self.news.notify_one();
            }
        }
        true
    }

    /// No record will come any more.
    pub(super) fn close(&self) {
        self.waiting().closed = true;
        self.news.notify_one();
    }

    /// Takes no record any more, and lets go of those in it; says how many these were.
    pub(super) fn abandon(&self) -> usize {
        let mut waiting = self.waiting();
        waiting.closed = true;
        waiting.batches.clear();
        std::mem::take(&mut waiting.records)
    }

    /// Waits for a batch that is full or has waited long enough; `None` once the queue is closed
    /// and empty.
    pub(super) async fn next(&self) -> Option<SpanBatch> {
        loop {
            let until = {
                let mut waiting = self.waiting();
                let due = match waiting.batches.front() {
                    None if waiting.closed => return None,
                    None => None,
                    Some(first) => Some(first.at + BATCH_WAIT),
                };
                let now = Instant::now();
                let closed = waiting.closed;
                let ready = |first: &mut Opened| {
                    closed || first.at + BATCH_WAIT <= now || self.is_full(&first.batch)
                };
                if let Some(first) = waiting.batches.pop_front_if(ready) {
                    waiting.records = waiting.records.saturating_sub(first.batch.len());
                    return Some(first.batch);
                }
                due
            };
            match until {
                Some(due) => {
                    // Which of the two it was is seen above.
                    let (Ok(()) | Err(_)) = timeout_at(due, self.news.notified()).await;
                }
                None => self.news.notified().await,
            }
        }
    }

    /// Takes back the memory of a batch that was sent.
    pub(super) fn recycle(&self, sent: Bytes) {
        self.waiting().spare = SpanBatch::in_place_of(sent);
    }

    /// Records in it.
    pub(super) fn len(&self) -> usize {
        self.waiting().records
    }

    /// A batch that is as long as one may be, or fills the queue.
    fn is_full(&self, batch: &SpanBatch) -> bool {
        batch.len() >= BATCH.min(self.room)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::ship::span_batch::tests::record;

    /// The records of the batches that are ready now.
    fn ready(queue: &Queue) -> Vec<Option<usize>> {
        let mut context = Context::from_waker(Waker::noop());
        let next = || match pin!(queue.next()).poll(&mut context) {
            Poll::Ready(batch) => Some(batch.map(|batch| batch.len())),
            Poll::Pending => None,
        };
        std::iter::from_fn(next).take(10).collect()
    }

    #[tokio::test]
    async fn what_finds_no_room_is_refused() {
        let queue = Queue::new(2);
        let taken = [1, 2, 3].map(|number| queue.add(&record(number, true)));
        assert_eq!(taken, [true, true, false]);
        assert_eq!(queue.len(), 2);
        assert_eq!(ready(&queue), [Some(2)]);
        assert!(queue.add(&record(4, true)), "there is room again");
    }

    #[tokio::test]
    async fn a_full_batch_does_not_wait_and_the_rest_does() {
        let queue = Queue::new(10 * BATCH);
        for _ in 0..2 * BATCH + 1 {
            assert!(queue.add(&record(1, true)));
        }
        assert_eq!(ready(&queue), [Some(BATCH), Some(BATCH)]);
        assert_eq!(queue.len(), 1);
        let began = Instant::now();
        assert_eq!(queue.next().await.map(|batch| batch.len()), Some(1));
        assert!(began.elapsed() <= BATCH_WAIT * 10, "{:?}", began.elapsed());
        assert_eq!(ready(&queue), []);
    }

    #[tokio::test]
    async fn after_the_end_what_is_left_comes_at_once_and_then_nothing() {
        let queue = Queue::new(BATCH);
        assert!(queue.add(&record(1, true)));
        assert_eq!(ready(&queue), []);
        queue.close();
        assert_eq!(queue.next().await.map(|batch| batch.len()), Some(1));
        assert!(queue.next().await.is_none());
    }

    #[tokio::test]
    async fn what_was_abandoned_is_counted_and_no_more_is_taken() {
        let queue = Queue::new(BATCH);
        for number in [1, 2, 3] {
            assert!(queue.add(&record(number, true)));
        }
        assert_eq!(queue.abandon(), 3);
        assert!(!queue.add(&record(4, true)));
        assert_eq!(queue.len(), 0);
        assert!(queue.next().await.is_none());
    }
}
