//! Asking the kernel about sockets, many at a time.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use skewtap_sockstamp::realtime_ns;

use crate::pick_up::Looked;
use crate::sock_diag::{Ask, Look, read_answers, write_request};

/// Requests sent in one go; the answers to 32 fit into the default receive buffer.
pub(crate) const MOST_AT_ONCE: usize = 32;

/// Room for one datagram; an answer has below a kilobyte.
const ANSWER_BYTES: usize = 8 * 1024;

/// A netlink socket for look-ups; needs no privilege.
#[derive(Debug)]
pub(crate) struct QueueLookup {
    socket: OwnedFd,
    sequence: u32,
    requests: Vec<u8>,
    answer: Vec<u8>,
}

impl QueueLookup {
    /// Opens the socket in the current network namespace.
    ///
    /// # Errors
    /// What the kernel says when it refuses netlink sockets.
    pub(crate) fn open() -> Result<Self, Errno> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(Self {
            socket,
            sequence: 0,
            requests: Vec::new(),
            answer: vec![0; ANSWER_BYTES],
        })
    }

    /// Looks up one socket. `None` when the answer was lost.
    pub(crate) fn look_up_one(&mut self, ask: &Ask) -> Option<Looked> {
        self.look_up(std::slice::from_ref(ask)).pop().flatten()
    }

    /// Looks up to [`MOST_AT_ONCE`] sockets up; the answers are in the order of the requests,
    /// `None` where one was lost. The kernel answers while it is being asked, so the clock is
    /// read right before and right after.
    pub(crate) fn look_up(&mut self, asks: &[Ask]) -> Vec<Option<Looked>> {
        let first = self.sequence;
        self.requests.clear();
        for ask in asks.iter().take(MOST_AT_ONCE) {
            write_request(&mut self.requests, self.sequence, ask);
            self.sequence = self.sequence.wrapping_add(1);
        }
        let before_ns = realtime_ns();
        let sent = send(&self.socket, &self.requests, SendFlags::DONTWAIT);
        let mut looks: Vec<Option<Look>> = vec![None; asks.len()];
        if let Err(error) = sent {
            looks.fill(Some(Look::Refused(error.raw_os_error())));
        } else {
            self.receive(first, &mut looks);
        }
        let after_ns = realtime_ns();
        let with_clock = |look| Looked {
            before_ns,
            after_ns,
            look,
        };
        looks.into_iter().map(|look| look.map(with_clock)).collect()
    }

    /// Reads answers until every look is there or no more have come.
    fn receive(&mut self, first: u32, looks: &mut [Option<Look>]) {
        while looks.iter().any(Option::is_none) {
            let bytes = match recv(
                &self.socket,
                self.answer.as_mut_slice(),
                RecvFlags::DONTWAIT,
            ) {
                Ok((_, bytes)) => bytes,
                // The buffer ran over: some answers are lost, the others are still there.
                Err(Errno::NOBUFS) => continue,
                Err(_) => return,
            };
            let answer = self.answer.get(..bytes).unwrap_or_default();
            for (sequence, look) in read_answers(answer) {
                // Answers to earlier requests have numbers beyond the range.
                let at = usize::try_from(sequence.wrapping_sub(first)).ok();
                if let Some(slot) = at.and_then(|at| looks.get_mut(at)) {
                    *slot = Some(look);
                }
            }
        }
    }
}
