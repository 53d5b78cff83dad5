//! Finding out by trying which sources of facts are at work.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use rustix::io::Errno;
use skewtap_core::exchange::SourceState;

use crate::availability::Availability;
use crate::queue_lookup::QueueLookup;
use crate::settings::WatcherSettings;
use crate::sock_diag::{Ask, Look};
use crate::thread_files::ThreadFiles;

/// Tries what the settings ask for: looks up a socket made for the purpose, and samples the
/// calling thread.
pub(crate) fn availability(settings: &WatcherSettings) -> Availability {
    let queues = if settings.queues {
        state(look_up_own_socket())
    } else {
        SourceState::Off
    };
    let processes = if !settings.processes {
        SourceState::Off
    } else if queues == SourceState::Used {
        state(sample_own_thread())
    } else {
        SourceState::Unavailable("receive queues are not watched".to_owned())
    };
    Availability { queues, processes }
}

fn state(tried: Result<(), String>) -> SourceState {
    match tried {
        Ok(()) => SourceState::Used,
        Err(why) => SourceState::Unavailable(why),
    }
}

fn look_up_own_socket() -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .map_err(|error| format!("no socket to try look-ups on: {error}"))?;
    let at = listener
        .local_addr()
        .map_err(|error| format!("no socket to try look-ups on: {error}"))?;
    let mut lookup =
        QueueLookup::open().map_err(|error| format!("netlink sockets are refused: {error}"))?;
    match lookup.look_up_one(&Ask::listener(at)).map(|l| l.look) {
        Some(Look::Open(_)) => Ok(()),
        Some(Look::Refused(error)) => Err(format!(
            "the kernel refuses socket look-ups: {}",
            Errno::from_raw_os_error(error)
        )),
        Some(Look::Absent | Look::Remembered(_)) => {
            Err("the kernel has no look-up of TCP sockets (tcp_diag)".to_owned())
        }
        None => Err("the kernel gave no answer to a socket look-up".to_owned()),
    }
}

fn sample_own_thread() -> Result<(), String> {
    let (pid, tid) = (
        rustix::process::getpid().as_raw_nonzero().get(),
        rustix::thread::gettid().as_raw_nonzero().get(),
    );
    let files = ThreadFiles::open(pid, tid)
        .map_err(|error| format!("/proc/{pid}/task/{tid} cannot be read: {error}"))?;
    if files.read().is_none() {
        return Err(format!("/proc/{pid}/task/{tid} cannot be read"));
    }
    // A program that gave up root may not look at its own system calls, yet at those of others.
    if Path::new("/proc/self/syscall").exists() {
        Ok(())
    } else {
        Err("this kernel does not tell system calls in /proc".to_owned())
    }
}
