//! A verdict as the API hands it out, with the fields that the demo looks at.

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One verdict.
#[derive(Clone, Debug)]
pub(super) struct VerdictDocument {
    /// All of it, as it came.
    pub(super) whole: Map<String, Value>,
    /// The part that is looked at.
    pub(super) fields: Fields,
}

/// The fields that are looked at; what they mean stands at [`skewtap_core::verdict_json`].
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Fields {
    pub(super) client_seconds: Option<f64>,
    pub(super) server_seconds: Option<f64>,
    pub(super) wire_seconds: Option<f64>,
    pub(super) gap_seconds: Option<f64>,
    pub(super) segments: Vec<SegmentFields>,
    pub(super) findings: Vec<FindingFields>,
    pub(super) flagged: bool,
    pub(super) quality: QualityFields,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct SegmentFields {
    pub(super) name: String,
    pub(super) lo_seconds: f64,
    pub(super) explanation: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct FindingFields {
    pub(super) cause: String,
    pub(super) segment: String,
    pub(super) lo_seconds: f64,
    pub(super) hi_seconds: f64,
    pub(super) confidence: String,
    pub(super) evidence: Vec<StatementFields>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct StatementFields {
    pub(super) statement: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct QualityFields {
    pub(super) sources: Option<SourceFields>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct SourceFields {
    pub(super) kernel_stamps: String,
    pub(super) capture: String,
    pub(super) queues: String,
    pub(super) processes: String,
}

impl VerdictDocument {
    /// Takes an answer of the API.
    ///
    /// # Errors
    /// It is no verdict.
    pub(super) fn read(answer: Value) -> anyhow::Result<Self> {
        let fields =
            Fields::deserialize(&answer).context("the collector's verdict is no verdict")?;
        match answer {
            Value::Object(whole) => Ok(Self { whole, fields }),
            other => anyhow::bail!("the collector's verdict is no object: {other}"),
        }
    }

    /// Whether both sides have reported.
    pub(super) fn has_both_sides(&self) -> bool {
        self.fields.client_seconds.is_some() && self.fields.server_seconds.is_some()
    }

    /// The finding that explains most.
    pub(super) fn main_finding(&self) -> Option<&FindingFields> {
        let findings = self.fields.findings.iter();
        findings.max_by(|a, b| a.lo_seconds.total_cmp(&b.lo_seconds))
    }

    /// The longest row of the ledger that nothing explains.
    pub(super) fn longest_unexplained(&self) -> Option<&SegmentFields> {
        let rows = self.fields.segments.iter();
        rows.filter(|row| row.explanation == "unexplained")
            .max_by(|a, b| a.lo_seconds.total_cmp(&b.lo_seconds))
    }
}
