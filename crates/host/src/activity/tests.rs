use std::collections::BTreeMap;

use nix::libc;

use super::*;

/// A process of which everything is known.
pub(crate) struct FakeProcess {
    watched: i32,
    inode: u64,
    memory: BTreeMap<u64, Vec<u8>>,
    epolls: BTreeMap<i32, PollSet>,
}

impl FakeProcess {
    pub(crate) fn watching(descriptor: i32) -> Self {
        Self {
            watched: descriptor,
            inode: 0xfffff,
            memory: BTreeMap::new(),
            epolls: BTreeMap::new(),
        }
    }

    pub(crate) fn with_memory(mut self, address: u64, bytes: Vec<u8>) -> Self {
        self.memory.insert(address, bytes);
        self
    }

    pub(crate) fn with_inode(mut self, inode: u64) -> Self {
        self.inode = inode;
        self
    }

    pub(crate) fn with_epoll(mut self, descriptor: i32, set: PollSet) -> Self {
        self.epolls.insert(descriptor, set);
        self
    }
}

impl Process for FakeProcess {
    fn read_memory(&self, address: u64, bytes: &mut [u8]) -> bool {
        let known = self.memory.get(&address);
        let Some(known) = known.and_then(|known| known.get(..bytes.len())) else {
            return false;
        };
        bytes.copy_from_slice(known);
        true
    }

    fn role(&self, descriptor: i32) -> Role {
        if descriptor == self.watched {
            Role::Watched
        } else if self.epolls.contains_key(&descriptor) {
            Role::EpollSet
        } else {
            Role::Unrelated
        }
    }

    fn watched_inode(&self) -> u64 {
        self.inode
    }

    fn epoll_set(&self, descriptor: i32) -> Option<PollSet> {
        self.epolls.get(&descriptor).cloned()
    }
}

fn sample(state: char, call: CallLine) -> ThreadSample {
    ThreadSample {
        tid: 1,
        name: "main".to_owned(),
        state,
        call,
        wait_channel: Some("hrtimer_nanosleep".to_owned()),
        cpu_ns: None,
        run_queue_ns: None,
        timeslices: None,
    }
}

fn asleep_in(number: i64, arguments: [u64; 6], process: &FakeProcess) -> Activity {
    let call = CallLine::In {
        number,
        arguments,
        stack: 0x7fff_0000_0000,
    };
    activity(&sample('S', call), process).unwrap()
}

fn pair(first: i64, second: i64) -> Vec<u8> {
    [first.to_ne_bytes(), second.to_ne_bytes()].concat()
}

#[test]
fn the_scheduling_state_comes_before_the_call() {
    let process = FakeProcess::watching(7);
    let of = |state, call| activity(&sample(state, call), &process);
    assert_eq!(of('R', CallLine::Denied), Some(Activity::Running));
    assert_eq!(of('S', CallLine::Running), Some(Activity::Running));
    assert_eq!(of('D', CallLine::Denied), Some(Activity::Disk));
    assert_eq!(of('T', CallLine::None), Some(Activity::Stopped));
    assert_eq!(of('Z', CallLine::None), None);
    let hidden = Activity::Hidden {
        wait_channel: Some("hrtimer_nanosleep".to_owned()),
    };
    assert_eq!(of('S', CallLine::Denied), Some(hidden));
}

