//! The thread that samples processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use skewtap_sockstamp::realtime_ns;

use crate::activity::{activity, is_32_bit};
use crate::counters::{Counters, count};
use crate::descriptors::Descriptors;
use crate::owner::OwnerFinder;
use crate::paced_thread::Pace;
use crate::sample_log::{Round, SampleLog, SeenThread};
use crate::sampled_process::SampledProcess;
use crate::thread_files::{CallLine, ThreadSample};

/// Threads sampled at once, over all processes. Each takes three open files, and those are
/// shared with the connections of whatever program this runs in.
const MOST_THREADS: usize = 64;

/// Rounds after which the descriptors of a process are listed anew.
const ROUNDS_UNTIL_LISTED: u32 = 16;

/// A socket whose holder is to be sampled; shared between the watcher, which knows when bytes
/// were unread, and the sampler, which knows what the process did.
#[derive(Debug)]
pub(crate) struct SampleTarget {
    inode: AtomicU32,
    uid: AtomicU32,
    unread_ns: AtomicI64,
    finished: AtomicBool,
    log: Mutex<SampleLog>,
}

impl SampleTarget {
    /// A socket by its inode and the user it belongs to.
    pub(crate) fn new(inode: u32, uid: u32) -> Self {
        Self {
            inode: AtomicU32::new(inode),
            uid: AtomicU32::new(uid),
            unread_ns: AtomicI64::new(i64::MIN),
            finished: AtomicBool::new(false),
            log: Mutex::default(),
        }
    }

    /// Notes a look-up, begun at `unread_ns`, that saw bytes unread, and whose socket it is now.
    pub(crate) fn note_unread(&self, inode: u32, uid: u32, unread_ns: i64) {
        self.uid.store(uid, Ordering::Relaxed);
        self.inode.store(inode, Ordering::Release);
        self.note_still_unread(unread_ns);
    }

    /// Notes a look-up, begun at `unread_ns`, that saw bytes unread.
    pub(crate) fn note_still_unread(&self, unread_ns: i64) {
        self.unread_ns.store(unread_ns, Ordering::Release);
    }

    /// Ends the sampling and gives the log, with what look-ups have confirmed so far.
    pub(crate) fn finish(&self) -> MutexGuard<'_, SampleLog> {
        self.finished.store(true, Ordering::Release);
        self.confirmed_log()
    }

    fn confirmed_log(&self) -> MutexGuard<'_, SampleLog> {
        let unread_ns = self.unread_ns.load(Ordering::Acquire);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.confirm(unread_ns);
        log
    }
}

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
                sampler.track(target);
                targets.try_iter().for_each(|more| sampler.track(more));
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
}

struct Tracked {
    target: Arc<SampleTarget>,
    resolved: u32,
    owners: Vec<(i32, Descriptors)>,
    rounds_until_listed: u32,
}

impl Sampler {
    fn track(&mut self, target: Arc<SampleTarget>) {
        self.tracked.push(Tracked {
            target,
            resolved: 0,
            owners: Vec::new(),
            rounds_until_listed: ROUNDS_UNTIL_LISTED,
        });
    }

    fn round(&mut self, counters: &Counters) {
        self.tracked
            .retain(|tracked| !tracked.target.finished.load(Ordering::Acquire));
        for tracked in &mut self.tracked {
            tracked.resolve(&mut self.finder);
            tracked.list_again();
        }
        let owners: BTreeSet<i32> = self
            .tracked
            .iter()
            .flat_map(|tracked| tracked.owners.iter().map(|(pid, _)| *pid))
            .collect();
        self.processes.retain(|pid, _| owners.contains(pid));
        for pid in owners {
            self.processes
                .entry(pid)
                .or_insert_with(|| SampledProcess::new(pid));
        }
        let samples = self.sample_processes();
        count(&counters.samples, samples.values().map(Vec::len).sum());
        for tracked in &self.tracked {
            tracked.add_round(&self.processes, &samples);
        }
    }

    /// Samples each process once, whichever number of watches want it.
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
    /// Looks for the holders once for each inode: a server's socket has none at first, and the
    /// listener stands in for it.
    fn resolve(&mut self, finder: &mut OwnerFinder) {
        let inode = self.target.inode.load(Ordering::Acquire);
        if inode == self.resolved {
            return;
        }
        self.resolved = inode;
        match finder.find(inode, self.target.uid.load(Ordering::Relaxed)) {
            Ok(owners) => self.owners = owners,
            Err(why) => {
                self.owners.clear();
                self.target.confirmed_log().note_missing(why);
            }
        }
    }

    /// Lists descriptors anew now and then, and at once when one turns out to have changed.
    fn list_again(&mut self) {
        self.rounds_until_listed = self.rounds_until_listed.saturating_sub(1);
        let all = self.rounds_until_listed == 0;
        if all {
            self.rounds_until_listed = ROUNDS_UNTIL_LISTED;
        }
        let inode = self.resolved;
        self.owners.retain_mut(|(pid, descriptors)| {
            if !all && descriptors.still_hold() {
                return true;
            }
            match Descriptors::list(*pid, inode) {
                Ok(listed) if listed.hold_socket() => {
                    *descriptors = listed;
                    true
                }
                Ok(_) | Err(_) => false,
            }
        });
    }

    fn add_round(
        &self,
        processes: &BTreeMap<i32, SampledProcess>,
        samples: &BTreeMap<i32, Vec<ThreadSample>>,
    ) {
        let mut threads = Vec::new();
        let mut limits = Vec::new();
        for (pid, descriptors) in &self.owners {
            let of_process = samples.get(pid).map(Vec::as_slice).unwrap_or_default();
            threads.extend(of_process.iter().filter_map(|s| seen(s, descriptors)));
            limits.extend(limit_of_calls(*pid, of_process));
        }
        let ended_ns = realtime_ns();
        let mut log = self.target.confirmed_log();
        for (position, (pid, _)) in self.owners.iter().enumerate() {
            let Some(process) = processes.get(pid) else {
                continue;
            };
            log.note_owner(*pid, process.command());
            if position > 0 {
                let command = process.command();
                limits.push(format!("process {pid} ({command}) holds the socket too"));
            }
            if process.left_out() > 0 {
                let (some, all) = (process.threads(), process.threads() + process.left_out());
                limits.push(format!(
                    "only {some} of {all} threads of process {pid} were sampled"
                ));
            }
        }
        limits.into_iter().for_each(|limit| log.note_limit(limit));
        if !threads.is_empty() {
            log.add(Round { ended_ns, threads });
        }
    }
}

fn seen(sample: &ThreadSample, descriptors: &Descriptors) -> Option<SeenThread> {
    Some(SeenThread {
        tid: sample.tid,
        name: sample.name.clone(),
        activity: activity(sample, descriptors)?,
        cpu_ns: sample.cpu_ns,
        run_queue_ns: sample.run_queue_ns,
    })
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
