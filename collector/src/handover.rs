//! Batches on the short way from the receivers to the pipeline: what was decoded before it was
//! acknowledged need not be read from the log and decoded again.
//!
//! Only a help: whatever does not fit is read from the log, which has everything.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::observation::Observation;

/// Bytes of bodies whose observations are held at most. In memory they take a few times that.
const MOST_BYTES: usize = 4 << 20;

/// The observations of a batch that is in the log.
#[derive(Debug)]
pub(crate) struct DecodedBatch {
    /// Its number in the log.
    pub(crate) number: i64,
    /// When it was received, in nanoseconds since the Unix epoch on the collector's clock.
    pub(crate) received_ns: i64,
    /// Bytes of its body.
    pub(crate) bytes: usize,
    /// What it says.
    pub(crate) observations: Vec<Observation>,
}

/// The batches last committed, in the order of the log; some may be missing.
#[derive(Debug)]
pub(crate) struct Handover(Mutex<Held>);

#[derive(Debug)]
struct Held {
    /// Each with the number of the batch before it in the log.
    batches: VecDeque<(i64, DecodedBatch)>,
    bytes: usize,
    last_batch: i64,
}

impl Handover {
    /// Nothing yet, beside a log whose last batch has the number `last_batch`.
    pub(crate) fn new(last_batch: i64) -> Self {
        Self(Mutex::new(Held {
            batches: VecDeque::new(),
            bytes: 0,
            last_batch,
        }))
    }

    /// Takes a batch that was committed after all those given before. One that does not fit is
    /// left to the log.
    pub(crate) fn put(&self, batch: DecodedBatch) {
        let mut held = self.lock();
        let before = std::mem::replace(&mut held.last_batch, batch.number);
        if held.bytes.saturating_add(batch.bytes) <= MOST_BYTES {
            held.bytes += batch.bytes;
            held.batches.push_back((before, batch));
        }
    }

    /// The batch that comes next after number `position` in the log, if it is here; what lies
    /// before it is let go.
    pub(crate) fn take_after(&self, position: i64) -> Option<DecodedBatch> {
        let mut held = self.lock();
        while let Some((before, batch)) = held.batches.front() {
            if batch.number > position && *before != position {
                return None;
            }
            let (_, batch) = held.batches.pop_front()?;
            held.bytes = held.bytes.saturating_sub(batch.bytes);
            if batch.number > position {
                return Some(batch);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(number: i64, bytes: usize) -> DecodedBatch {
        DecodedBatch {
            number,
            received_ns: 1,
            bytes,
            observations: vec![],
        }
    }

    fn next(handover: &Handover, position: i64) -> Option<i64> {
        handover.take_after(position).map(|batch| batch.number)
    }

    #[test]
    fn batches_come_in_the_order_of_the_log() {
        let handover = Handover::new(7);
        for number in [8, 9, 11] {
            handover.put(batch(number, 1));
        }
        assert_eq!(next(&handover, 7), Some(8));
        assert_eq!(next(&handover, 8), Some(9));
        assert_eq!(next(&handover, 9), Some(11));
        assert_eq!(next(&handover, 11), None);
    }

    #[test]
    fn nothing_is_given_while_the_log_has_more_before_it() {
        let handover = Handover::new(7);
        handover.put(batch(8, 1));
        handover.put(batch(9, 1));
        // Batches up to 7 are still to be read from the log.
        assert_eq!(next(&handover, 3), None);
        // The log was read further than what was handed over.
        assert_eq!(next(&handover, 8), Some(9));
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_log() {
        let handover = Handover::new(0);
        handover.put(batch(1, MOST_BYTES));
        handover.put(batch(2, 1));
        assert_eq!(next(&handover, 0), Some(1));
        handover.put(batch(3, 1));
        assert_eq!(next(&handover, 1), None);
        assert_eq!(next(&handover, 2), Some(3));
    }
}
