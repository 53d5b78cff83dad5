//! What a command's requests came to: one entry for each exchange, and the counts.

use std::collections::BTreeSet;

use serde::Serialize;
use skewtap_core::verdict_json::{ExchangeJson, VerdictJson};

use super::stages::Stages;
use super::verdicts::Collected;
use crate::sources_not_used::not_used;

/// Everything that was measured.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The verdicts, by start.
    pub(super) verdicts: Vec<VerdictJson>,
    /// Exchanges whose verdicts show nothing and found no room.
    pub(super) left_out: u64,
    /// Exchanges without a verdict.
    pub(super) not_judged: u64,
}

/// One exchange of a verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    /// The verdict on it.
    pub(super) verdict: &'a VerdictJson,
    /// What was seen of it.
    pub(super) exchange: &'a ExchangeJson,
    /// Where its time went.
    pub(super) stages: Stages,
    /// Whether it is the last of its verdict, to which what is said of the whole is put down.
    pub(super) is_last: bool,
}

/// The counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    /// Exchanges that were judged.
    pub(super) requests: u64,
    /// Those of them that show nothing and are not listed, there being too many.
    pub(super) left_out: u64,
    /// Exchanges without a verdict.
    pub(super) not_judged: u64,
    /// Verdicts that deserve attention.
    pub(super) flagged: usize,
    /// Verdicts with a client's span.
    pub(super) with_client_span: usize,
    /// Verdicts with a server's span.
    pub(super) with_server_span: usize,
    /// Each cause that was found.
    pub(super) causes: BTreeSet<String>,
    /// In words, each source of stamps that could not be used.
    pub(super) not_used: BTreeSet<String>,
}

impl Outcome {
    /// Takes what was collected.
    pub(super) fn new(collected: Collected) -> Self {
        Self {
            verdicts: collected.verdicts,
            left_out: collected.left_out,
            not_judged: collected.not_judged,
        }
    }

    /// Whether nothing came through a proxy.
    pub(super) fn is_empty(&self) -> bool {
        self.verdicts.is_empty() && self.not_judged == 0
    }

    /// Every exchange, in order.
    pub(super) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        self.verdicts.iter().flat_map(|verdict| {
            let exchanges = verdict.exchanges_detail.iter().enumerate();
            exchanges.map(move |(at, exchange)| Request {
                verdict,
                exchange,
                stages: Stages::of(verdict, at, exchange),
                is_last: at + 1 == verdict.exchanges_detail.len(),
            })
        })
    }

    /// Counts.
    pub(super) fn summary(&self) -> Summary {
        let count = |wanted: &dyn Fn(&&VerdictJson) -> bool| {
            self.verdicts.iter().filter(|one| wanted(one)).count()
        };
        let listed = self.requests().count();
        let findings = self.verdicts.iter().flat_map(|verdict| &verdict.findings);
        let sources = self
            .verdicts
            .iter()
            .filter_map(|verdict| verdict.quality.sources.as_ref());
        Summary {
            requests: self
                .left_out
                .saturating_add(listed.try_into().unwrap_or(u64::MAX)),
            left_out: self.left_out,
            not_judged: self.not_judged,
            flagged: count(&|verdict| verdict.flagged),
            with_client_span: count(&|verdict| verdict.client_seconds.is_some()),
            with_server_span: count(&|verdict| verdict.server_seconds.is_some()),
            causes: findings.map(|finding| finding.cause.to_string()).collect(),
            not_used: sources.flat_map(not_used).collect(),
        }
    }
}

/// The time of a verdict that is unexplained beyond doubt, in seconds.
pub(super) fn unexplained_seconds(verdict: &VerdictJson) -> f64 {
    let rows = verdict.segments.iter();
    rows.filter(|row| row.explanation == "unexplained")
        .map(|row| row.lo_seconds.max(0.0))
        .sum()
}

#[cfg(test)]
pub(super) mod cases;
