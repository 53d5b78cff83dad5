//! Sets of descriptors that a thread waits on, and whether the watched socket is among them.

/// Descriptors that could wake a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PollSet {
    /// The descriptors, each once or more often.
    pub(crate) members: Vec<Member>,
    /// Whether some may be missing.
    pub(crate) incomplete: bool,
}

/// One descriptor of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its number in the process.
    pub(crate) descriptor: i32,
    /// Whether the thread wants to know when there is something to read.
    pub(crate) for_reading: bool,
    /// Its inode, where the kernel tells.
    pub(crate) inode: Option<u64>,
}

/// What a set means for the watched socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// The socket becoming readable wakes the thread.
    Here,
    /// It does not, though something else may.
    Elsewhere,
    /// No descriptor can wake the thread.
    OnNothing,
    /// The set could not be listed.
    Unknown,
}

/// What a descriptor is to the watched socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is the socket.
    Watched,
    /// It is an epoll set, which may hold the socket.
    EpollSet,
    /// It is something else.
    Unrelated,
}

/// What has to be known of the process around a set.
pub(crate) trait Process {
    /// Copies from the process's memory; false unless all of `bytes` was filled.
    fn read_memory(&self, address: u64, bytes: &mut [u8]) -> bool;
    /// What a descriptor is to the watched socket.
    fn role(&self, descriptor: i32) -> Role;
    /// The inode of the watched socket.
    fn watched_inode(&self) -> u64;
    /// The members of an epoll set; `None` when they may not be seen.
    fn epoll_set(&self, descriptor: i32) -> Option<PollSet>;
}

/// How deep epoll sets are followed into one another; the kernel allows five.
const DEEPEST: u32 = 5;

/// Descriptors read of one set at most; what lies beyond makes it incomplete.
const MOST_MEMBERS: usize = 1024;

const POLLIN: u32 = 0x1;
const POLLRDNORM: u32 = 0x40;

impl PollSet {
    /// Whether the watched socket is in the set, directly or through epoll sets inside it.
    pub(crate) fn waits(&self, process: &impl Process) -> Waits {
        self.waits_within(process, 0)
    }

    fn waits_within(&self, process: &impl Process, depth: u32) -> Waits {
        if self.members.is_empty() && !self.incomplete {
            return Waits::OnNothing;
        }
        let mut unknown = self.incomplete;
        for member in self.members.iter().filter(|member| member.for_reading) {
            let role = process.role(member.descriptor);
            if role == Role::Watched || member.inode == Some(process.watched_inode()) {
                return Waits::Here;
            }
            if role == Role::EpollSet {
                let inner = process
                    .epoll_set(member.descriptor)
                    .filter(|_| depth < DEEPEST)
                    .map_or(Waits::Unknown, |set| set.waits_within(process, depth + 1));
                match inner {
                    Waits::Here => return Waits::Here,
                    Waits::Unknown => unknown = true,
                    Waits::Elsewhere | Waits::OnNothing => {}
                }
            }
        }
        if unknown {
            Waits::Unknown
        } else {
            Waits::Elsewhere
        }
    }

    /// Reads an array of `pollfd` from the process; `None` when it may not be read. Entries
    /// with a negative number are passed over, as the kernel does.
    pub(crate) fn from_poll_array(
        process: &impl Process,
        address: u64,
        count: u64,
    ) -> Option<Self> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut bytes = vec![0; count.min(MOST_MEMBERS) * 8];
        if !bytes.is_empty() && !process.read_memory(address, &mut bytes) {
            return None;
        }
        let members = bytes
            .chunks_exact(8)
            .filter_map(|entry| {
                let descriptor = i32::from_ne_bytes(*entry.first_chunk()?);
                let events = u16::from_ne_bytes(*entry.get(4..)?.first_chunk()?);
                (descriptor >= 0).then_some(Member {
                    descriptor,
                    for_reading: reads(u32::from(events)),
                    inode: None,
                })
            })
            .collect();
        Some(Self {
            members,
            incomplete: count > MOST_MEMBERS,
        })
    }

    /// Reads the three bit sets of `select` from the process, each of `count` bits and each
    /// possibly null; `None` when one may not be read.
    pub(crate) fn from_bit_sets(
        process: &impl Process,
        count: u64,
        [read, write, except]: [u64; 3],
    ) -> Option<Self> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let bits = count.min(MOST_MEMBERS);
        let mut set = Self {
            members: Vec::new(),
            incomplete: count > MOST_MEMBERS,
        };
        for (address, for_reading) in [(read, true), (write, false), (except, false)] {
            let mut bytes = vec![0; bits.div_ceil(64) * 8];
            if address == 0 || bits == 0 {
                continue;
            }
            if !process.read_memory(address, &mut bytes) {
                return None;
            }
            let words = bytes.as_chunks::<8>().0;
            set.members.extend((0..bits).filter_map(|bit| {
                let word = u64::from_ne_bytes(*words.get(bit / 64)?);
                (word >> (bit % 64) & 1 == 1).then_some(Member {
                    descriptor: i32::try_from(bit).ok()?,
                    for_reading,
                    inode: None,
                })
            }));
        }
        Some(set)
    }

    /// Reads what `/proc/PID/fdinfo` says of an epoll set. A member that was switched off after
    /// its last event (`EPOLLONESHOT`) waits for nothing.
    pub(crate) fn from_epoll_info(text: &str, whole: bool) -> Self {
        let mut set = Self {
            members: Vec::new(),
            incomplete: !whole,
        };
        for line in text.lines().filter_map(|line| line.strip_prefix("tfd:")) {
            let field = |name: &str| {
                let (_, rest) = line.split_once(name)?;
                rest.split_ascii_whitespace().next()
            };
            let member = || {
                let events = u32::from_str_radix(field("events:")?, 16).ok()?;
                Some(Member {
                    descriptor: line.split_ascii_whitespace().next()?.parse().ok()?,
                    for_reading: reads(events),
                    inode: field("ino:").and_then(|hex| u64::from_str_radix(hex, 16).ok()),
                })
            };
            match member() {
                Some(member) if set.members.len() < MOST_MEMBERS => set.members.push(member),
                _ => set.incomplete = true,
            }
        }
        set
    }
}

fn reads(events: u32) -> bool {
    events & (POLLIN | POLLRDNORM) != 0
}

#[cfg(test)]
mod tests;
