//! Which sources of stamps were at work in recent exchanges, and what was missing.

use std::collections::BTreeMap;

use skewtap_core::verdict_json::{SourcesJson, VerdictJson};

use crate::web::pages::exchange::missing as missing_words;

/// A source over many exchanges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceView {
    /// What it is called.
    pub(super) name: &'static str,
    /// What it gives and what it needs.
    pub(super) about: &'static str,
    /// Exchanges in which it was at work.
    pub(super) used: usize,
    /// Exchanges whose record says anything of it.
    pub(super) known: usize,
    /// Why it was not, the most frequent reason first, with the number of exchanges.
    pub(super) reasons: Vec<(String, usize)>,
}

/// Something that verdicts had to do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingView {
    /// What it is and what that costs.
    pub(super) what: String,
    /// Exchanges that lack it.
    pub(super) exchanges: usize,
}

/// A source: its name, what it gives and needs, and where its state is.
type Source = (&'static str, &'static str, fn(&SourcesJson) -> &String);

const SOURCES: [Source; 4] = [
    (
        "Kernel receive stamps",
        "when bytes reached the proxy's machine; needs nothing",
        |sources| &sources.kernel_stamps,
    ),
    (
        "Packet capture",
        "every packet with its time; needs CAP_NET_RAW",
        |sources| &sources.capture,
    ),
    (
        "Receive queues",
        "when an application read; needs its network namespace",
        |sources| &sources.queues,
    ),
    (
        "Process samples",
        "what threads did meanwhile; other users' processes need CAP_SYS_PTRACE",
        |sources| &sources.processes,
    ),
];

/// The most reasons shown of one source.
const MOST_REASONS: usize = 3;

/// Every source.
pub(super) fn sources(verdicts: &[VerdictJson]) -> Vec<SourceView> {
    let known: Vec<&SourcesJson> = verdicts
        .iter()
        .filter_map(|verdict| verdict.quality.sources.as_ref())
        .collect();
    let views = SOURCES.into_iter().map(|(name, about, state)| {
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for sources in &known {
            *states.entry(state(sources)).or_default() += 1;
        }
        let used = states.remove("used").unwrap_or_default();
        SourceView {
            name,
            about,
            used,
            known: known.len(),
            reasons: most_frequent(states, MOST_REASONS),
        }
    });
    views.collect()
}

/// What is missing anywhere, the most frequent first.
pub(super) fn missing(verdicts: &[VerdictJson]) -> Vec<MissingView> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for what in verdicts.iter().flat_map(|verdict| &verdict.quality.missing) {
        *counts.entry(what).or_default() += 1;
    }
    let views = most_frequent(counts, usize::MAX).into_iter();
    views
        .map(|(what, exchanges)| MissingView {
            what: missing_words(&what),
            exchanges,
        })
        .collect()
}

fn most_frequent(counts: BTreeMap<&str, usize>, most: usize) -> Vec<(String, usize)> {
    let mut sorted: Vec<_> = counts
        .into_iter()
        .map(|(what, count)| (what.to_owned(), count))
        .collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted.truncate(most);
    sorted
}
