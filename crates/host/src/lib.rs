//! What this machine's kernel knows of both endpoints of a connection.
//!
//! After a message was written to a TCP connection, a [`Watcher`] follows it into the receive
//! queue of the endpoint and says when the application read it, as an interval; and if the
//! message lay there for long, what the threads of the process were doing meanwhile. Neither the
//! endpoint nor its user takes part, and no privilege is needed for the interval.
//!
//! - An endpoint in another network namespace or on another machine is
//!   [`NotHere`](skewtap_core::endpoint::QueueOutcome::NotHere).
//! - Processes can be sampled as far as the kernel permits; what it does not is said in words.
//! - A sample counts only if bytes were seen unread after it.
//! - Nothing here waits for, or wakes, the endpoint.
//!
//! Elsewhere than on Linux every watch ends at once with
//! [`NotWatched`](skewtap_core::endpoint::QueueOutcome::NotWatched).
#![forbid(unsafe_code)]

mod availability;
mod counters;
mod settings;
mod watch;
pub use availability::Availability;
pub use counters::WatcherCounters;
pub use settings::WatcherSettings;
pub use watch::{WatchHandle, WatchRequest, WatchResult};

// Looking into queues, from the kernel's messages up.
#[cfg(target_os = "linux")]
mod active_watch;
#[cfg(target_os = "linux")]
mod pick_up;
#[cfg(target_os = "linux")]
mod queue_lookup;
#[cfg(target_os = "linux")]
mod sock_diag;
#[cfg(target_os = "linux")]
mod watch_loop;
#[cfg(target_os = "linux")]
mod watch_schedule;

// Sampling processes, from the kernel's files up.
#[cfg(target_os = "linux")]
mod activity;
#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod owner;
#[cfg(target_os = "linux")]
mod poll_set;
#[cfg(target_os = "linux")]
mod sample_log;
#[cfg(target_os = "linux")]
mod sample_target;
#[cfg(target_os = "linux")]
mod sampled_process;
#[cfg(target_os = "linux")]
mod sampler;
#[cfg(target_os = "linux")]
mod syscall_table;
#[cfg(target_os = "linux")]
mod thread_files;

// Both.
#[cfg(target_os = "linux")]
mod counting;
#[cfg(target_os = "linux")]
mod cpu_budget;
#[cfg(target_os = "linux")]
mod paced_thread;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod watcher;
#[cfg(target_os = "linux")]
pub use watcher::Watcher;

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
pub use unsupported::Watcher;
