//! What is told of one flagged verdict.

use skewtap_core::ids::{SpanId, TraceId};
use skewtap_core::ledger::Explanation;
use skewtap_core::verdict::Verdict;

/// What stands for a name that is not known.
const UNKNOWN: &str = "unknown";

/// The cause named where none is known.
const UNEXPLAINED: &str = "unexplained";

/// What messages are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GroupKey {
    pub(super) client_service: String,
    pub(super) server_service: String,
    pub(super) route: String,
    pub(super) cause: String,
}

/// A flagged verdict, as far as a message tells it.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(super) trace_id: TraceId,
    pub(super) client_span_id: SpanId,
    pub(super) key: GroupKey,
    /// Where the time went.
    pub(super) segment: &'static str,
    /// `None` where no cause is named.
    pub(super) confidence: Option<&'static str>,
    /// How much time that is, in nanoseconds: what is proven.
    pub(super) lost_ns: i64,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) client_ns: Option<i64>,
    pub(super) server_ns: Option<i64>,
    /// The address of the page about it.
    pub(super) page: String,
}

impl Notice {
    /// One notice for each cause of a flagged verdict, or one for the largest gap where no cause
    /// is named; `page` is the address at which the verdict is shown.
    pub(crate) fn of(verdict: &Verdict, page: &str) -> Vec<Self> {
        if !verdict.flagged {
            return Vec::new();
        }
        let notice = |cause: &str, segment, confidence, lost_ns| Self {
            trace_id: verdict.trace_id,
            client_span_id: verdict.client_span_id,
            key: key(verdict, cause),
            segment,
            confidence,
            lost_ns,
            method: verdict.method.clone(),
            path: verdict.path.clone(),
            client_ns: verdict
                .client
                .filter(|_| verdict.client_from_span)
                .map(|client| client.lo()),
            server_ns: verdict.server_ns,
            page: page.to_owned(),
        };
        if verdict.findings.is_empty() {
            let gaps = verdict
                .ledger
                .iter()
                .flat_map(|ledger| &ledger.rows)
                .filter(|row| row.segment.is_gap() && row.explanation == Explanation::Unexplained);
            let largest = gaps.max_by_key(|row| row.within.lo());
            return largest
                .map(|row| notice(UNEXPLAINED, row.segment.name(), None, row.within.lo()))
                .into_iter()
                .collect();
        }
        let findings = verdict.findings.iter().map(|finding| {
            let confidence = Some(finding.confidence.name());
            notice(
                finding.cause,
                finding.segment.name(),
                confidence,
                finding.within.lo(),
            )
        });
        findings.collect()
    }

    /// The cause, where one is named.
    pub(crate) fn cause(&self) -> Option<&str> {
        self.confidence.map(|_| self.key.cause.as_str())
    }
}

fn key(verdict: &Verdict, cause: &str) -> GroupKey {
    let known = |name: &Option<String>| name.clone().unwrap_or_else(|| UNKNOWN.to_owned());
    GroupKey {
        client_service: known(&verdict.client_service),
        server_service: known(&verdict.server_service),
        route: known(&verdict.route),
        cause: cause.to_owned(),
    }
}
