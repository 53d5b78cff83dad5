//! A verdict as the API hands it out.

use anyhow::Context as _;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use skewtap_core::verdict_json::{FindingJson, SegmentJson, VerdictJson};

/// One verdict.
#[derive(Clone, Debug)]
pub(super) struct VerdictDocument {
    /// All of it, with whatever the API adds.
    pub(super) whole: Map<String, Value>,
    /// The verdict in it.
    pub(super) fields: VerdictJson,
}

impl VerdictDocument {
    /// Takes an answer of the API.
    ///
    /// # Errors
    /// It is no verdict.
    pub(super) fn read(answer: Value) -> anyhow::Result<Self> {
        let fields = VerdictJson::deserialize(&answer)
            .context("the collector answers with something that is no verdict")?;
        match answer {
            Value::Object(whole) => Ok(Self { whole, fields }),
            other => {
                anyhow::bail!("the collector answers with something that is no object: {other}")
            }
        }
    }

    /// Whether both sides have reported.
    pub(super) fn has_both_sides(&self) -> bool {
        self.fields.client_seconds.is_some() && self.fields.server_seconds.is_some()
    }

    /// The finding that explains most.
    pub(super) fn main_finding(&self) -> Option<&FindingJson> {
        let findings = self.fields.findings.iter();
        findings.max_by(|a, b| a.lo_seconds.total_cmp(&b.lo_seconds))
    }

    /// The longest row of the ledger that nothing explains.
    pub(super) fn longest_unexplained(&self) -> Option<&SegmentJson> {
        let rows = self.fields.segments.iter();
        rows.filter(|row| row.explanation == "unexplained")
            .max_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }
}
