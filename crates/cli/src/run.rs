//! `skewtap run`: a client between proxy and collector for as long as it runs, and where the time
//! of each of its requests went.

mod command;
mod document;
mod environment;
mod gate;
mod java_trust_store;
mod no_proxy;
mod outcome;
mod relay;
mod report;
mod stages;
mod system;
mod tally;
mod trust;
mod verdicts;

use std::env;
use std::io::{self, StderrLock, Write as _};
use std::time::{Duration, Instant, SystemTime};

use anstream::AutoStream;
use anyhow::Context as _;

use crate::args::{LogArgs, RunArgs};
use crate::failure::{Exit, Failure};
use crate::runtime;
use crate::shutdown::Shutdown;

use command::{CommandError, Ended};
use environment::Environment;
use gate::Gate;
use outcome::Outcome;
use system::System;
use trust::Trust;
use verdicts::Collected;

const LOG_LEVEL: &str = "error";

/// Runs the command between the parts, and reports.
///
/// # Errors
/// A part did not start, the command could not be run, or what it did could not be measured
/// although a gate or a document depends on it.
pub(crate) fn run(args: &RunArgs, log: &LogArgs) -> Result<Exit, Failure> {
    // What the parts warn of is of no use to the command's user, and the breakdown says it.
    let log = LogArgs {
        // RUST_LOG is meant for the command.
        log: Some(log.log.clone().unwrap_or_else(|| LOG_LEVEL.to_owned())),
        ..log.clone()
    };
    runtime::run(&log, LOG_LEVEL, None, measure(args))
}

async fn measure(args: &RunArgs) -> Result<Exit, Failure> {
    let user = |name: &str| env::var(name).ok();
    let trust = (!args.intercept.is_empty())
        .then(|| Trust::new(&args.intercept, args.ca_dir.as_deref(), user))
        .transpose()
        .map_err(Failure::cannot_start)?;
    let mut system = System::start(args, trust.as_ref())
        .await
        .map_err(Failure::cannot_start)?;
    let environment = Environment::new(
        system.proxy,
        &system.receivers,
        trust.as_ref(),
        args.no_proxy.as_deref(),
        user,
    );
    if !args.quiet {
        say(|out| {
            let mut notes = environment.notes.iter();
            notes.try_for_each(|note| writeln!(out, "skewtap: {note}"))
        });
    }
    let since_seconds = unix_seconds();
    let began = Instant::now();
    let ended = match command::run(&args.command, &environment).await {
        Ok(ended) => ended,
        Err(error) => return not_run(system, error).await,
    };
    let ran = Ran {
        ended,
        took: began.elapsed(),
    };
    let mut shutdown =
        Shutdown::listen(false).map_err(|error| Failure::cannot_start(error.into()))?;
    let collecting = verdicts::collect(&mut system, args.settle(), since_seconds);
    let collected = tokio::select! {
        collected = collecting => collected,
        () = shutdown.requested() => return Ok(Exit::Interrupted),
    };
    let exit = report(args, &system, ran, collected);
    if let Err(error) = system.end().await {
        tracing::warn!(error = format!("{error:#}"), "a part ended badly");
    }
    exit
}

/// A command that has run.
#[derive(Clone, Copy)]
struct Ran {
    ended: Ended,
    took: Duration,
}

async fn not_run(system: System, error: CommandError) -> Result<Exit, Failure> {
    let code = error.code();
    if let Err(error) = system.end().await {
        tracing::warn!(error = format!("{error:#}"), "a part ended badly");
    }
    Failure::cannot_start(error.into()).report();
    Ok(Exit::Command(code))
}

/// Prints what is wanted, and gives the exit code.
fn report(
    args: &RunArgs,
    system: &System,
    ran: Ran,
    collected: anyhow::Result<Collected>,
) -> Result<Exit, Failure> {
    let gate = Gate::new(args);
    let of_command = Exit::Command(ran.ended.code);
    let collected = match collected.context("cannot measure what the command did") {
        Ok(collected) => collected,
        Err(error) => {
            let failure = Failure::broken(error);
            let needed = gate.is_some() || args.json.is_some();
            if needed && ran.ended.code == 0 {
                return Err(failure);
            }
            failure.report();
            return Ok(of_command);
        }
    };
    let outcome = Outcome::new(collected);
    let seconds = ran.took.as_secs_f64();
    if !args.quiet {
        say(|out| {
            if outcome.is_empty() {
                report::write_nothing_came(out, system.proxy)
            } else {
                report::write(out, &outcome, seconds)
            }
        });
    }
    let judgement = gate.map(|gate| gate.judge(&outcome));
    if let Some(target) = &args.json {
        let program = args.command.first().map(|name| name.to_string_lossy());
        let program = program.unwrap_or_default();
        let document = document::of(&program, ran.ended, seconds, &outcome, judgement.as_ref());
        if let Err(error) = document::write(&document, target) {
            let failure = Failure::broken(error);
            if ran.ended.code == 0 {
                return Err(failure);
            }
            failure.report();
        }
    }
    let Some(judgement) = judgement else {
        return Ok(of_command);
    };
    say(|out| report::write_judgement(out, &judgement, args.quiet));
    if judgement.passed || ran.ended.code != 0 {
        Ok(of_command)
    } else {
        Ok(Exit::Unwanted)
    }
}

/// Writes to standard error, where it is open.
fn say(words: impl FnOnce(&mut AutoStream<StderrLock<'static>>) -> io::Result<()>) {
    let mut stderr = anstream::stderr().lock();
    if let Err(error) = words(&mut stderr) {
        tracing::debug!(%error, "standard error cannot be written");
    }
}

/// The whole seconds since the Unix epoch, of which one is taken off for what began in this one.
fn unix_seconds() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.map_or(0, |since| since.as_secs().saturating_sub(1))
}
