//! The client's process sleeps, or waits on something else, while the response
//! lies unread in its socket.
//!
//! The case this project grew out of: libcurl 7.61.0 to 7.62.0 answers a `poll`
//! that timed out with up to a second of `poll(NULL, 0, ms)`, in which it cannot
//! see its own socket.
//!
//! Evidence, all of it needed: the receive queue held the response over the gap;
//! a thread of the owning process was asleep until a timer in nearly all samples,
//! and from then on at most ready to run; no thread was watching the socket. In a
//! process of several threads the sleeper must have woken at the pick-up, or it is
//! just some other thread's nap.
//!
//! Neighbours: a busy event loop or a garbage collector (threads on a CPU), a
//! starved or stopped process (runnable or stopped, not asleep), a response that
//! lies decrypted in a TLS buffer (the socket is being watched). Any of these
//! refutes it.

use crate::clock::Interval;
use crate::endpoint::{Activity, ProcessWatch, ThreadWatch};
use crate::exchange::ExchangeRecord;
use crate::ledger::{Row, Segment};
use crate::milestone::Milestone;
use crate::policy::Policy;
use crate::verdict::{Confidence, Evidence, Finding};

/// The name of this cause.
pub const NAME: &str = "client_blind_sleep";

/// A thread that runs in more than this share of the samples, in percent, may be the one that
/// should have read the response.
const BUSY_PERCENT: u32 = 20;

pub(crate) fn look(row: &Row, exchange: &ExchangeRecord, policy: &Policy) -> Option<Finding> {
    if row.segment != Segment::ClientUnread || exchange.client_queue.unread_polls == 0 {
        return None;
    }
    let process = exchange.client_process.as_ref()?;
    if process.samples < policy.least_samples || is_refuted(process) {
        return None;
    }
    let (sleeper, nap) = sleeper(process, policy)?;
    let mut evidence = vec![
        unread_queue(row.within, exchange),
        asleep(process, sleeper, &nap),
        Evidence {
            kind: "nobody_watching",
            statement: format!(
                "no thread of {} waited for the socket or ran on a CPU meanwhile",
                process.command
            ),
        },
    ];
    evidence.extend(timer_edge(exchange, &nap));
    Some(Finding {
        cause: NAME,
        segment: row.segment,
        within: row.within,
        confidence: if nap.blind {
            Confidence::Observed
        } else {
            Confidence::Likely
        },
        evidence,
        refuted_by: "a thread waiting for the socket, on a CPU, stopped, or in other input or \
                     output while the response lay unread",
    })
}

/// What kept a thread from looking.
struct Nap {
    call: String,
    timeout_ns: Option<i64>,
    samples: u32,
    /// Nothing but the timer could end it: there was no descriptor at all.
    blind: bool,
}

/// The one thread whose sleep ended with the pick-up.
fn sleeper<'a>(process: &'a ProcessWatch, policy: &Policy) -> Option<(&'a ThreadWatch, Nap)> {
    let alone = process.threads.len() == 1;
    let mut sleepers = process.threads.iter().filter_map(|thread| {
        let nap = nap_of(thread, process.samples, policy)?;
        (alone || thread.woke_at_pick_up == Some(true)).then_some((thread, nap))
    });
    let found = sleepers.next()?;
    sleepers.next().is_none().then_some(found)
}

fn nap_of(thread: &ThreadWatch, samples: u32, policy: &Policy) -> Option<Nap> {
    let naps = thread.activities.iter().filter_map(|count| {
        let (call, timeout_ns, blind) = timed_wait(&count.activity)?;
        let call = call.to_owned();
        Some(Nap {
            call,
            timeout_ns,
            samples: count.samples,
            blind,
        })
    });
    // Two naps of one loop may ask for different lengths, so they are counted together.
    let mut asleep = 0_u32;
    let mut longest: Option<Nap> = None;
    for nap in naps {
        asleep = asleep.saturating_add(nap.samples);
        if longest
            .as_ref()
            .is_none_or(|so_far| nap.samples > so_far.samples)
        {
            longest = Some(nap);
        }
    }
    // On a busy machine a thread that has woken may wait for a CPU before it can read.
    let last = thread.last.as_ref()?;
    if timed_wait(last).is_none() && *last != Activity::Running {
        return None;
    }
    let enough = u64::from(asleep) * 100 >= u64::from(samples) * u64::from(policy.asleep_percent);
    longest.filter(|_| enough).map(|nap| Nap {
        samples: asleep,
        ..nap
    })
}

