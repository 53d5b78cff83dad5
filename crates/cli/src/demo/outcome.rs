//! What the demo found, counted, and as one JSON document.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::client_report::{ClientReport, Truth};
use super::judgement::{Judgement, judge};
use super::verdict_document::VerdictDocument;
use crate::sources_not_used::not_used;

/// All exchanges of a demo, with their verdicts.
pub(super) struct Outcome {
    /// One for each request.
    pub(super) exchanges: Vec<JudgedExchange>,
    /// How long the demo took, in seconds.
    pub(super) seconds: f64,
}

/// One exchange: the truth, the verdict, and how they compare.
pub(super) struct JudgedExchange {
    /// The client's own account.
    pub(super) report: ClientReport,
    /// What the collector says; `None` if it said nothing in time.
    pub(super) verdict: Option<VerdictDocument>,
    /// How the two compare.
    pub(super) judgement: Judgement,
    /// What is wrong with the verdict, if anything.
    pub(super) why: Option<String>,
}

/// The counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    /// Exchanges in which a client slept over its response.
    planted: usize,
    /// Those of them whose verdict says so.
    found: usize,
    /// Exchanges in which nothing was planted and nothing went wrong.
    healthy: usize,
    /// Those of them that were flagged.
    healthy_flagged: usize,
    /// Exchanges that were late without anything planted.
    disturbed: usize,
    /// Exchanges without a verdict, planted or not.
    without_verdict: usize,
    /// Whether every planted gap was found and nothing else was flagged.
    passed: bool,
    /// How long it took.
    seconds: f64,
    /// In words, each source of stamps that could not be used.
    not_used: Vec<String>,
}

impl Outcome {
    /// Judges each verdict by the report at the same place.
    pub(super) fn new(
        reports: Vec<ClientReport>,
        verdicts: Vec<Option<VerdictDocument>>,
        seconds: f64,
    ) -> Self {
        let judged = reports.into_iter().zip(verdicts).map(|(report, verdict)| {
            let (judgement, why) = judge(&report, verdict.as_ref());
            JudgedExchange {
                report,
                verdict,
                judgement,
                why,
            }
        });
        Self {
            exchanges: judged.collect(),
            seconds,
        }
    }

    /// Counts.
    pub(super) fn summary(&self) -> Summary {
        let count = |wanted: &dyn Fn(&&JudgedExchange) -> bool| {
            self.exchanges.iter().filter(|one| wanted(one)).count()
        };
        let planted = count(&|one| one.report.truth() == Truth::Planted);
        let found = count(&|one| one.judgement == Judgement::Found);
        let healthy_flagged = count(&|one| one.judgement == Judgement::FalseAlarm);
        let without_verdict = count(&|one| one.judgement == Judgement::NoVerdict);
        Summary {
            planted,
            found,
            healthy: count(&|one| one.report.truth() == Truth::Healthy),
            healthy_flagged,
            disturbed: count(&|one| one.report.truth() == Truth::Disturbed),
            without_verdict,
            // Without a single planted gap the demo would have shown nothing.
            passed: planted > 0 && found == planted && healthy_flagged == 0 && without_verdict == 0,
            seconds: self.seconds,
            not_used: self.not_used(),
        }
    }

    /// One document with everything.
    pub(super) fn json(&self) -> Value {
        let exchanges: Vec<_> = self.exchanges.iter().map(JudgedExchange::json).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "summary": self.summary(),
            "exchanges": exchanges,
        })
    }

    fn not_used(&self) -> Vec<String> {
        let verdicts = self.exchanges.iter().filter_map(|one| one.verdict.as_ref());
        let sources = verdicts.filter_map(|verdict| verdict.fields.quality.sources.as_ref());
        let states: BTreeSet<String> = sources.flat_map(not_used).collect();
        states.into_iter().collect()
    }
}

impl JudgedExchange {
    /// The collector's document, with the truth and the comparison added.
    fn json(&self) -> Value {
        let mut document = self
            .verdict
            .as_ref()
            .map_or_else(Map::new, |verdict| verdict.whole.clone());
        let report = &self.report;
        document.insert("trace_id".to_owned(), json!(report.trace_id));
        document.insert("client_span_id".to_owned(), json!(report.span_id));
        let truth = json!({
            "truth": report.truth(),
            "client": report,
        });
        document.insert("planted".to_owned(), truth);
        document.insert("judgement".to_owned(), json!(self.judgement));
        document.insert("judgement_reason".to_owned(), json!(self.why));
        Value::Object(document)
    }
}

impl Summary {
    /// Whether the demo shows what it is to show.
    pub(super) const fn passed(&self) -> bool {
        self.passed
    }

    /// The counts in words, a line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} of {} planted gaps found, {} of {} healthy exchanges flagged ({:.1} s)",
            self.found, self.planted, self.healthy_flagged, self.healthy, self.seconds
        )];
        if self.disturbed > 0 {
            lines.push(format!(
                "not counted: {} late without anything planted",
                self.disturbed
            ));
        }
        if self.without_verdict > 0 {
            lines.push(format!(
                "without a verdict in time: {}",
                self.without_verdict
            ));
        }
        lines.extend(
            self.not_used
                .iter()
                .map(|source| format!("without {source}")),
        );
        lines
    }
}
