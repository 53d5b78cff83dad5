//! `skewtap demo`: gaps planted between real programs, and what skewtap makes of them.

mod await_verdicts;
mod child;
pub(crate) mod client;
mod client_report;
mod judgement;
pub(crate) mod origin;
mod outcome;
mod plain_request;
mod report_spans;
mod stamped_read;
mod sweep;
mod system;
mod table;
mod verdict_document;
mod wait_loop;
mod work;

use std::io::{self, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use crate::api_client::ApiClient;
use crate::args::{DemoArgs, LogArgs};
use crate::failure::{Exit, Failure};
use crate::runtime;
use crate::shutdown::Shutdown;

use child::Program;
use outcome::Outcome;
use system::System;

/// Verdicts are waited for until this long after the start; the rest of 15 s is for ending.
const VERDICTS_BY: Duration = Duration::from_secs(13);

/// Runs the demo.
///
/// # Errors
/// A part did not start or broke; not that a gap was missed, which the exit tells.
pub(crate) fn run(args: &DemoArgs, log: &LogArgs) -> Result<Exit, Failure> {
    // Warnings of the parts would tear the progress bar and the table apart.
    let parts_log = log.log.as_deref().unwrap_or("error");
    runtime::run(log, "warn", None, run_parts(args, parts_log))
}

async fn run_parts(args: &DemoArgs, parts_log: &str) -> Result<Exit, Failure> {
    let began = Instant::now();
    let mut shutdown =
        Shutdown::listen(false).map_err(|error| Failure::cannot_start(error.into()))?;
    let progress = progress_bar();
    let program = Program::find(parts_log).map_err(Failure::cannot_start)?;
    let system = tokio::select! {
        started = System::start(&program) => started.map_err(|error| {
            Failure::cannot_start(error).advise("run it with --log info to see what its parts say")
        })?,
        () = shutdown.requested() => return Ok(Exit::Interrupted),
    };
    let shown = tokio::select! {
        shown = show(args, &program, &system, &progress, began) => shown,
        () = shutdown.requested() => Ok(Exit::Interrupted),
    };
    progress.finish_and_clear();
    if args.keep && matches!(shown, Ok(Exit::Done | Exit::Unwanted)) {
        say_where_the_page_is(&system);
        shutdown.requested().await;
    }
    let ended = system.end().await;
    let exit = shown.map_err(Failure::broken)?;
    ended.map_err(Failure::broken)?;
    Ok(exit)
}

async fn show(
    args: &DemoArgs,
    program: &Program,
    system: &System,
    progress: &ProgressBar,
    began: Instant,
) -> anyhow::Result<Exit> {
    progress.set_message("sending requests");
    let reports = sweep::run(program, system.proxy, &system.otlp, progress).await?;

    progress.set_message("waiting for verdicts");
    let api = ApiClient::new(system.http);
    let deadline = began + VERDICTS_BY;
    let verdicts = await_verdicts::await_verdicts(&api, &reports, deadline, progress).await?;

    progress.finish_and_clear();
    let outcome = Outcome::new(reports, verdicts, began.elapsed().as_secs_f64());
    print(args, &outcome)?;
    Ok(if outcome.summary().passed() {
        Exit::Done
    } else {
        Exit::Unwanted
    })
}

fn print(args: &DemoArgs, outcome: &Outcome) -> anyhow::Result<()> {
    if args.json {
        let mut stdout = io::stdout().lock();
        serde_json::to_writer_pretty(&mut stdout, &outcome.json())?;
        writeln!(stdout)?;
        stdout.flush()?;
    } else {
        table::write(&mut anstream::stdout().lock(), outcome)?;
    }
    Ok(())
}

/// Drawn on a terminal only; a bar step for each response and each verdict.
fn progress_bar() -> ProgressBar {
    let steps = u64::try_from(2 * sweep::REQUESTS).unwrap_or_default();
    let style = ProgressStyle::with_template("{spinner} {bar:30} {elapsed} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(steps).with_style(style);
    bar.set_message("starting");
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn say_where_the_page_is(system: &System) {
    let mut stderr = io::stderr().lock();
    let said = writeln!(
        stderr,
        "\nleft running: page http://{}/, proxy http://{}; Ctrl-C ends it",
        system.http, system.proxy
    );
    if let Err(error) = said {
        tracing::warn!(%error, "cannot say where the page is");
    }
}
