//! What a command's requests must not show, and whether they do.

use std::time::Duration;

use serde::Serialize;
use skewtap_core::verdict_json::VerdictJson;

use super::outcome::{Outcome, unexplained_seconds};
use crate::args::{FailOn, RunArgs};

/// Reasons that are told one by one; more are counted.
const MOST_REASONS: usize = 20;

/// The conditions.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    max_unexplained: Option<Duration>,
    fail_on: Vec<FailOn>,
}

/// What came of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Judgement {
    /// Whether all of them hold.
    pub(super) passed: bool,
    /// What does not hold, a line each.
    pub(super) reasons: Vec<String>,
}

impl Gate {
    /// The gate that `args` ask for, if any.
    pub(super) fn new(args: &RunArgs) -> Option<Self> {
        let wanted = args.max_unexplained.is_some() || !args.fail_on.is_empty();
        wanted.then(|| Self {
            max_unexplained: args.max_unexplained,
            fail_on: args.fail_on.clone(),
        })
    }

    /// Holds it against `outcome`. What was not measured does not pass.
    pub(super) fn judge(&self, outcome: &Outcome) -> Judgement {
        let mut reasons = Vec::new();
        if outcome.is_empty() {
            reasons.push("no request came through the proxy".to_owned());
        }
        if outcome.not_judged > 0 {
            reasons.push(format!(
                "requests without a verdict: {}",
                outcome.not_judged
            ));
        }
        let broken = outcome.verdicts.iter().filter_map(|verdict| {
            let what = self.broken_by(verdict)?;
            let VerdictJson { method, path, .. } = verdict;
            Some(format!("{method} {}{path}: {what}", verdict.authority))
        });
        reasons.extend(broken);
        if let Some(more) = reasons.len().checked_sub(MOST_REASONS).filter(|n| *n > 0) {
            reasons.truncate(MOST_REASONS);
            reasons.push(format!("and {more} more"));
        }
        Judgement {
            passed: reasons.is_empty(),
            reasons,
        }
    }

    fn broken_by(&self, verdict: &VerdictJson) -> Option<String> {
        let mut broken: Vec<String> = Vec::new();
        let unexplained = unexplained_seconds(verdict);
        if let Some(most) = self.max_unexplained
            && unexplained > most.as_secs_f64()
        {
            broken.push(format!(
                "{:.1} ms unexplained, more than {:.1} ms",
                unexplained * 1e3,
                most.as_secs_f64() * 1e3
            ));
        }
        for finding in &verdict.findings {
            let unwanted = self.fail_on.iter().any(|unwanted| match unwanted {
                FailOn::Cause(name) => finding.cause == *name,
                FailOn::AnyCause => true,
                FailOn::Flagged => false,
            });
            if unwanted {
                broken.push(format!(
                    "{} for {:.1} ms",
                    finding.cause,
                    finding.lo_seconds * 1e3
                ));
            }
        }
        if verdict.flagged && self.fail_on.contains(&FailOn::Flagged) {
            broken.push("flagged".to_owned());
        }
        (!broken.is_empty()).then(|| broken.join("; "))
    }
}

#[cfg(test)]
mod tests;
