//! From the inode of a socket to the processes that hold it.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use crate::descriptors::Descriptors;

/// Processes taken of those that hold one socket; forked servers share theirs.
const MOST_OWNERS: usize = 4;

/// Processes remembered because they held a watched socket before.
const MOST_REMEMBERED: usize = 32;

/// Processes looked into for one socket at most.
const MOST_PROCESSES: usize = 16_384;

/// Finds the processes that hold a socket; tries those first that held one before.
#[derive(Debug, Default)]
pub(crate) struct OwnerFinder {
    /// Most recent first.
    remembered: VecDeque<i32>,
}

impl OwnerFinder {
    /// The processes that hold the socket, with their descriptors, at most four. Processes that
    /// held a watched socket before are looked into first, and no others if one of them holds
    /// this one too; then those of user `uid`, to whom the socket belongs, then all others.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(crate) fn find(&mut self, inode: u32, uid: u32) -> Result<Vec<(i32, Descriptors)>, String> {
        let mut search = Search::new(inode);
        search.look_into(self.remembered.iter().copied());
        if search.found.is_empty() {
            let (of_user, others): (Vec<_>, Vec<_>) = processes()?
                .into_iter()
                .partition(|(_, owner)| *owner == uid);
            let pids = |processes: Vec<(i32, u32)>| processes.into_iter().map(|(pid, _)| pid);
            search.look_into(pids(of_user));
            if search.found.is_empty() {
                search.look_into(pids(others));
            }
        }
        for (pid, _) in &search.found {
            self.remembered.retain(|known| known != pid);
            self.remembered.push_front(*pid);
        }
        self.remembered.truncate(MOST_REMEMBERED);
        if search.found.is_empty() {
            Err(search.why_none(uid))
        } else {
            Ok(search.found)
        }
    }
}

struct Search {
    inode: u32,
    found: Vec<(i32, Descriptors)>,
    denied: usize,
}

impl Search {
    const fn new(inode: u32) -> Self {
        Self {
            inode,
            found: Vec::new(),
            denied: 0,
        }
    }

    fn look_into(&mut self, pids: impl Iterator<Item = i32>) {
        for pid in pids {
            if self.found.len() == MOST_OWNERS {
                return;
            }
            match Descriptors::list(pid, self.inode) {
                Ok(descriptors) if descriptors.hold_socket() => {
                    self.found.push((pid, descriptors));
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => self.denied += 1,
                // The process has ended, or holds other things.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn why_none(&self, uid: u32) -> String {
        let denied = self.denied;
        if denied == 0 {
            format!(
                "no process in /proc holds the socket of user {uid}: it runs in another PID namespace, or has just closed it"
            )
        } else {
            format!(
                "the socket of user {uid} is held by none of the processes that may be looked into, and {denied} may not (it takes the same user, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)"
            )
        }
    }
}

/// All processes with their users.
fn processes() -> Result<Vec<(i32, u32)>, String> {
    let directory =
        fs::read_dir("/proc").map_err(|error| format!("/proc cannot be listed: {error}"))?;
    Ok(directory
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, entry.metadata().ok()?.uid()))
        })
        .take(MOST_PROCESSES)
        .collect())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    fn own_pid() -> i32 {
        rustix::process::getpid().as_raw_nonzero().get()
    }

    fn inode_of(listener: &TcpListener) -> u32 {
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let name = link.to_str().unwrap();
        let number = name.strip_prefix("socket:[").unwrap();
        number.strip_suffix(']').unwrap().parse().unwrap()
    }

    #[test]
    fn the_holder_of_a_socket_is_found_and_remembered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut finder = OwnerFinder::default();
        let uid = rustix::process::geteuid().as_raw();
        let inode = inode_of(&listener);
        let (pid, descriptors) = finder.find(inode, uid).unwrap().remove(0);
        assert_eq!(pid, own_pid());
        assert!(descriptors.still_hold());
        assert_eq!(finder.remembered, [pid]);
        drop(listener);
        assert!(!descriptors.still_hold());
    }

    #[test]
    fn a_socket_that_nobody_holds_is_an_error_in_words() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = inode_of(&listener);
        drop(listener);
        let why = OwnerFinder::default().find(inode, 0).unwrap_err();
        assert!(why.contains("user 0"), "{why}");
    }

    #[test]
    fn a_user_that_does_not_match_only_changes_the_order() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = OwnerFinder::default().find(inode_of(&listener), u32::MAX - 1);
        assert_eq!(found.unwrap()[0].0, own_pid());
    }
}
