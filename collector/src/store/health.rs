//! Whether the store takes what it is given.

use std::sync::{Arc, Mutex, PoisonError};

/// The last word on whether the store can be written; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreHealth(Arc<Mutex<Option<String>>>);

impl StoreHealth {
    /// Why the last commit failed; `None` when it did not.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Notes how a commit went, and logs when that changes.
    pub(super) fn note(&self, trouble: Option<String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &trouble) {
            (None, Some(why)) => tracing::error!(why, "the store refuses to be written"),
            (Some(_), None) => tracing::info!("the store can be written again"),
            _ => {}
        }
        *known = trouble;
    }
}
