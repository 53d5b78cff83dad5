//! What is known of the peers' clocks, for the pipeline to add to and for the web to read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use skewtap_core::audit::{KnownClocks, Observed};

use super::{Peer, PeerClocks, PeerReport};

/// Shared by its clones. Nobody holds it for longer than one peer takes.
#[derive(Clone, Debug)]
pub(crate) struct SharedClocks(Arc<Mutex<PeerClocks>>);

impl SharedClocks {
    /// Knows no peer. Clocks are taken to drift by at most `drift_ppm` against the proxy's.
    pub(crate) fn new(drift_ppm: i64) -> Self {
        Self(Arc::new(Mutex::new(PeerClocks::new(drift_ppm))))
    }

    /// Takes what a match says of its peers' clocks, if it can be relied on for that.
    pub(crate) fn learn(&self, observed: &Observed) {
        self.lock().learn(observed);
    }

    /// What is known of the clocks of a match's peers at the time of its exchanges.
    pub(crate) fn known(&self, observed: &Observed) -> KnownClocks {
        self.lock().known(observed)
    }

    /// What is known of every peer, those heard of last first. Takes some 50 µs for each.
    pub(crate) fn reports(&self) -> Vec<PeerReport> {
        let peers: Vec<Peer> = {
            let clocks = self.lock();
            let newest_first = clocks.by_age.iter().rev();
            newest_first.map(|(_, peer)| peer.clone()).collect()
        };
        // The pipeline may go on between two of them.
        let report = |peer| self.lock().report(peer);
        peers.into_iter().filter_map(report).collect()
    }

    fn lock(&self) -> MutexGuard<'_, PeerClocks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
