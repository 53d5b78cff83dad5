//! What the proxy's machine saw of an endpoint that runs on it: the receive
//! queue of its socket, and what its process was doing meanwhile.

use serde::{Deserialize, Serialize};

/// How watching the receive queue of an endpoint's socket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOutcome {
    /// The application read everything; the bracket is the stamp of the pick-up milestone.
    Read,
    /// The socket was closed or reset, and no look-up saw the bytes read before that. A reset after
    /// the last look may have come from an application that had read them meanwhile.
    LeftUnread,
    /// Bytes were still unread when the watch had to end.
    StillUnread,
    /// No such socket in the proxy's network namespace: the endpoint is elsewhere.
    NotHere,
    /// The kernel refused the look-up, or watching was switched off.
    NotWatched,
}

/// A watch over one receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueWatch {
    /// How it ended.
    pub outcome: QueueOutcome,
    /// Look-ups made.
    pub polls: u32,
    /// Look-ups that saw unread bytes.
    pub unread_polls: u32,
}

impl QueueWatch {
    /// A watch that never looked.
    pub const NOT_WATCHED: Self = Self {
        outcome: QueueOutcome::NotWatched,
        polls: 0,
        unread_polls: 0,
    };
}

/// Samples of a process taken while bytes lay unread in its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessWatch {
    /// Process identifier as the proxy sees it.
    pub pid: i32,
    /// Short name of the process (`comm`).
    pub command: String,
    /// Rounds of sampling; each looks at every thread once.
    pub samples: u32,
    /// What was not permitted or not found, in words; empty when all was seen.
    pub limits: Vec<String>,
    /// One entry for each thread, main thread first.
    pub threads: Vec<ThreadWatch>,
}

/// What one thread was doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadWatch {
    /// Thread identifier; equals the pid for the main thread.
    pub tid: i32,
    /// Name of the thread.
    pub name: String,
    /// Nanoseconds on a CPU between the first and the last sample, where known.
    pub cpu_ns: Option<i64>,
    /// Nanoseconds runnable without a CPU between the first and the last sample, where known.
    pub run_queue_ns: Option<i64>,
    /// Distinct activities with how often each was seen, most often first.
    pub activities: Vec<ActivityCount>,
    /// What the last sample before the pick-up saw.
    pub last: Option<Activity>,
    /// Whether the thread ran between that sample and the first one after the pick-up; `None`
    /// when no sample could be taken after it.
    pub woke_at_pick_up: Option<bool>,
}

/// How often an activity was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityCount {
    /// The activity.
    pub activity: Activity,
    /// Samples that saw it.
    pub samples: u32,
}

/// What a thread is doing, as far as the kernel tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Activity {
    /// Asleep until a timer, with no descriptor that could wake it.
    Sleep {
        /// The system call, such as `poll` or `clock_nanosleep`.
        call: String,
        /// Length of the sleep as asked for, in nanoseconds, where it could be read.
        timeout_ns: Option<i64>,
    },
    /// Waits on descriptors among which the watched socket is not.
    WaitElsewhere {
        /// The system call.
        call: String,
        /// Longest wait as asked for, in nanoseconds; `None` for no limit or unknown.
        timeout_ns: Option<i64>,
    },
    /// Waits for, or reads, the watched socket.
    WaitHere {
        /// The system call.
        call: String,
    },
    /// Waits on descriptors that could not be listed.
    WaitUnknown {
        /// The system call.
        call: String,
    },
    /// Waits for a lock or for another thread.
    Lock {
        /// Longest wait as asked for, in nanoseconds; `None` for no limit or unknown.
        timeout_ns: Option<i64>,
    },
    /// In any other system call.
    Call {
        /// The system call.
        call: String,
    },
    /// On a CPU, or ready to be.
    Running,
    /// In an uninterruptible wait, usually for a disk.
    Disk,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Asleep; what for may not be seen.
    Hidden {
        /// The kernel's wait channel, where permitted.
        wait_channel: Option<String>,
    },
}
