//! The thread that samples processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use skewtap_sockstamp::realtime_ns;

use crate::activity::{activity, is_32_bit};
use crate::counting::{Counters, count};
use crate::descriptors::Holder;
use crate::owner::{OwnerFinder, Wanted};
use crate::paced_thread::Pace;
use crate::sample_log::{Round, SeenThread};
use crate::sample_target::SampleTarget;
use crate::sampled_process::SampledProcess;
use crate::thread_files::{CallLine, ThreadSample};

/// Sockets whose holders are sampled at once.
const MOST_TARGETS: usize = 64;

/// Threads sampled at once, over all processes. Each takes three open files, and those are
/// shared with the connections of whatever program this runs in.
const MOST_THREADS: usize = 64;

/// Rounds after which the descriptors of the processes are listed anew.
const ROUNDS_UNTIL_LISTED: u32 = 16;

/// Samples processes until no more targets can come. Blocks while there is none.
pub(crate) fn run(
    targets: &Receiver<Arc<SampleTarget>>,
    interval: Duration,
    mut pace: Pace,
    counters: &Counters,
) {
    let mut sampler = Sampler::default();
    loop {
        let round_began = Instant::now();
        sampler.round(counters);
        pace.pause(&counters.sampler_cpu_ns);
        let next = if sampler.tracked.is_empty() {
            targets.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            targets.recv_timeout(interval.saturating_sub(round_began.elapsed()))
        };
        match next {
            Ok(target) => {
                sampler.track(target, counters);
                for more in targets.try_iter() {
                    sampler.track(more, counters);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[derive(Default)]
struct Sampler {
    tracked: Vec<Tracked>,
    processes: BTreeMap<i32, SampledProcess>,
    finder: OwnerFinder,
    rounds: u32,
}

struct Tracked {
    target: Arc<SampleTarget>,
    socket: Option<Wanted>,
    owners: Vec<i32>,
}

impl Sampler {
    fn track(&mut self, target: Arc<SampleTarget>, counters: &Counters) {
        if self.tracked.len() < MOST_TARGETS {
            count(&counters.sampled_watches, 1);
            self.tracked.push(Tracked {
                target,
                socket: None,
                owners: Vec::new(),
            });
        } else {
            count(&counters.sampling_refused, 1);
            let why = "too many sockets lay unread at once to sample all their processes";
            target.log().note_missing(why.to_owned());
        }
    }

    /// Samples every thread once, and notes for every socket what it means for that socket.
    fn round(&mut self, counters: &Counters) {
        self.tracked.retain(|tracked| !tracked.target.is_finished());
        self.find_owners();
        let owners: BTreeSet<i32> = self
            .tracked
            .iter()
            .flat_map(|tracked| tracked.owners.iter().copied())
            .collect();
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds.is_multiple_of(ROUNDS_UNTIL_LISTED) || owners.is_empty() {
            self.finder.list_again(&owners);
        }
        self.processes.retain(|pid, _| owners.contains(pid));
        for pid in owners {
            self.processes
                .entry(pid)
                .or_insert_with(|| SampledProcess::new(pid));
        }
        let samples = self.sample_processes();
        count(&counters.samples, samples.values().map(Vec::len).sum());
        for tracked in &self.tracked {
            tracked.add_round(&self.finder, &self.processes, &samples);
        }
    }

    /// Looks for the holders of the sockets that are new.
    fn find_owners(&mut self) {
        let mut new = Vec::new();
        let mut wanted = Vec::new();
        for tracked in &mut self.tracked {
            let socket = tracked.target.socket();
            if tracked.socket != Some(socket) {
                tracked.socket = Some(socket);
                wanted.push(socket);
                new.push(tracked);
            }
        }
        if new.is_empty() {
            return;
        }
        for (tracked, found) in new.into_iter().zip(self.finder.find(&wanted)) {
            match found {
                Ok(owners) => tracked.owners = owners,
                Err(why) => {
                    tracked.owners.clear();
                    tracked.target.log().note_missing(why);
                }
            }
        }
    }

    /// Samples each process once, whichever number of sockets of it are watched.
    fn sample_processes(&mut self) -> BTreeMap<i32, Vec<ThreadSample>> {
        let mut in_use: usize = self.processes.values().map(SampledProcess::threads).sum();
        let mut samples = BTreeMap::new();
        for (pid, process) in &mut self.processes {
            let others = in_use - process.threads();
            samples.insert(*pid, process.sample(MOST_THREADS.saturating_sub(others)));
            in_use = others + process.threads();
        }
        samples
    }
}

impl Tracked {
    fn add_round(
        &self,
        finder: &OwnerFinder,
        processes: &BTreeMap<i32, SampledProcess>,
        samples: &BTreeMap<i32, Vec<ThreadSample>>,
    ) {
        let mut threads = Vec::new();
        let mut owners = Vec::new();
        let mut limits = Vec::new();
        for pid in &self.owners {
            let (Some(holder), Some(process), Some(samples)) = (
                self.holder(finder, *pid),
                processes.get(pid),
                samples.get(pid),
            ) else {
                continue;
            };
            threads.extend(samples.iter().filter_map(|sample| seen(sample, &holder)));
            if !owners.is_empty() {
                let command = process.command();
                limits.push(format!("process {pid} ({command}) holds the socket too"));
            }
            owners.push((*pid, process.command()));
            limits.extend(limit_of_threads(*pid, process));
            limits.extend(limit_of_calls(*pid, samples));
        }
        let ended_ns = realtime_ns();
        let mut log = self.target.log();
        for (pid, command) in owners {
            log.note_owner(pid, command);
        }
        limits.into_iter().for_each(|limit| log.note_limit(limit));
        if !threads.is_empty() {
            log.add(Round { ended_ns, threads });
        }
    }

    /// A process that was found to hold the socket, unless it has let go of it since.
    fn holder<'a>(&self, finder: &'a OwnerFinder, pid: i32) -> Option<Holder<'a>> {
        let inode = self.socket?.inode;
        let descriptors = finder.descriptors(pid)?;
        descriptors
            .hold(inode)
            .then_some(Holder { descriptors, inode })
    }
}

fn seen(sample: &ThreadSample, holder: &Holder<'_>) -> Option<SeenThread> {
    Some(SeenThread {
        tid: sample.tid,
        name: sample.name.clone(),
        activity: activity(sample, holder)?,
        cpu_ns: sample.cpu_ns,
        run_queue_ns: sample.run_queue_ns,
        timeslices: sample.timeslices,
    })
}

fn limit_of_threads(pid: i32, process: &SampledProcess) -> Option<String> {
    let (some, left_out) = (process.threads(), process.left_out());
    let all = some + left_out;
    (left_out > 0).then(|| format!("only {some} of {all} threads of process {pid} were sampled"))
}

fn limit_of_calls(pid: i32, samples: &[ThreadSample]) -> Option<String> {
    if samples.iter().any(ThreadSample::call_denied) {
        return Some(format!(
            "the system calls of process {pid} may not be seen (it takes the same user and a process that may be traced, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)"
        ));
    }
    let is_32_bit = |sample: &ThreadSample| matches!(sample.call, CallLine::In { stack, .. } if is_32_bit(stack));
    samples
        .iter()
        .any(is_32_bit)
        .then(|| format!("process {pid} is a 32-bit program: its system calls are not decoded"))
}