#[test]
fn the_length_of_a_sleep_is_read() {
    let process = FakeProcess::watching(7).with_memory(0x1000, pair(0, 500_000_000));
    let sleep = |timeout_ns| Activity::Sleep {
        call: "clock_nanosleep".to_owned(),
        timeout_ns,
    };
    let call = libc::SYS_clock_nanosleep;
    assert_eq!(
        asleep_in(call, [0, 0, 0x1000, 0, 0, 0], &process),
        sleep(Some(500_000_000))
    );
    assert_eq!(
        asleep_in(call, [0, 1, 0x1000, 0, 0, 0], &process),
        sleep(None)
    );
    assert_eq!(
        asleep_in(call, [0, 0, 0x2000, 0, 0, 0], &process),
        sleep(None)
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn polling_on_nothing_is_a_sleep() {
    let process = FakeProcess::watching(7);
    let sleep = |timeout_ns| Activity::Sleep {
        call: "poll".to_owned(),
        timeout_ns,
    };
    let poll = |timeout| asleep_in(libc::SYS_poll, [0, 0, timeout, 0, 0, 0], &process);
    assert_eq!(poll(500), sleep(Some(500_000_000)));
    assert_eq!(poll(0xffff_ffff), sleep(None));
    assert_eq!(poll(0xabcd_0000_0001), sleep(Some(1_000_000)));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn selecting_on_nothing_is_a_sleep() {
    let process = FakeProcess::watching(7).with_memory(0x1000, pair(0, 250_000));
    let activity = asleep_in(libc::SYS_select, [0, 0, 0, 0, 0x1000, 0], &process);
    let expected = Activity::Sleep {
        call: "select".to_owned(),
        timeout_ns: Some(250_000_000),
    };
    assert_eq!(activity, expected);
}

#[test]
fn waiting_on_an_epoll_set_depends_on_what_it_holds() {
    let holding = |descriptor| {
        let line = format!("tfd: {descriptor} events: 1 data: 0 pos:0 ino:1 sdev:9");
        PollSet::from_epoll_info(&line, true)
    };
    let process = FakeProcess::watching(7)
        .with_epoll(3, holding(7))
        .with_epoll(4, holding(8));
    let wait = |set| asleep_in(libc::SYS_epoll_pwait, [set, 0, 0, 500, 0, 0], &process);
    let call = || "epoll_pwait".to_owned();
    assert_eq!(wait(3), Activity::WaitHere { call: call() });
    let elsewhere = Activity::WaitElsewhere {
        call: call(),
        timeout_ns: Some(500_000_000),
    };
    assert_eq!(wait(4), elsewhere);
    assert_eq!(wait(5), Activity::WaitUnknown { call: call() });
}

#[test]
fn reading_is_told_apart_by_the_descriptor() {
    let process = FakeProcess::watching(7);
    let recv = |descriptor| asleep_in(libc::SYS_recvfrom, [descriptor, 0, 0, 0, 0, 0], &process);
    let call = || "recvfrom".to_owned();
    assert_eq!(recv(7), Activity::WaitHere { call: call() });
    let elsewhere = Activity::WaitElsewhere {
        call: call(),
        timeout_ns: None,
    };
    assert_eq!(recv(8), elsewhere);
}

#[test]
fn only_a_futex_with_a_length_tells_it() {
    let process = FakeProcess::watching(7).with_memory(0x1000, pair(1, 5));
    let futex = |operation| asleep_in(libc::SYS_futex, [0, operation, 0, 0x1000, 0, 0], &process);
    let lock = |timeout_ns| Activity::Lock { timeout_ns };
    assert_eq!(futex(0x80), lock(Some(1_000_000_005)));
    assert_eq!(futex(0x80 | 9), lock(None));
}

#[test]
fn calls_of_a_32_bit_process_are_not_decoded() {
    let process = FakeProcess::watching(7);
    let call = CallLine::In {
        number: 7,
        arguments: [0; 6],
        stack: 0xffff_d000,
    };
    let activity = activity(&sample('S', call), &process).unwrap();
    assert!(matches!(activity, Activity::Hidden { .. }), "{activity:?}");
}

#[test]
fn no_registers_and_no_memory_break_it() {
    let process = FakeProcess::watching(7).with_memory(u64::MAX, pair(i64::MAX, i64::MIN));
    for number in -1..600 {
        for argument in [0, 1, u64::MAX, 0x8000_0000, 1 << 63] {
            asleep_in(number, [argument; 6], &process);
        }
    }
}

#[test]
fn texts_are_cut_between_characters() {
    let long = format!("a{}", "é".repeat(40));
    assert_eq!(shortened(&long).len(), 63);
    assert_eq!(shortened("short"), "short");
}
