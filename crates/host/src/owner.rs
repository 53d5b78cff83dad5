//! From the inodes of sockets to the processes that hold them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use crate::descriptors::Descriptors;
use crate::sock_diag::OpenSocket;

/// Processes taken of those that hold one socket; forked servers share theirs.
const MOST_OWNERS: usize = 4;

/// Processes remembered because they held a watched socket before.
const MOST_REMEMBERED: usize = 16;

/// Processes looked into at most.
const MOST_PROCESSES: usize = 16_384;

/// A socket whose holders are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Its inode.
    pub(crate) inode: u32,
    /// The user it belongs to.
    pub(crate) uid: u32,
}

impl From<&OpenSocket> for Wanted {
    fn from(socket: &OpenSocket) -> Self {
        Self {
            inode: socket.inode,
            uid: socket.uid,
        }
    }
}

/// Finds the processes that hold sockets; tries those first that held one before.
#[derive(Debug, Default)]
pub(crate) struct OwnerFinder {
    /// Most recent first.
    remembered: VecDeque<i32>,
    /// Of the processes that hold a wanted socket.
    listed: BTreeMap<i32, Descriptors>,
}

impl OwnerFinder {
    /// For each socket, in order, the processes that hold it, at most four, or in words why there
    /// is none. Every process is looked into once at most, for all sockets together: first those
    /// that held a socket before; for the sockets not found there, those of the users they belong
    /// to; at last all others.
    pub(crate) fn find(&mut self, wanted: &[Wanted]) -> Vec<Result<Vec<i32>, String>> {
        let mut search = Search::new(wanted);
        search.look_into(self.remembered.iter().copied(), &mut self.listed);
        let mut listing = Ok(());
        if search.misses_any() {
            listing = processes().map(|processes| {
                let users: BTreeSet<u32> = wanted.iter().map(|wanted| wanted.uid).collect();
                let (likely, others): (Vec<_>, Vec<_>) = processes
                    .into_iter()
                    .filter(|(pid, _)| !self.remembered.contains(pid))
                    .partition(|(_, uid)| users.contains(uid));
                let pids = |processes: Vec<(i32, u32)>| processes.into_iter().map(|(pid, _)| pid);
                search.look_into(pids(likely), &mut self.listed);
                if search.misses_any() {
                    search.look_into(pids(others), &mut self.listed);
                }
            });
        }
        for pid in search.owners.iter().flatten() {
            self.remembered.retain(|known| known != pid);
            self.remembered.push_front(*pid);
        }
        self.remembered.truncate(MOST_REMEMBERED);
        search.results(listing)
    }

    /// The descriptors of a process that was found.
    pub(crate) fn descriptors(&self, pid: i32) -> Option<&Descriptors> {
        self.listed.get(&pid)
    }

    /// Lists the descriptors of the processes in `still_wanted` anew, and forgets all others.
    pub(crate) fn list_again(&mut self, still_wanted: &BTreeSet<i32>) {
        self.listed = still_wanted
            .iter()
            .filter_map(|pid| Some((*pid, Descriptors::list(*pid).ok()?)))
            .collect();
    }
}

struct Search<'a> {
    wanted: &'a [Wanted],
    owners: Vec<Vec<i32>>,
    denied: usize,
}

impl<'a> Search<'a> {
    fn new(wanted: &'a [Wanted]) -> Self {
        Self {
            wanted,
            owners: vec![Vec::new(); wanted.len()],
            denied: 0,
        }
    }

    fn misses_any(&self) -> bool {
        self.owners.iter().any(Vec::is_empty)
    }

    fn look_into(
        &mut self,
        pids: impl Iterator<Item = i32>,
        listed: &mut BTreeMap<i32, Descriptors>,
    ) {
        for pid in pids {
            match Descriptors::list(pid) {
                Ok(descriptors) => {
                    if self.take(pid, &descriptors) {
                        listed.insert(pid, descriptors);
                    }
                }
                Err(error) if error.kind() == ErrorKind::PermissionDenied => self.denied += 1,
                // The process has ended.
                Err(_) => {}
            }
        }
    }

    /// Notes which sockets a process holds; whether it holds any.
    fn take(&mut self, pid: i32, descriptors: &Descriptors) -> bool {
        let mut any = false;
        for (wanted, owners) in self.wanted.iter().zip(&mut self.owners) {
            if owners.len() < MOST_OWNERS && descriptors.hold(wanted.inode) {
                owners.push(pid);
                any = true;
            }
        }
        any
    }

    fn results(self, listing: Result<(), String>) -> Vec<Result<Vec<i32>, String>> {
        let denied = self.denied;
        let why_none = |uid: u32| match &listing {
            Err(why) => why.clone(),
            Ok(()) if denied == 0 => format!(
                "no process in /proc holds the socket of user {uid}: it runs in another PID namespace, or has just closed it"
            ),
            Ok(()) => format!(
                "the socket of user {uid} is held by none of the processes that may be looked into, and {denied} may not (it takes the same user, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)"
            ),
        };
        self.owners
            .into_iter()
            .zip(self.wanted)
            .map(|(owners, wanted)| {
                if owners.is_empty() {
                    Err(why_none(wanted.uid))
                } else {
                    Ok(owners)
                }
            })
            .collect()
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

    fn socket_of(listener: &TcpListener) -> Wanted {
        let link = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let name = link.to_str().unwrap();
        let number = name.strip_prefix("socket:[").unwrap();
        Wanted {
            inode: number.strip_suffix(']').unwrap().parse().unwrap(),
            uid: rustix::process::geteuid().as_raw(),
        }
    }

    #[test]
    fn holders_are_found_and_remembered() {
        let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let mut finder = OwnerFinder::default();
        let wanted = [socket_of(&listeners[0]), socket_of(&listeners[1])];
        let mine = Ok(vec![own_pid()]);
        assert_eq!(finder.find(&wanted), [mine.clone(), mine]);
        assert_eq!(finder.remembered, [own_pid()]);
        assert!(finder.descriptors(own_pid()).unwrap().hold(wanted[1].inode));
    }

    #[test]
    fn descriptors_are_listed_again_only_while_they_are_wanted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut finder = OwnerFinder::default();
        let wanted = socket_of(&listener);
        finder.find(&[wanted])[0].as_ref().unwrap();
        drop(listener);
        finder.list_again(&BTreeSet::from([own_pid()]));
        assert!(!finder.descriptors(own_pid()).unwrap().hold(wanted.inode));
        finder.list_again(&BTreeSet::new());
        assert!(finder.descriptors(own_pid()).is_none());
    }

    #[test]
    fn a_socket_that_nobody_holds_is_an_error_in_words() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = socket_of(&listener);
        drop(listener);
        let why = OwnerFinder::default()
            .find(&[wanted])
            .remove(0)
            .unwrap_err();
        assert!(why.contains(&format!("user {}", wanted.uid)), "{why}");
    }

    #[test]
    fn a_user_that_does_not_match_only_changes_the_order() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = Wanted {
            uid: u32::MAX - 1,
            ..socket_of(&listener)
        };
        assert_eq!(
            OwnerFinder::default().find(&[wanted]),
            [Ok(vec![own_pid()])]
        );
    }
}
