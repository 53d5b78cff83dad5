//! What a verdict rests on: sources, what is missing, and what else was seen.

use crate::audit::Observed;
use crate::endpoint::{Activity, ProcessWatch, QueueOutcome};
use crate::exchange::{ExchangeRecord, Leg, Outcome};
use crate::ledger::build::Offsets;
use crate::verdict::Quality;
use crate::wire_path::WirePath;

pub(crate) fn of(observed: &Observed, paths: &[WirePath], offsets: &Offsets) -> Quality {
    Quality {
        sources: observed
            .exchanges
            .last()
            .map(|exchange| exchange.sources.clone()),
        missing: missing(observed, paths),
        client_clock: offsets.client,
        server_clock: offsets.servers.last().copied().flatten(),
        notes: observed
            .exchanges
            .iter()
            .zip(paths)
            .flat_map(|(e, path)| notes(e, path))
            .collect(),
    }
}

fn missing(observed: &Observed, paths: &[WirePath]) -> Vec<&'static str> {
    let last = paths.last();
    let lacks = |known: Option<bool>| known == Some(false);
    [
        ("exchange", observed.exchanges.is_empty()),
        ("client_span", observed.client.is_none()),
        (
            "server_span",
            observed.servers.len() < observed.exchanges.len().max(1),
        ),
        (
            "client_pick_up",
            lacks(last.map(|path| path.picked_up.is_some())),
        ),
        (
            "request_stamps",
            lacks(last.map(|path| path.request_first.is_some())),
        ),
        (
            "response_stamps",
            lacks(last.map(|path| path.response_out.is_some())),
        ),
    ]
    .into_iter()
    .filter_map(|(what, is_missing)| is_missing.then_some(what))
    .collect()
}

fn notes(exchange: &ExchangeRecord, path: &WirePath) -> Vec<String> {
    let mut notes = Vec::new();
    if exchange.outcome != Outcome::Complete {
        notes.push(format!("the exchange ended as {}", exchange.outcome.name()));
    }
    if exchange.clock_step_ns != 0 {
        notes.push(format!(
            "the proxy's clock was stepped by at least {} ns during the exchange",
            exchange.clock_step_ns
        ));
    }
    if exchange.up.as_ref().is_some_and(Leg::is_unix) {
        notes.push(
            "the server is behind a Unix socket: its leg has the proxy's own clock readings only"
                .to_owned(),
        );
    }
    if path.early_answer {
        notes.push("the response began before the request was complete".to_owned());
    }
    match exchange.client_queue.outcome {
        QueueOutcome::LeftUnread => {
            notes.push(
                "the client's socket was gone before any look-up saw the response read".to_owned(),
            );
        }
        QueueOutcome::StillUnread => {
            notes.push("the response was still unread when the watch ended".to_owned());
        }
        QueueOutcome::NotHere => {
            notes.push("the client is not on the proxy's machine: no pick-up is seen".to_owned());
        }
        QueueOutcome::Read | QueueOutcome::NotWatched => {}
    }
    notes.extend(exchange.client_process.iter().flat_map(process_notes));
    notes
}

/// What each thread mostly did, for a reader who gets no cause.
fn process_notes(process: &ProcessWatch) -> Vec<String> {
    let threads = process.threads.iter().filter_map(|thread| {
        let most = thread.activities.first()?;
        Some(format!(
            "thread {} of {} (pid {}) was {} in {} of {} samples while the response lay unread",
            thread.name,
            process.command,
            process.pid,
            in_words(&most.activity),
            most.samples,
            process.samples
        ))
    });
    threads.chain(process.limits.iter().cloned()).collect()
}

fn in_words(activity: &Activity) -> String {
    match activity {
        Activity::Sleep { call, .. } => format!("asleep in {call}"),
        Activity::WaitElsewhere { call, .. } => format!("waiting for something else in {call}"),
        Activity::WaitHere { call } => format!("waiting for the socket in {call}"),
        Activity::WaitUnknown { call } => format!("waiting in {call}"),
        Activity::Lock { .. } => "waiting for a lock".to_owned(),
        Activity::Call { call } => format!("in {call}"),
        Activity::Running => "running".to_owned(),
        Activity::Disk => "in an uninterruptible wait".to_owned(),
        Activity::Stopped => "stopped".to_owned(),
        Activity::Hidden {
            wait_channel: Some(channel),
        } => format!("asleep in {channel}"),
        Activity::Hidden { wait_channel: None } => "asleep".to_owned(),
    }
}
