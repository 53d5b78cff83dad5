//! The breakdown for a person to read.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::SocketAddr;

use anstyle::{AnsiColor, Style};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use skewtap_core::verdict_json::{Bounds, VerdictJson};

use super::gate::Judgement;
use super::outcome::{Outcome, Request, Summary};

/// Requests shown; of more, those that are flagged come first, then the longest.
const MOST_ROWS: usize = 100;
/// Findings whose evidence is told.
const MOST_FINDINGS: usize = 5;
/// Longest request line shown, in characters.
const LONGEST_REQUEST: usize = 44;
const HEADINGS: [&str; 11] = [
    "method and url",
    "status",
    "total",
    "before send",
    "connect",
    "TLS",
    "request",
    "server wait",
    "response",
    "unread",
    "remarks",
];
/// Columns of figures.
const FIGURES: std::ops::RangeInclusive<usize> = 1..=9;
/// The least that is told from nothing, in milliseconds.
const LEAST_MS: f64 = 0.05;
/// Figures less certain than this share, or than a millisecond, are shown with both bounds.
const DOUBT: f64 = 0.02;

/// Writes the breakdown, the evidence for what was found, and the counts.
///
/// # Errors
/// `out` cannot be written.
pub(super) fn write(out: &mut impl Write, outcome: &Outcome, seconds: f64) -> io::Result<()> {
    let bold = Style::new().bold();
    writeln!(out)?;
    let (requests, left_out) = most_telling(outcome);
    if !requests.is_empty() {
        let table = table(&requests);
        let mut lines = table.lines();
        if let Some(headings) = lines.next() {
            writeln!(out, "{bold}{}{bold:#}", headings.trim_end())?;
        }
        for (line, request) in lines.zip(&requests) {
            let style = style(request);
            writeln!(out, "{style}{}{style:#}", line.trim_end())?;
        }
        if left_out > 0 {
            writeln!(
                out,
                "and {left_out} more, shorter ones that are not flagged"
            )?;
        }
        write_findings(out, outcome)?;
        writeln!(out)?;
    }
    for line in summary_lines(&outcome.summary(), seconds) {
        writeln!(out, "skewtap: {line}")?;
    }
    out.flush()
}

/// Writes what came of the gate.
///
/// # Errors
/// `out` cannot be written.
pub(super) fn write_judgement(
    out: &mut impl Write,
    judgement: &Judgement,
    quiet: bool,
) -> io::Result<()> {
    if judgement.passed {
        if !quiet {
            writeln!(out, "skewtap: gate passed")?;
        }
        return out.flush();
    }
    let red = AnsiColor::Red.on_default().bold();
    writeln!(out, "{red}skewtap: gate failed{red:#}")?;
    for reason in &judgement.reasons {
        writeln!(out, "  {reason}")?;
    }
    out.flush()
}

/// Says what to do when the command did not use the proxy.
///
/// # Errors
/// `out` cannot be written.
pub(super) fn write_nothing_came(
    out: &mut impl Write,
    proxy: Option<SocketAddr>,
) -> io::Result<()> {
    let Some(proxy) = proxy else {
        writeln!(
            out,
            "\nskewtap: no request came to a port given by --map\n  \
             Is that where the command sends its requests to?"
        )?;
        return out.flush();
    };
    writeln!(
        out,
        "\nskewtap: no request came through the proxy at http://{proxy}\n  \
         The command may take no notice of HTTP_PROXY (Node before 22.21, aiohttp without \
         trust_env=True,\n  many programs in Go, C++ and Rust), or it reached its server by \
         another protocol."
    )?;
    writeln!(
        out,
        "  Let it send to a port of your own choice, which stands for the server:\n    \
         skewtap run --map 8081=HOST:PORT -- COMMAND    with http://127.0.0.1:8081 as its server"
    )?;
    out.flush()
}

/// The requests to show, in order, and how many are not shown.
fn most_telling(outcome: &Outcome) -> (Vec<Request<'_>>, u64) {
    let mut requests: Vec<(usize, Request<'_>)> = outcome.requests().enumerate().collect();
    let left_out = requests.len().saturating_sub(MOST_ROWS);
    if left_out > 0 {
        let length = |request: &Request<'_>| {
            let total = request.stages.total;
            total.map_or(0.0, |total| total.lo_seconds)
        };
        requests.sort_by(|(_, a), (_, b)| {
            let flagged = b.verdict.flagged.cmp(&a.verdict.flagged);
            flagged.then(length(b).total_cmp(&length(a)))
        });
        requests.truncate(MOST_ROWS);
        requests.sort_by_key(|(at, _)| *at);
    }
    let requests = requests.into_iter().map(|(_, request)| request);
    let left_out = left_out.try_into().unwrap_or(u64::MAX);
    (
        requests.collect(),
        outcome.left_out.saturating_add(left_out),
    )
}

