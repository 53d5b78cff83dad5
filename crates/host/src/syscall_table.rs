//! System calls in which a thread can wait, by number.
//!
//! Numbers differ between processors; the names here are the kernel's, the
//! numbers those of the processor this is built for.

use nix::libc;

/// What a thread can wait for in a system call, and where its arguments say more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitsFor {
    /// A span of time: the address of a `timespec` is this argument.
    Time {
        /// Which argument.
        length: usize,
        /// Which argument has bit 0 set when the time is a deadline and not a length.
        deadline_flag: Option<usize>,
    },
    /// Descriptors in a `pollfd` array: its address, its length, and the timeout.
    PollArray(Timeout),
    /// Descriptors in three bit sets.
    BitSets(Timeout),
    /// The descriptors of the epoll set that argument 0 names.
    EpollSet(Timeout),
    /// The one descriptor that argument 0 names.
    Descriptor,
    /// A word of memory that another thread changes.
    Futex,
    /// A lock of another kind.
    Lock,
    /// Something its arguments do not show.
    Unknown,
    /// Nothing in particular.
    Other,
}

/// How a call is told how long to wait at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    /// Milliseconds in this argument, a 32-bit number; negative for no limit.
    Milliseconds(usize),
    /// The address of a `timespec` in this argument, or null for no limit.
    Timespec(usize),
    /// The address of a `timeval` in this argument, or null for no limit.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "only the older `select` has it")
    )]
    Timeval(usize),
}

/// The name of a system call, and what a thread in it can be waiting for.
pub(crate) fn system_call(number: i64) -> (String, WaitsFor) {
    CALLS
        .iter()
        .chain(OLD_CALLS)
        .find(|(known, _, _)| *known == number)
        .map_or_else(
            || (format!("system call {number}"), WaitsFor::Other),
            |(_, name, waits_for)| ((*name).to_owned(), *waits_for),
        )
}

