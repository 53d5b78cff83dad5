//! From a sample of a thread to what it is doing.

use skewtap_core::endpoint::Activity;

use crate::poll_set::{PollSet, Process, Role, Waits};
use crate::syscall_table::{Timeout, WaitsFor, system_call};
use crate::thread_files::{CallLine, ThreadSample};

/// Longest text kept of anything the kernel says, in bytes.
const LONGEST_TEXT: usize = 64;

/// What a thread is doing with regard to the watched socket; `None` when it has ended.
pub(crate) fn activity(sample: &ThreadSample, process: &impl Process) -> Option<Activity> {
    Some(match (sample.state, &sample.call) {
        ('Z' | 'X' | 'x', _) => return None,
        ('R', _) => Activity::Running,
        ('D', _) => Activity::Disk,
        ('T' | 't', _) => Activity::Stopped,
        (_, CallLine::Running) => Activity::Running,
        (
            _,
            CallLine::In {
                number,
                arguments,
                stack,
            },
        ) if !is_32_bit(*stack) => in_call(*number, *arguments, process),
        _ => Activity::Hidden {
            wait_channel: sample.wait_channel.as_deref().map(shortened),
        },
    })
}

/// A thread of a 32-bit process: its calls have other numbers. No 64-bit program has its stack
/// in the lowest 4 GiB.
pub(crate) const fn is_32_bit(stack: u64) -> bool {
    stack <= u32::MAX as u64
}

/// At most as much of `text` as is kept, cut between characters.
pub(crate) fn shortened(text: &str) -> String {
    text.get(..text.floor_char_boundary(LONGEST_TEXT))
        .unwrap_or_default()
        .to_owned()
}

fn in_call(number: i64, arguments: [u64; 6], process: &impl Process) -> Activity {
    let [a0, a1, a2, a3, ..] = arguments;
    let (call, waits_for) = system_call(number);
    match waits_for {
        WaitsFor::Time {
            length,
            deadline_flag,
        } => Activity::Sleep {
            call,
            timeout_ns: if deadline_flag.is_some_and(|flag| argument(&arguments, flag) & 1 == 1) {
                None
            } else {
                timespec_ns(process, argument(&arguments, length))
            },
        },
        WaitsFor::PollArray(timeout) => {
            let set = PollSet::from_poll_array(process, a0, a1);
            on_set(call, set, timeout_ns(timeout, &arguments, process), process)
        }
        WaitsFor::BitSets(timeout) => {
            // The number of descriptors is an `int`.
            let set = PollSet::from_bit_sets(process, a0 & 0xffff_ffff, [a1, a2, a3]);
            on_set(call, set, timeout_ns(timeout, &arguments, process), process)
        }
        WaitsFor::EpollSet(timeout) => {
            let set = descriptor(a0).and_then(|descriptor| process.epoll_set(descriptor));
            on_set(call, set, timeout_ns(timeout, &arguments, process), process)
        }
        WaitsFor::Descriptor => match descriptor(a0).map(|descriptor| process.role(descriptor)) {
            Some(Role::Watched) => Activity::WaitHere { call },
            _ => Activity::WaitElsewhere {
                call,
                timeout_ns: None,
            },
        },
        WaitsFor::Futex => Activity::Lock {
            timeout_ns: futex_timeout_ns(&arguments, process),
        },
        WaitsFor::Lock => Activity::Lock { timeout_ns: None },
        WaitsFor::Unknown => Activity::WaitUnknown { call },
        WaitsFor::Other => Activity::Call { call },
    }
}

fn on_set(
    call: String,
    set: Option<PollSet>,
    timeout_ns: Option<i64>,
    process: &impl Process,
) -> Activity {
    match set.map_or(Waits::Unknown, |set| set.waits(process)) {
        Waits::Here => Activity::WaitHere { call },
        Waits::Elsewhere => Activity::WaitElsewhere { call, timeout_ns },
        Waits::OnNothing => Activity::Sleep { call, timeout_ns },
        Waits::Unknown => Activity::WaitUnknown { call },
    }
}

/// `FUTEX_WAIT` is given a length; all other operations that wait are given a deadline.
fn futex_timeout_ns(arguments: &[u64; 6], process: &impl Process) -> Option<i64> {
    const OPERATION: u64 = 0x7f;
    const FUTEX_WAIT: u64 = 0;
    let [_, operation, _, timeout, ..] = *arguments;
    if operation & OPERATION == FUTEX_WAIT {
        timespec_ns(process, timeout)
    } else {
        None
    }
}

fn timeout_ns(timeout: Timeout, arguments: &[u64; 6], process: &impl Process) -> Option<i64> {
    match timeout {
        Timeout::Milliseconds(at) => {
            let milliseconds = low_half(argument(arguments, at)).cast_signed();
            (milliseconds >= 0).then(|| i64::from(milliseconds) * 1_000_000)
        }
        Timeout::Timespec(at) => timespec_ns(process, argument(arguments, at)),
        Timeout::Timeval(at) => pair_ns(process, argument(arguments, at), 1_000),
    }
}

/// The length in the `timespec` at `address`, in nanoseconds.
fn timespec_ns(process: &impl Process, address: u64) -> Option<i64> {
    pair_ns(process, address, 1)
}

/// Seconds and a fraction in units of `unit_ns`; `None` for a null or unreadable address and
/// for what the kernel would refuse.
fn pair_ns(process: &impl Process, address: u64, unit_ns: i64) -> Option<i64> {
    let mut bytes = [0; 16];
    if address == 0 || !process.read_memory(address, &mut bytes) {
        return None;
    }
    let seconds = i64::from_ne_bytes(*bytes.first_chunk()?);
    let fraction = i64::from_ne_bytes(*bytes.last_chunk()?);
    if seconds < 0 || fraction < 0 {
        return None;
    }
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(fraction.checked_mul(unit_ns)?)
}

fn argument(arguments: &[u64; 6], at: usize) -> u64 {
    arguments.get(at).copied().unwrap_or(0)
}

/// Descriptors are `int`s: the upper half of the register may hold anything.
fn descriptor(register: u64) -> Option<i32> {
    i32::try_from(low_half(register)).ok()
}

fn low_half(register: u64) -> u32 {
    let [a, b, c, d, ..] = register.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
pub(crate) mod tests;
