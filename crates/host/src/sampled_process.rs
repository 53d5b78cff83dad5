//! One process that is being sampled, for however many watches.

use std::fs;
use std::io;

use crate::activity::shortened;
use crate::thread_files::{ThreadFiles, ThreadSample};

/// Rounds after which the threads are listed anew.
const ROUNDS_UNTIL_LISTED: u32 = 16;

/// A process and the open files of its threads.
#[derive(Debug)]
pub(crate) struct SampledProcess {
    pid: i32,
    command: String,
    threads: Vec<ThreadFiles>,
    left_out: usize,
    rounds_until_listed: u32,
}

impl SampledProcess {
    /// Reads the name of a process; its threads are listed with the first sample.
    pub(crate) fn new(pid: i32) -> Self {
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Self {
            pid,
            command: shortened(command.trim_end()),
            threads: Vec::new(),
            left_out: 0,
            rounds_until_listed: 0,
        }
    }

    /// Its short name.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// How many of its threads are sampled.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// How many of its threads are not sampled, for want of room.
    pub(crate) const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Samples every thread, at most `most`; the main thread is the first to be taken.
    pub(crate) fn sample(&mut self, most: usize) -> Vec<ThreadSample> {
        if self.rounds_until_listed == 0 {
            // A process that has ended has no threads left to read either.
            self.list_threads(most).unwrap_or_default();
            self.rounds_until_listed = ROUNDS_UNTIL_LISTED;
        }
        self.rounds_until_listed -= 1;
        let mut samples = Vec::with_capacity(self.threads.len());
        self.threads.retain(|thread| {
            let sample = thread.read();
            let alive = sample.is_some();
            samples.extend(sample);
            alive
        });
        samples
    }

    fn list_threads(&mut self, most: usize) -> io::Result<()> {
        let mut tids: Vec<i32> = fs::read_dir(format!("/proc/{}/task", self.pid))?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        tids.sort_unstable_by_key(|tid| (*tid != self.pid, *tid));
        self.left_out = 0;
        for tid in tids {
            if self.threads.iter().any(|thread| thread.tid() == tid) {
                continue;
            }
            if self.threads.len() >= most {
                self.left_out += 1;
            } else if let Ok(thread) = ThreadFiles::open(self.pid, tid) {
                self.threads.push(thread);
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }
}