/// One line for each row, whatever the width of the terminal: colour is laid over whole lines.
fn table(requests: &[Request<'_>]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADINGS)
        .add_rows(requests.iter().map(row));
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

fn row(request: &Request<'_>) -> [String; 11] {
    let stages = &request.stages;
    let status = request.exchange.status;
    [
        request_line(request),
        status.map_or_else(|| "-".to_owned(), |status| status.to_string()),
        milliseconds(stages.total),
        milliseconds(stages.before_send),
        milliseconds(stages.connect),
        milliseconds(stages.tls),
        milliseconds(stages.request),
        milliseconds(stages.server_wait),
        milliseconds(stages.response),
        milliseconds(stages.unread),
        remarks(request),
    ]
}

fn request_line(request: &Request<'_>) -> String {
    let exchange = request.exchange;
    let line = format!(
        "{} {}{}",
        exchange.method, exchange.authority, exchange.path
    );
    // What a client sends may hold anything, also what would move a terminal's cursor.
    let mut line: String = line
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if let Some((end, _)) = line.char_indices().nth(LONGEST_REQUEST) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// A length in milliseconds; both bounds where they are far apart, or only the upper one where the
/// lower one says nothing.
fn milliseconds(length: Option<Bounds>) -> String {
    let Some(Bounds {
        lo_seconds,
        hi_seconds,
    }) = length
    else {
        return "-".to_owned();
    };
    let (lo, hi) = (lo_seconds * 1e3, hi_seconds * 1e3);
    let middle = f64::midpoint(lo, hi);
    if hi - lo <= (middle.abs() * DOUBT).max(1.0) {
        format!("{middle:.1}")
    } else if lo < LEAST_MS && hi > 0.0 {
        format!("<{hi:.1}")
    } else {
        format!("{lo:.1}..{hi:.1}")
    }
}

/// What is to be said of a request in a word or two.
fn remarks(request: &Request<'_>) -> String {
    let mut remarks = Vec::new();
    let exchange = request.exchange;
    if let Some(tunnel) = request.stages.tunnel {
        remarks.push(format!("tunnel of {} ms", milliseconds(Some(tunnel))));
    } else if exchange.outcome != "complete" {
        remarks.push(exchange.outcome.to_string());
    }
    if request.is_last {
        let verdict = request.verdict;
        remarks.extend(verdict.findings.iter().map(|found| found.cause.to_string()));
        if verdict.flagged
            && verdict.findings.is_empty()
            && let Some(row) = longest_unexplained(verdict)
        {
            remarks.push(format!("unexplained: {row}"));
        }
        remarks.extend(verdict.faults.iter().map(|fault| fault.kind.to_string()));
    }
    remarks.join(", ")
}

fn longest_unexplained(verdict: &VerdictJson) -> Option<&str> {
    let rows = verdict.segments.iter();
    rows.filter(|row| row.explanation == "unexplained")
        .max_by(|a, b| a.lo_seconds.total_cmp(&b.lo_seconds))
        .map(|row| row.name.as_ref())
}

fn style(request: &Request<'_>) -> Style {
    if request.verdict.flagged {
        AnsiColor::Yellow.on_default()
    } else if matches!(request.exchange.outcome.as_ref(), "complete" | "upgraded") {
        Style::new()
    } else {
        AnsiColor::Red.on_default()
    }
}

fn write_findings(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let findings = outcome.verdicts.iter().flat_map(|verdict| {
        let findings = verdict.findings.iter();
        findings.map(move |finding| (verdict, finding))
    });
    for (verdict, finding) in findings.take(MOST_FINDINGS) {
        let within = Bounds {
            lo_seconds: finding.lo_seconds,
            hi_seconds: finding.hi_seconds,
        };
        writeln!(
            out,
            "\n{} ({}): {} ms of {} {}{}",
            finding.cause,
            finding.confidence,
            milliseconds(Some(within)),
            verdict.method,
            verdict.authority,
            verdict.path
        )?;
        for evidence in &finding.evidence {
            writeln!(out, "  {}", evidence.statement)?;
        }
    }
    Ok(())
}

fn summary_lines(summary: &Summary, seconds: f64) -> Vec<String> {
    let Summary {
        requests,
        flagged,
        with_client_span,
        with_server_span,
        ..
    } = summary;
    let mut lines = vec![format!(
        "times in ms; requests: {requests}, flagged: {flagged}, with a client's span: \
         {with_client_span}, with a server's span: {with_server_span}; the command took \
         {seconds:.3} s"
    )];
    if summary.not_judged > 0 {
        lines.push(format!("without a verdict: {}", summary.not_judged));
    }
    if !summary.not_used.is_empty() {
        let mut line = "without".to_owned();
        for (at, source) in summary.not_used.iter().enumerate() {
            let comma = if at == 0 { " " } else { "; " };
            write!(line, "{comma}{source}").unwrap_or_default();
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests;
