//! The task that turns finished exchanges into records, off the path of requests.

use std::sync::Arc;
use std::time::Duration;

use skewtap_core::exchange::{SourceState, Sources};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::capture_thread::SeenPackets;
use crate::config::Config;
use crate::note::Note;
use crate::pending::{Complete, Pending, Waits};
use crate::record::Recorder;
use crate::ship::Records;

/// Notes taken at once.
const NOTES_AT_ONCE: usize = 4_096;

/// How long notes gather before they are looked at. A queue that nobody waits at costs those who
/// fill it no system call; without the pause each exchange would pay for waking this task.
const GATHERING: Duration = Duration::from_millis(10);

/// What the finisher works with.
pub(crate) struct Setup {
    recorder: Recorder,
    waits: Waits,
}

impl Setup {
    pub(crate) fn new(
        config: &Arc<Config>,
        sources: Sources,
        packets: Option<SeenPackets>,
    ) -> Self {
        let captures = sources.capture == SourceState::Used;
        let waits = Waits {
            watch: config.longest_watch,
            activity: config.activity_wait,
            packets: if captures {
                config.packet_grace
            } else {
                Duration::ZERO
            },
        };
        Self {
            recorder: Recorder::new(sources, packets),
            waits,
        }
    }
}

/// Runs until all that can send notes are gone and every exchange has become a record.
pub(crate) async fn run(setup: Setup, mut notes: mpsc::Receiver<Note>, records: Records) {
    let Setup {
        mut recorder,
        waits,
    } = setup;
    let mut pending = Pending::new(waits);
    let mut batch = Vec::with_capacity(NOTES_AT_ONCE);
    let mut open = true;
    while open || pending.next_due().is_some() {
        tokio::select! {
            taken = notes.recv_many(&mut batch, NOTES_AT_ONCE), if open => open = taken > 0,
            () = until(pending.next_due()) => {}
        }
        if open {
            sleep(GATHERING).await;
        }
        let now = Instant::now();
        for note in batch.drain(..) {
            let overflow = match note {
                Note::Finished(exchange) => pending.finished(exchange, now),
                Note::Activity { id, at, watch } => {
                    pending.activity(id, at, watch, now);
                    None
                }
                Note::Watched { id } => {
                    pending.look_again(id, now);
                    None
                }
            };
            if let Some(complete) = overflow {
                finish(&mut recorder, &complete, &records);
            }
        }
        while let Some(complete) = pending.due(now) {
            finish(&mut recorder, &complete, &records);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn finish(recorder: &mut Recorder, complete: &Complete, records: &Records) {
    let Complete { exchange, activity } = complete;
    if let Some(record) = recorder.record(exchange, *activity) {
        records.add(&record);
    }
}
