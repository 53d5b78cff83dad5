//! The demo's table, its summary, and the evidence for one of the gaps, for a person to read.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::judgement::Judgement;
use super::outcome::{JudgedExchange, Outcome};
use super::verdict_document::VerdictDocument;

const HEADINGS: [&str; 8] = [
    "client program",
    "client s",
    "server s",
    "wire s",
    "gap s",
    "segment",
    "cause",
    "judgement",
];
/// Columns of figures.
const FIGURES: [usize; 4] = [1, 2, 3, 4];

/// Writes all of it.
///
/// # Errors
/// `out` cannot be written.
pub(super) fn write(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let table = table(outcome);
    let mut lines = table.lines();
    if let Some(headings) = lines.next() {
        let bold = Style::new().bold();
        writeln!(out, "{bold}{}{bold:#}", headings.trim_end())?;
    }
    for (line, exchange) in lines.zip(&outcome.exchanges) {
        let style = style(exchange.judgement);
        writeln!(out, "{style}{}{style:#}", line.trim_end())?;
    }
    write_example(out, outcome)?;
    write_shortcomings(out, outcome)?;
    writeln!(out)?;
    for line in outcome.summary().lines() {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// One line for each row, whatever the width of the terminal: colour is laid over whole lines.
fn table(outcome: &Outcome) -> Table {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADINGS)
        .add_rows(outcome.exchanges.iter().map(row));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for column in FIGURES {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn row(exchange: &JudgedExchange) -> [String; 8] {
    let fields = exchange.verdict.as_ref().map(|verdict| &verdict.fields);
    let figure = |seconds: Option<f64>| {
        seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.3}"))
    };
    let (segment, cause) = exchange
        .verdict
        .as_ref()
        .map_or_else(nothing, segment_and_cause);
    [
        exchange.report.behaviour.name().to_owned(),
        figure(fields.and_then(|fields| fields.client_seconds)),
        figure(fields.and_then(|fields| fields.server_seconds)),
        figure(fields.and_then(|fields| fields.wire_seconds)),
        figure(fields.and_then(|fields| fields.gap_seconds)),
        segment,
        cause,
        judgement(exchange.judgement).to_owned(),
    ]
}

fn segment_and_cause(verdict: &VerdictDocument) -> (String, String) {
    if !verdict.fields.flagged {
        return nothing();
    }
    if let Some(finding) = verdict.main_finding() {
        let cause = format!("{} ({})", finding.cause, finding.confidence);
        return (finding.segment.to_string(), cause);
    }
    let segment = verdict
        .longest_unexplained()
        .map(|row| row.name.to_string());
    let (unknown, _) = nothing();
    (segment.unwrap_or(unknown), "unexplained".to_owned())
}

fn nothing() -> (String, String) {
    ("-".to_owned(), "-".to_owned())
}

const fn judgement(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Found => "planted, found",
        Judgement::Missed => "planted, MISSED",
        Judgement::Quiet => "healthy",
        Judgement::FalseAlarm => "healthy, FLAGGED",
        Judgement::Disturbed => "late by itself",
        Judgement::NoVerdict => "NO VERDICT",
    }
}

const fn style(judgement: Judgement) -> Style {
    match judgement {
        Judgement::Found => AnsiColor::Yellow.on_default(),
        Judgement::Disturbed => AnsiColor::Magenta.on_default(),
        Judgement::Quiet => Style::new(),
        Judgement::Missed | Judgement::FalseAlarm | Judgement::NoVerdict => {
            AnsiColor::Red.on_default().bold()
        }
    }
}

/// The evidence for the longest gap that was found.
fn write_example(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let found = outcome
        .exchanges
        .iter()
        .filter(|one| one.judgement == Judgement::Found)
        .filter_map(|one| one.verdict.as_ref()?.main_finding());
    let Some(finding) = found.max_by(|a, b| a.lo_seconds.total_cmp(&b.lo_seconds)) else {
        return Ok(());
    };
    writeln!(
        out,
        "\nwhy {} for the gap of {:.3} s:",
        finding.cause, finding.hi_seconds
    )?;
    for evidence in &finding.evidence {
        writeln!(out, "  {}", evidence.statement)?;
    }
    Ok(())
}

fn write_shortcomings(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let mut first = true;
    for exchange in &outcome.exchanges {
        let Some(why) = &exchange.why else { continue };
        if first {
            writeln!(out)?;
            first = false;
        }
        let report = &exchange.report;
        writeln!(
            out,
            "{} client, server delay {:.3} s: {why}",
            report.behaviour.name(),
            report.delay_seconds
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
