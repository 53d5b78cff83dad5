//! The entry: start a watcher, give it messages to watch.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use skewtap_core::exchange::SourceState;

use crate::active_watch::{ActiveWatch, Place};
use crate::availability::Availability;
use crate::counters::WatcherCounters;
use crate::counting::{Counters, count};
use crate::paced_thread::Pace;
use crate::probe;
use crate::queue_lookup::QueueLookup;
use crate::sample_target::SampleTarget;
use crate::sampler;
use crate::settings::WatcherSettings;
use crate::watch::{WatchHandle, WatchRequest, WatchResult};
use crate::watch_loop::WatchLoop;

/// Watches that may wait for the sampler to take note of them.
const SAMPLER_QUEUE: usize = 64;

/// Watches receive queues and the processes that leave them unread.
///
/// One thread looks into queues and one samples processes; both block while there is nothing to
/// do. Dropping the watcher ends its threads and all watches, and calls back for each.
pub struct Watcher {
    settings: WatcherSettings,
    availability: Availability,
    counters: Arc<Counters>,
    running: Arc<AtomicUsize>,
    /// `None` when queues are not watched.
    watches: Option<SyncSender<ActiveWatch>>,
    threads: Vec<JoinHandle<()>>,
}

impl Watcher {
    /// Tries which sources are at work and starts the threads. What is not available is told by
    /// [`Watcher::availability`]; watches then end at once.
    #[must_use]
    pub fn start(settings: WatcherSettings) -> Self {
        let mut watcher = Self {
            settings,
            availability: probe::availability(&settings),
            counters: Arc::default(),
            running: Arc::default(),
            watches: None,
            threads: Vec::new(),
        };
        if watcher.availability.queues == SourceState::Used
            && let Err(error) = watcher.start_threads()
        {
            let why = format!("the watcher could not be started: {error}");
            watcher.availability.queues = SourceState::Unavailable(why.clone());
            watcher.availability.processes = SourceState::Unavailable(why);
        }
        watcher
    }

    /// Which sources are at work.
    #[must_use]
    pub const fn availability(&self) -> &Availability {
        &self.availability
    }

    /// Watches a message until its receiver has read it. Never blocks.
    ///
    /// `done` is called exactly once: on the watcher's thread when the watch has ended, or here
    /// and at once, with [`WatchResult::not_watched`], when queues are not watched or too many
    /// watches run. It must be quick and must not panic: all other watches wait for it.
    pub fn watch(
        &self,
        request: WatchRequest,
        done: impl FnOnce(WatchResult) + Send + 'static,
    ) -> WatchHandle {
        let (handle, end) = WatchHandle::new();
        let Some(watches) = &self.watches else {
            done(WatchResult::not_watched());
            return handle;
        };
        let Some(place) = Place::take(&self.running, self.settings.most_watches) else {
            count(&self.counters.refused, 1);
            done(WatchResult::not_watched());
            return handle;
        };
        let sample = self.availability.processes == SourceState::Used;
        let watch = ActiveWatch::new(request, end, Box::new(done), place, sample);
        // The queue has as many places as there can be watches, so only an ended thread refuses.
        match watches.try_send(watch) {
            Ok(()) => count(&self.counters.watched, 1),
            Err(TrySendError::Full(watch) | TrySendError::Disconnected(watch)) => {
                count(&self.counters.refused, 1);
                watch.finish();
            }
        }
        handle
    }

    /// What was done and what could not be done since the start.
    #[must_use]
    pub fn counters(&self) -> WatcherCounters {
        self.counters.read()
    }

    fn start_threads(&mut self) -> io::Result<()> {
        let lookup = QueueLookup::open()?;
        let sampler = if self.availability.processes == SourceState::Used {
            let (targets, queue) = sync_channel(SAMPLER_QUEUE);
            self.threads.push(self.start_sampler(queue)?);
            Some(targets)
        } else {
            None
        };
        let (watches, queue) = sync_channel(self.settings.most_watches.max(1));
        let watch_loop = WatchLoop::new(lookup, self.settings, sampler, Arc::clone(&self.counters));
        let percent = self.settings.cpu_budget_percent;
        self.threads.push(
            thread::Builder::new()
                .name("skewtap-queues".to_owned())
                .spawn(move || watch_loop.run(&queue, Pace::of_this_thread(percent)))?,
        );
        self.watches = Some(watches);
        Ok(())
    }

    fn start_sampler(&self, queue: Receiver<Arc<SampleTarget>>) -> io::Result<JoinHandle<()>> {
        let counters = Arc::clone(&self.counters);
        let interval = self.settings.sampling_interval;
        let percent = self.settings.cpu_budget_percent;
        thread::Builder::new()
            .name("skewtap-sampler".to_owned())
            .spawn(move || {
                let pace = Pace::of_this_thread(percent);
                sampler::run(&queue, interval, pace, &counters);
            })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watches = None;
        for thread in self.threads.drain(..).rev() {
            // A callback may own the last handle of the watcher; a thread cannot wait for itself.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread of the watcher has panicked");
            }
        }
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("settings", &self.settings)
            .field("availability", &self.availability)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
