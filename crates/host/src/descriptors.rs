//! The open descriptors of a process, as far as sockets and epoll sets are concerned.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, IoSliceMut, Read};
use std::path::Path;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::poll_set::{PollSet, Process, Role};

/// Links read of one process at most.
const MOST_LINKS: usize = 16_384;

/// Bytes read of what the kernel says of one epoll set; a member takes about 80.
const MOST_EPOLL_BYTES: u64 = 128 * 1024;

/// Which descriptors of a process are sockets, and which are epoll sets.
#[derive(Debug)]
pub(crate) struct Descriptors {
    pid: i32,
    sockets: HashMap<u32, Vec<i32>>,
    epoll_sets: Vec<i32>,
}

impl Descriptors {
    /// Lists the descriptors of `pid`, at about 3 µs each.
    ///
    /// # Errors
    /// What reading the directory says: the process has ended, or may not be looked into.
    pub(crate) fn list(pid: i32) -> io::Result<Self> {
        let mut found = Self {
            pid,
            sockets: HashMap::new(),
            epoll_sets: Vec::new(),
        };
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.take(MOST_LINKS) {
            let entry = entry?;
            let Some(descriptor) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            // Descriptors come and go while they are listed.
            if let Ok(target) = fs::read_link(entry.path()) {
                found.note(descriptor, &target);
            }
        }
        Ok(found)
    }

    fn note(&mut self, descriptor: i32, target: &Path) {
        let Some(target) = target.to_str() else {
            return;
        };
        let inode = target
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(inode) = inode.and_then(|number| number.parse().ok()) {
            self.sockets.entry(inode).or_default().push(descriptor);
        } else if target == "anon_inode:[eventpoll]" {
            self.epoll_sets.push(descriptor);
        }
    }

    /// Whether the process holds the socket with this inode.
    pub(crate) fn hold(&self, inode: u32) -> bool {
        self.sockets.contains_key(&inode)
    }
}

/// A process as seen from one of its sockets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub(crate) descriptors: &'a Descriptors,
    pub(crate) inode: u32,
}

impl Process for Holder<'_> {
    fn read_memory(&self, address: u64, bytes: &mut [u8]) -> bool {
        let wanted = bytes.len();
        let Ok(base) = usize::try_from(address) else {
            return false;
        };
        let remote = [RemoteIoVec { base, len: wanted }];
        let read = process_vm_readv(
            Pid::from_raw(self.descriptors.pid),
            &mut [IoSliceMut::new(bytes)],
            &remote,
        );
        read == Ok(wanted)
    }

    fn role(&self, descriptor: i32) -> Role {
        let watched = self.descriptors.sockets.get(&self.inode);
        if watched.is_some_and(|watched| watched.contains(&descriptor)) {
            Role::Watched
        } else if self.descriptors.epoll_sets.contains(&descriptor) {
            Role::EpollSet
        } else {
            Role::Unrelated
        }
    }

    fn watched_inode(&self) -> u64 {
        u64::from(self.inode)
    }

    fn epoll_set(&self, descriptor: i32) -> Option<PollSet> {
        let pid = self.descriptors.pid;
        let file = File::open(format!("/proc/{pid}/fdinfo/{descriptor}")).ok()?;
        let mut text = String::new();
        let read = file.take(MOST_EPOLL_BYTES).read_to_string(&mut text).ok()?;
        let whole = u64::try_from(read).is_ok_and(|read| read < MOST_EPOLL_BYTES);
        Some(PollSet::from_epoll_info(&text, whole))
    }
}
