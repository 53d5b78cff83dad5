//! New findings, told to whoever listens at that moment.

use std::sync::Arc;

use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::verdict::Verdict;
use tokio::sync::broadcast;

use crate::store::verdict_row::Written;

/// Findings kept for listeners that are behind. One further behind misses some, and is told.
const KEPT: usize = 256;

/// A flagged verdict that the store has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    /// The trace.
    pub(crate) trace_id: TraceId,
    /// The client's span.
    pub(crate) client_span_id: SpanId,
    /// Whether an earlier verdict on the same span was replaced.
    pub(crate) is_revision: bool,
    /// First request byte, in nanoseconds since the Unix epoch.
    pub(crate) started_ns: Option<i64>,
    /// `service.name` of the client.
    pub(crate) client_service: Option<String>,
    /// `service.name` of the server.
    pub(crate) server_service: Option<String>,
    /// Low-cardinality path.
    pub(crate) route: Option<String>,
    /// Request method.
    pub(crate) method: String,
    /// Request path without the query.
    pub(crate) path: String,
    /// Client minus server in nanoseconds, signed.
    pub(crate) gap_ns: Option<i64>,
    /// Nanoseconds nothing explains.
    pub(crate) unexplained_ns: Option<i64>,
    /// Names of the causes found, each once.
    pub(crate) causes: Vec<&'static str>,
}

/// Where findings are announced; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Announcements(broadcast::Sender<Arc<Announced>>);

impl Announcements {
    /// Nobody listens yet.
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }

    /// Tells listeners of a verdict, if it is flagged and the store did not know it. Never waits.
    pub(crate) fn tell(&self, verdict: &Verdict, written: &Written) {
        if !verdict.flagged || !written.is_news() || self.0.receiver_count() == 0 {
            return;
        }
        let mut causes: Vec<_> = verdict.findings.iter().map(|found| found.cause).collect();
        causes.sort_unstable();
        causes.dedup();
        let ledger = verdict.ledger.as_ref();
        let announced = Announced {
            trace_id: verdict.trace_id,
            client_span_id: verdict.client_span_id,
            is_revision: *written != Written::New,
            started_ns: verdict.started_ns,
            client_service: verdict.client_service.clone(),
            server_service: verdict.server_service.clone(),
            route: verdict.route.clone(),
            method: verdict.method.clone(),
            path: verdict.path.clone(),
            gap_ns: verdict.gap_ns(),
            unexplained_ns: ledger.map(|ledger| ledger.unexplained_ns()),
            causes,
        };
        // The last listener may have left in the meantime.
        drop(self.0.send(Arc::new(announced)));
    }

    /// Everything announced from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Announced>> {
        self.0.subscribe()
    }
}