/// A wait that a timer ends and the watched socket cannot.
fn timed_wait(activity: &Activity) -> Option<(&str, Option<i64>, bool)> {
    match activity {
        Activity::Sleep { call, timeout_ns } => Some((call, *timeout_ns, true)),
        Activity::WaitElsewhere {
            call,
            timeout_ns: Some(timeout),
        } => Some((call, Some(*timeout), false)),
        Activity::WaitElsewhere {
            timeout_ns: None, ..
        }
        | Activity::WaitHere { .. }
        | Activity::WaitUnknown { .. }
        | Activity::Lock { .. }
        | Activity::Call { .. }
        | Activity::Running
        | Activity::Disk
        | Activity::Stopped
        | Activity::Hidden { .. } => None,
    }
}

/// Whether some thread was doing what a neighbouring cause does.
fn is_refuted(process: &ProcessWatch) -> bool {
    process.threads.iter().any(|thread| {
        let mut busy = 0_u32;
        for count in &thread.activities {
            match count.activity {
                Activity::WaitHere { .. } | Activity::WaitUnknown { .. } | Activity::Stopped => {
                    return true;
                }
                Activity::Running | Activity::Disk => busy = busy.saturating_add(count.samples),
                Activity::Sleep { .. }
                | Activity::WaitElsewhere { .. }
                | Activity::Lock { .. }
                | Activity::Call { .. }
                | Activity::Hidden { .. } => {}
            }
        }
        u64::from(busy) * 100 > u64::from(process.samples) * u64::from(BUSY_PERCENT)
    })
}

fn unread_queue(within: Interval, exchange: &ExchangeRecord) -> Evidence {
    Evidence {
        kind: "unread_queue",
        statement: format!(
            "the response lay unread in the client's receive queue for {} to {} s ({} of {} \
             look-ups saw it)",
            seconds(within.lo()),
            seconds(within.hi()),
            exchange.client_queue.unread_polls,
            exchange.client_queue.polls
        ),
    }
}

fn asleep(process: &ProcessWatch, thread: &ThreadWatch, nap: &Nap) -> Evidence {
    let what = if nap.blind {
        "without any descriptor"
    } else {
        "without this socket"
    };
    let length = nap.timeout_ns.map_or(String::new(), |ns| {
        format!(" for {} s at a time", seconds(ns))
    });
    Evidence {
        kind: "thread_asleep",
        statement: format!(
            "thread {} of {} (pid {}) was in {}{length} {what} in {} of {} samples",
            thread.name, process.command, process.pid, nap.call, nap.samples, process.samples
        ),
    }
}

/// Says when the pick-up came in terms of the sleep's length: a reader's hint, not a proof.
fn timer_edge(exchange: &ExchangeRecord, nap: &Nap) -> Option<Evidence> {
    let picked_up = exchange.milestones.best(Milestone::ClientPickedUp)?;
    let active = exchange
        .milestones
        .best(Milestone::DownRequestLast)
        .or(exchange.milestones.best(Milestone::DownRequestFirst))?;
    let length = nap.timeout_ns.filter(|ns| *ns > 0)?;
    let since = picked_up - active;
    let past_edge = since.middle() % length;
    Some(Evidence {
        kind: "timer_edge",
        statement: format!(
            "the pick-up came {} s after the client's last byte, {} s past a multiple of its \
             {} s sleep",
            seconds(since.middle()),
            seconds(past_edge),
            seconds(length)
        ),
    })
}

fn seconds(ns: i64) -> String {
    let millis = ns.saturating_add(ns.signum() * 500_000) / 1_000_000;
    let sign = if millis < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", millis.abs() / 1000, millis.abs() % 1000)
}
