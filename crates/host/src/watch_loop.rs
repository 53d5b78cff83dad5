//! The thread that looks into queues.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use crate::active_watch::{ActiveWatch, Wants};
use crate::counting::{Counters, count};
use crate::owner::Wanted;
use crate::paced_thread::Pace;
use crate::pick_up::Looked;
use crate::queue_lookup::{MOST_AT_ONCE, QueueLookup};
use crate::sample_target::SampleTarget;
use crate::settings::WatcherSettings;
use crate::sock_diag::{Look, OpenSocket};

/// Longest sleep while something is watched, so that a watch that its caller has ended is
/// noticed soon.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// The thread's state.
pub(crate) struct WatchLoop {
    lookup: QueueLookup,
    settings: WatcherSettings,
    sampler: Option<SyncSender<Arc<SampleTarget>>>,
    counters: Arc<Counters>,
    active: Vec<ActiveWatch>,
}

impl WatchLoop {
    pub(crate) const fn new(
        lookup: QueueLookup,
        settings: WatcherSettings,
        sampler: Option<SyncSender<Arc<SampleTarget>>>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            lookup,
            settings,
            sampler,
            counters,
            active: Vec::new(),
        }
    }

    /// Watches until no more watches can come; then ends those that run. Blocks while there is
    /// nothing to watch.
    pub(crate) fn run(mut self, watches: &Receiver<ActiveWatch>, mut pace: Pace) {
        loop {
            let overdrawn = pace.pause(&self.counters.watcher_cpu_ns);
            let next = match self.next_due() {
                None => watches.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => {
                    let until = due.saturating_duration_since(Instant::now());
                    watches.recv_timeout(until.min(LONGEST_SLEEP))
                }
            };
            match next {
                Ok(watch) => self.active.push(watch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.active.extend(watches.try_iter());
            self.end_watches();
            if !overdrawn {
                self.look_at_due();
            }
        }
        self.active.into_iter().for_each(ActiveWatch::finish);
    }

    fn next_due(&self) -> Option<Instant> {
        self.active.iter().map(ActiveWatch::due).min()
    }

    fn end_watches(&mut self) {
        let now = Instant::now();
        let longest = self.settings.longest_watch;
        for watch in self.active.extract_if(.., |w| w.must_end(now, longest)) {
            watch.finish();
        }
        for watch in &mut self.active {
            watch.look_a_last_time_if_ended(now);
        }
    }

    fn look_at_due(&mut self) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.active)
            .into_iter()
            .partition::<Vec<_>, _>(|watch| watch.is_due(now));
        self.active = later;
        let mut due = due.into_iter();
        loop {
            let batch: Vec<ActiveWatch> = due.by_ref().take(MOST_AT_ONCE).collect();
            if batch.is_empty() {
                return;
            }
            let asks: Vec<_> = batch.iter().map(ActiveWatch::ask).collect();
            let answers = self.lookup.look_up(&asks);
            count(&self.counters.polls, asks.len());
            for (watch, answer) in batch.into_iter().zip(answers) {
                self.take_answer(watch, answer);
            }
        }
    }

    fn take_answer(&mut self, mut watch: ActiveWatch, answer: Option<Looked>) {
        let Some(looked) = answer else {
            count(&self.counters.lost_answers, 1);
            watch.schedule();
            self.active.push(watch);
            return;
        };
        let goes_on = match watch.look(&looked, self.settings.unread_before_sampling) {
            Wants::NextLook => true,
            Wants::Nothing => false,
            Wants::OwnEnd(endpoint) => {
                count(&self.counters.polls, 1);
                match self.lookup.look_up_one(&watch.ask_own_end()) {
                    Some(own) => watch.own_end(&endpoint, &own.look),
                    None => watch.own_end(&endpoint, &Look::Refused(0)),
                }
            }
            Wants::Sampling(socket, looked) => {
                let target = self.sample(&watch, &socket, looked.before_ns);
                watch.sampled_by(target);
                true
            }
        };
        if goes_on && !watch.has_looked_last() {
            self.active.push(watch);
        } else {
            watch.finish();
        }
    }

    /// Has the holder of a socket sampled; for a socket not accepted yet, the holder of the
    /// listener. `None` when that is refused.
    fn sample(
        &mut self,
        watch: &ActiveWatch,
        socket: &OpenSocket,
        unread_ns: i64,
    ) -> Option<Arc<SampleTarget>> {
        let sampler = self.sampler.as_ref()?;
        let mut holder = *socket;
        if holder.inode == 0 {
            count(&self.counters.polls, 1);
            match self.lookup.look_up_one(&watch.ask_listener())?.look {
                Look::Open(listener) => holder = listener,
                Look::Remembered(_) | Look::Absent | Look::Refused(_) => return None,
            }
        }
        let target = Arc::new(SampleTarget::new(Wanted::from(&holder), unread_ns));
        if sampler.try_send(Arc::clone(&target)).is_err() {
            count(&self.counters.sampling_refused, 1);
            return None;
        }
        Some(target)
    }
}
