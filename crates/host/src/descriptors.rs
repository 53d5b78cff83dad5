//! The open descriptors of a process, as far as the watched socket is concerned.

use std::fs::{self, File};
use std::io::{self, IoSliceMut, Read};

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::poll_set::{PollSet, Process, Role};

/// Links read of one process at most.
const MOST_LINKS: usize = 4096;

/// Bytes read of what the kernel says of one epoll set; a member takes about 80.
const MOST_EPOLL_BYTES: u64 = 128 * 1024;

/// Which descriptors of a process are the watched socket, and which are epoll sets.
#[derive(Debug)]
pub(crate) struct Descriptors {
    pid: i32,
    inode: u32,
    watched: Vec<i32>,
    epoll_sets: Vec<i32>,
}

impl Descriptors {
    /// Lists the descriptors of `pid`, at about 3 µs each.
    ///
    /// # Errors
    /// What reading the directory says: the process has ended, or may not be looked into.
    pub(crate) fn list(pid: i32, inode: u32) -> io::Result<Self> {
        let socket = socket_link(inode);
        let mut found = Self {
            pid,
            inode,
            watched: Vec::new(),
            epoll_sets: Vec::new(),
        };
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.take(MOST_LINKS) {
            let entry = entry?;
            let Some(descriptor) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
                continue;
            };
            // Descriptors come and go while they are listed.
            let Ok(target) = fs::read_link(entry.path()) else {
                continue;
            };
            if target.as_os_str() == socket.as_str() {
                found.watched.push(descriptor);
            } else if target.as_os_str() == "anon_inode:[eventpoll]" {
                found.epoll_sets.push(descriptor);
            }
        }
        Ok(found)
    }

    /// Whether the process holds the watched socket.
    pub(crate) fn hold_socket(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Whether every descriptor found to be the watched socket still is.
    pub(crate) fn still_hold(&self) -> bool {
        let socket = socket_link(self.inode);
        self.watched.iter().all(|descriptor| {
            fs::read_link(format!("/proc/{}/fd/{descriptor}", self.pid))
                .is_ok_and(|target| target.as_os_str() == socket.as_str())
        })
    }
}

impl Process for Descriptors {
    fn read_memory(&self, address: u64, bytes: &mut [u8]) -> bool {
        let wanted = bytes.len();
        let Ok(base) = usize::try_from(address) else {
            return false;
        };
        let remote = [RemoteIoVec { base, len: wanted }];
        let read = process_vm_readv(
            Pid::from_raw(self.pid),
            &mut [IoSliceMut::new(bytes)],
            &remote,
        );
        read == Ok(wanted)
    }

    fn role(&self, descriptor: i32) -> Role {
        if self.watched.contains(&descriptor) {
            Role::Watched
        } else if self.epoll_sets.contains(&descriptor) {
            Role::EpollSet
        } else {
            Role::Unrelated
        }
    }

    fn watched_inode(&self) -> u64 {
        u64::from(self.inode)
    }

    fn epoll_set(&self, descriptor: i32) -> Option<PollSet> {
        let file = File::open(format!("/proc/{}/fdinfo/{descriptor}", self.pid)).ok()?;
        let mut text = String::new();
        let read = file.take(MOST_EPOLL_BYTES).read_to_string(&mut text).ok()?;
        let whole = u64::try_from(read).is_ok_and(|read| read < MOST_EPOLL_BYTES);
        Some(PollSet::from_epoll_info(&text, whole))
    }
}

fn socket_link(inode: u32) -> String {
    format!("socket:[{inode}]")
}
