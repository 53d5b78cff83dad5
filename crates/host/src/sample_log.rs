//! Samples of a process, kept until it is certain that bytes lay unread when they were taken.
//!
//! A sample counts only once a later look-up has seen the bytes still unread:
//! what a thread does after it has read is no evidence of why it had not.

use std::collections::VecDeque;

use skewtap_core::endpoint::{Activity, ActivityCount, ProcessWatch, ThreadWatch};

/// Rounds kept without being confirmed; look-ups come more often than rounds unless the
/// watcher is short of CPU time.
const MOST_PENDING: usize = 16;

/// Threads told apart.
const MOST_THREADS: usize = 64;

/// Activities told apart of one thread.
const MOST_ACTIVITIES: usize = 16;

/// Limits kept.
const MOST_LIMITS: usize = 8;

/// One look at every thread.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// `CLOCK_REALTIME` when the last thread had been looked at, in nanoseconds.
    pub(crate) ended_ns: i64,
    /// What was seen.
    pub(crate) threads: Vec<SeenThread>,
}

/// What one look at a thread saw.
#[derive(Clone, Debug)]
pub(crate) struct SeenThread {
    pub(crate) tid: i32,
    pub(crate) name: String,
    pub(crate) activity: Activity,
    pub(crate) cpu_ns: Option<i64>,
    pub(crate) run_queue_ns: Option<i64>,
    pub(crate) timeslices: Option<i64>,
}

/// All samples for one watch.
#[derive(Debug, Default)]
pub(crate) struct SampleLog {
    owner: Option<(i32, String)>,
    missing: Option<String>,
    limits: Vec<String>,
    pending: VecDeque<Round>,
    threads: Vec<ThreadLog>,
    samples: u32,
}

#[derive(Debug)]
struct ThreadLog {
    tid: i32,
    name: String,
    first: Times,
    last: Times,
    activities: Vec<ActivityCount>,
    last_activity: Activity,
    last_timeslices: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    cpu_ns: Option<i64>,
    run_queue_ns: Option<i64>,
}

impl SampleLog {
    /// Notes which process holds the socket; the first one noted stands.
    pub(crate) fn note_owner(&mut self, pid: i32, command: &str) {
        if self.owner.is_none() {
            self.owner = Some((pid, command.to_owned()));
            self.missing = None;
        }
    }

    /// Notes why no process was found.
    pub(crate) fn note_missing(&mut self, why: String) {
        if self.owner.is_none() {
            self.missing = Some(why);
        }
    }

    /// Notes what could not be seen, each thing once.
    pub(crate) fn note_limit(&mut self, limit: String) {
        if self.limits.len() < MOST_LIMITS && !self.limits.contains(&limit) {
            self.limits.push(limit);
        }
    }

    /// Adds a round that is not confirmed yet.
    pub(crate) fn add(&mut self, round: Round) {
        if self.pending.len() < MOST_PENDING {
            self.pending.push_back(round);
        } else {
            self.note_limit(
                "some samples do not count: the watcher had no time to see whether bytes were still unread"
                    .to_owned(),
            );
        }
    }

    /// Counts the rounds that had ended when a look-up began, at `unread_ns`, that saw bytes unread.
    pub(crate) fn confirm(&mut self, unread_ns: i64) {
        while self
            .pending
            .front()
            .is_some_and(|round| round.ended_ns <= unread_ns)
        {
            if let Some(round) = self.pending.pop_front() {
                self.samples = self.samples.saturating_add(1);
                for seen in round.threads {
                    self.count(seen);
                }
            }
        }
    }

    /// What was seen of the process, or why nothing was. Rounds not confirmed are left out.
    ///
    /// `timeslices_now` gives how often a thread, by its process and itself, has been given a CPU
    /// up to now, just after the pick-up.
    pub(crate) fn finish(
        &mut self,
        timeslices_now: impl Fn(i32, i32) -> Option<i64>,
    ) -> Result<ProcessWatch, Option<String>> {
        let (pid, command) = self.owner.take().ok_or_else(|| self.missing.take())?;
        let finished = |thread: ThreadLog| {
            let now = timeslices_now(pid, thread.tid);
            thread.finish(now)
        };
        let mut threads: Vec<_> = self.threads.drain(..).map(finished).collect();
        threads.sort_by_key(|thread| (thread.tid != pid, thread.tid));
        Ok(ProcessWatch {
            pid,
            command,
            samples: self.samples,
            limits: std::mem::take(&mut self.limits),
            threads,
        })
    }

    fn count(&mut self, seen: SeenThread) {
        let times = Times {
            cpu_ns: seen.cpu_ns,
            run_queue_ns: seen.run_queue_ns,
        };
        if let Some(thread) = self.threads.iter_mut().find(|t| t.tid == seen.tid) {
            thread.last = times;
            thread.last_activity = seen.activity.clone();
            thread.last_timeslices = seen.timeslices;
            if !thread.count(seen.activity) {
                let limit = format!("thread {} did too many different things to list", seen.tid);
                self.note_limit(limit);
            }
        } else if self.threads.len() < MOST_THREADS {
            self.threads.push(ThreadLog {
                tid: seen.tid,
                name: seen.name,
                first: times,
                last: times,
                activities: vec![ActivityCount {
                    activity: seen.activity.clone(),
                    samples: 1,
                }],
                last_activity: seen.activity,
                last_timeslices: seen.timeslices,
            });
        } else {
            self.note_limit(format!("only {MOST_THREADS} threads are listed"));
        }
    }
}

impl ThreadLog {
    /// Counts an activity; false when it or another had to be left out. Waiting for the
    /// watched socket is never left out, because it speaks against most causes.
    fn count(&mut self, activity: Activity) -> bool {
        if let Some(known) = self.activities.iter_mut().find(|a| a.activity == activity) {
            known.samples = known.samples.saturating_add(1);
            return true;
        }
        let full = self.activities.len() >= MOST_ACTIVITIES;
        if full {
            if !matches!(activity, Activity::WaitHere { .. }) {
                return false;
            }
            self.activities.pop();
        }
        self.activities.push(ActivityCount {
            activity,
            samples: 1,
        });
        !full
    }

    fn finish(mut self, timeslices_now: Option<i64>) -> ThreadWatch {
        self.activities
            .sort_by(|a, b| (b.samples, &a.activity).cmp(&(a.samples, &b.activity)));
        let between = |first: Option<i64>, last: Option<i64>| Some(last?.saturating_sub(first?));
        ThreadWatch {
            tid: self.tid,
            name: self.name,
            cpu_ns: between(self.first.cpu_ns, self.last.cpu_ns),
            run_queue_ns: between(self.first.run_queue_ns, self.last.run_queue_ns),
            activities: self.activities,
            last: Some(self.last_activity),
            woke_at_pick_up: timeslices_now
                .zip(self.last_timeslices)
                .map(|(now, last)| now > last),
        }
    }
}

#[cfg(test)]
mod tests;
