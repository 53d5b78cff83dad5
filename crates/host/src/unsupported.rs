//! The same API where the kernel tells nothing of queues and processes.

use skewtap_core::exchange::SourceState;

use crate::{
    Availability, WatchHandle, WatchRequest, WatchResult, WatcherCounters, WatcherSettings,
};

/// Would watch receive queues; here every watch ends at once.
#[derive(Debug)]
pub struct Watcher {
    availability: Availability,
}

impl Watcher {
    /// Notes that nothing is available.
    #[must_use]
    pub fn start(settings: WatcherSettings) -> Self {
        let state = |wanted| {
            if wanted {
                SourceState::Unavailable("available on Linux only".to_owned())
            } else {
                SourceState::Off
            }
        };
        Self {
            availability: Availability {
                queues: state(settings.queues),
                processes: state(settings.processes),
            },
        }
    }

    /// Says that nothing is available.
    #[must_use]
    pub const fn availability(&self) -> &Availability {
        &self.availability
    }

    /// Calls `done` at once with [`WatchResult::not_watched`].
    pub fn watch(
        &self,
        _request: WatchRequest,
        done: impl FnOnce(WatchResult) + Send + 'static,
    ) -> WatchHandle {
        done(WatchResult::not_watched());
        WatchHandle::new().0
    }

    /// Counts of nothing.
    #[must_use]
    pub fn counters(&self) -> WatcherCounters {
        WatcherCounters::default()
    }
}