type Row = (i64, &'static str, WaitsFor);

/// Calls that every 64-bit processor has.
const CALLS: &[Row] = &[
    (
        libc::SYS_nanosleep,
        "nanosleep",
        WaitsFor::Time {
            length: 0,
            deadline_flag: None,
        },
    ),
    (
        libc::SYS_clock_nanosleep,
        "clock_nanosleep",
        WaitsFor::Time {
            length: 2,
            deadline_flag: Some(1),
        },
    ),
    (
        libc::SYS_ppoll,
        "ppoll",
        WaitsFor::PollArray(Timeout::Timespec(2)),
    ),
    (
        libc::SYS_pselect6,
        "pselect6",
        WaitsFor::BitSets(Timeout::Timespec(4)),
    ),
    (
        libc::SYS_epoll_pwait,
        "epoll_pwait",
        WaitsFor::EpollSet(Timeout::Milliseconds(3)),
    ),
    (
        libc::SYS_epoll_pwait2,
        "epoll_pwait2",
        WaitsFor::EpollSet(Timeout::Timespec(3)),
    ),
    (libc::SYS_read, "read", WaitsFor::Descriptor),
    (libc::SYS_readv, "readv", WaitsFor::Descriptor),
    (libc::SYS_recvfrom, "recvfrom", WaitsFor::Descriptor),
    (libc::SYS_recvmsg, "recvmsg", WaitsFor::Descriptor),
    (libc::SYS_recvmmsg, "recvmmsg", WaitsFor::Descriptor),
    (libc::SYS_splice, "splice", WaitsFor::Descriptor),
    (libc::SYS_accept, "accept", WaitsFor::Descriptor),
    (libc::SYS_accept4, "accept4", WaitsFor::Descriptor),
    (libc::SYS_connect, "connect", WaitsFor::Descriptor),
    (libc::SYS_futex, "futex", WaitsFor::Futex),
    (libc::SYS_futex_waitv, "futex_waitv", WaitsFor::Lock),
    (libc::SYS_flock, "flock", WaitsFor::Lock),
    (libc::SYS_semop, "semop", WaitsFor::Lock),
    (libc::SYS_semtimedop, "semtimedop", WaitsFor::Lock),
    (
        libc::SYS_io_uring_enter,
        "io_uring_enter",
        WaitsFor::Unknown,
    ),
    (libc::SYS_io_getevents, "io_getevents", WaitsFor::Unknown),
    (
        libc::SYS_restart_syscall,
        "restart_syscall",
        WaitsFor::Unknown,
    ),
    (libc::SYS_write, "write", WaitsFor::Other),
    (libc::SYS_writev, "writev", WaitsFor::Other),
    (libc::SYS_sendto, "sendto", WaitsFor::Other),
    (libc::SYS_sendmsg, "sendmsg", WaitsFor::Other),
    (libc::SYS_sendmmsg, "sendmmsg", WaitsFor::Other),
    (libc::SYS_sendfile, "sendfile", WaitsFor::Other),
    (libc::SYS_pread64, "pread64", WaitsFor::Other),
    (libc::SYS_pwrite64, "pwrite64", WaitsFor::Other),
    (libc::SYS_fsync, "fsync", WaitsFor::Other),
    (libc::SYS_fdatasync, "fdatasync", WaitsFor::Other),
    (libc::SYS_sync, "sync", WaitsFor::Other),
    (libc::SYS_openat, "openat", WaitsFor::Other),
    (libc::SYS_statx, "statx", WaitsFor::Other),
    (libc::SYS_newfstatat, "newfstatat", WaitsFor::Other),
    (libc::SYS_getdents64, "getdents64", WaitsFor::Other),
    (libc::SYS_fcntl, "fcntl", WaitsFor::Other),
    (libc::SYS_ioctl, "ioctl", WaitsFor::Other),
    (libc::SYS_close, "close", WaitsFor::Other),
    (libc::SYS_shutdown, "shutdown", WaitsFor::Other),
    (libc::SYS_wait4, "wait4", WaitsFor::Other),
    (libc::SYS_waitid, "waitid", WaitsFor::Other),
    (
        libc::SYS_rt_sigtimedwait,
        "rt_sigtimedwait",
        WaitsFor::Other,
    ),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend", WaitsFor::Other),
    (
        libc::SYS_mq_timedreceive,
        "mq_timedreceive",
        WaitsFor::Other,
    ),
    (libc::SYS_msgrcv, "msgrcv", WaitsFor::Other),
    (libc::SYS_mmap, "mmap", WaitsFor::Other),
    (libc::SYS_munmap, "munmap", WaitsFor::Other),
    (libc::SYS_madvise, "madvise", WaitsFor::Other),
    (libc::SYS_execve, "execve", WaitsFor::Other),
    (libc::SYS_clone, "clone", WaitsFor::Other),
    (libc::SYS_ptrace, "ptrace", WaitsFor::Other),
];

/// Calls that newer processors were never given.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[Row] = &[
    (
        libc::SYS_poll,
        "poll",
        WaitsFor::PollArray(Timeout::Milliseconds(2)),
    ),
    (
        libc::SYS_select,
        "select",
        WaitsFor::BitSets(Timeout::Timeval(4)),
    ),
    (
        libc::SYS_epoll_wait,
        "epoll_wait",
        WaitsFor::EpollSet(Timeout::Milliseconds(3)),
    ),
    (libc::SYS_pause, "pause", WaitsFor::Other),
    (libc::SYS_open, "open", WaitsFor::Other),
    (libc::SYS_stat, "stat", WaitsFor::Other),
    (libc::SYS_lstat, "lstat", WaitsFor::Other),
    (libc::SYS_access, "access", WaitsFor::Other),
    (libc::SYS_fork, "fork", WaitsFor::Other),
    (libc::SYS_vfork, "vfork", WaitsFor::Other),
];

/// Calls that newer processors were never given.
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[Row] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_stands_for_two_calls() {
        let mut numbers: Vec<i64> = CALLS.iter().chain(OLD_CALLS).map(|row| row.0).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }

    #[test]
    fn a_number_not_listed_is_named_by_itself() {
        assert_eq!(
            system_call(9_999),
            ("system call 9999".to_owned(), WaitsFor::Other)
        );
    }
}
