//! Everything that was measured, as one JSON document.

use std::io::{self, Write as _};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::{Value, json};
use skewtap_core::verdict_json::{FindingJson, StatementJson};

use super::command::Ended;
use super::gate::Judgement;
use super::outcome::{Outcome, Request, unexplained_seconds};
use super::stages::Stages;
use crate::args::JsonTarget;

/// The version of the document's form; a new one where a reader of the old would be misled.
const VERSION: u32 = 1;

/// One request.
#[derive(Serialize)]
struct RequestJson<'a> {
    trace_id: &'a str,
    client_span_id: &'a str,
    method: &'a str,
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    status: Option<u16>,
    outcome: &'a str,
    request_bytes: Option<i64>,
    response_bytes: Option<i64>,
    stages: Stages,
    /// Of the client span as a whole.
    flagged: bool,
    /// Of the client span as a whole.
    unexplained_seconds: f64,
    /// Of the client span as a whole.
    findings: &'a [FindingJson],
    /// Of the client span as a whole.
    faults: &'a [StatementJson],
}

impl<'a> From<Request<'a>> for RequestJson<'a> {
    fn from(request: Request<'a>) -> Self {
        let Request {
            verdict, exchange, ..
        } = request;
        Self {
            trace_id: &verdict.trace_id,
            client_span_id: &verdict.client_span_id,
            method: &exchange.method,
            scheme: &exchange.scheme,
            authority: &exchange.authority,
            path: &exchange.path,
            status: exchange.status,
            outcome: &exchange.outcome,
            request_bytes: exchange.request_bytes,
            response_bytes: exchange.response_bytes,
            stages: request.stages,
            flagged: verdict.flagged,
            unexplained_seconds: unexplained_seconds(verdict),
            findings: &verdict.findings,
            faults: &verdict.faults,
        }
    }
}

/// The document. The command's arguments are left out: they may hold secrets.
pub(super) fn of(
    program: &str,
    ended: Ended,
    seconds: f64,
    outcome: &Outcome,
    judgement: Option<&Judgement>,
) -> Value {
    let requests: Vec<RequestJson<'_>> = outcome.requests().map(RequestJson::from).collect();
    json!({
        "version": VERSION,
        "skewtap": env!("CARGO_PKG_VERSION"),
        "command": { "program": program, "seconds": seconds, "code": ended.code, "signal": ended.signal },
        "summary": outcome.summary(),
        "gate": judgement,
        "requests": requests,
        "verdicts": outcome.verdicts,
    })
}

/// Writes it.
///
/// # Errors
/// The file or standard output cannot be written.
pub(super) fn write(document: &Value, target: &JsonTarget) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(document)?;
    text.push(b'\n');
    match target {
        JsonTarget::Stdout => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&text)?;
            stdout.flush().context("cannot write to standard output")
        }
        JsonTarget::File(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
    }
}
