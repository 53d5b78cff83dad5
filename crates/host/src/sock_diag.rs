//! The messages with which the kernel is asked about one TCP socket.
//!
//! The layouts are the kernel's `inet_diag_req_v2` and `inet_diag_msg`, in
//! native byte order except for ports and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use skewtap_sockstamp::TcpInfo;

/// Names a socket once and for all, where addresses may come to name another.
pub(crate) type Cookie = [u8; 8];

/// Which socket to look up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    /// The socket's own address.
    pub(crate) of: SocketAddr,
    /// The address it is connected to; unspecified with port 0 for a listener.
    pub(crate) to: SocketAddr,
    /// Its cookie, once known.
    pub(crate) cookie: Option<Cookie>,
}

impl Ask {
    /// The listening socket that a connection to `at` would be accepted from.
    pub(crate) fn listener(at: SocketAddr) -> Self {
        let nowhere = if at.ip().to_canonical().is_ipv4() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        };
        Self {
            of: at,
            to: SocketAddr::new(nowhere, 0),
            cookie: None,
        }
    }
}

/// What a look-up said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// A socket with queues.
    Open(OpenSocket),
    /// A closed socket that the kernel remembers for a while: its application has closed it,
    /// or had ended its sending side before the other end closed.
    Remembered(State),
    /// No such socket in this network namespace.
    Absent,
    /// The kernel would not say; the error number.
    Refused(i32),
}

/// A socket with queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenSocket {
    /// Its TCP state.
    pub(crate) state: State,
    /// Bytes that the application has not read; for a listener, connections not accepted.
    pub(crate) unread: u32,
    /// Bytes that the other end has not acknowledged.
    pub(crate) unacknowledged: u32,
    /// Payload bytes that arrived, the end of the stream counting as one.
    pub(crate) received: u64,
    /// User the socket belongs to.
    pub(crate) uid: u32,
    /// Its inode; 0 while no process holds it.
    pub(crate) inode: u32,
    /// Its cookie.
    pub(crate) cookie: Cookie,
}

impl OpenSocket {
    /// Bytes that the application has read. Both figures are of one moment, and both count the
    /// end of the stream as a byte, so it cancels out.
    pub(crate) fn read(&self) -> u64 {
        self.received.saturating_sub(u64::from(self.unread))
    }
}

/// A TCP state, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The application can still send: established, or the other end has finished.
    Live,
    /// `FIN_WAIT1` or `FIN_WAIT2`: this end has finished, the other has not.
    Finishing,
    /// `TIME_WAIT`: both ends have finished, this one first.
    TimeWait,
    /// `LAST_ACK`, `CLOSING` or `CLOSE`: both ends have finished.
    Closing,
    /// `LISTEN`.
    Listening,
}

impl State {
    const fn from_kernel(number: u8) -> Self {
        match number {
            4 | 5 => Self::Finishing,
            6 => Self::TimeWait,
            7 | 9 | 11 => Self::Closing,
            10 => Self::Listening,
            _ => Self::Live,
        }
    }
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const INET_DIAG_INFO: u16 = 2;
const ENOENT: i32 = 2;
const NLMSG_HEADER: usize = 16;
const REQUEST: u32 = 72;
const ANY_COOKIE: Cookie = [0xff; 8];

/// Appends a request; its answer will bear `sequence`.
pub(crate) fn write_request(out: &mut Vec<u8>, sequence: u32, ask: &Ask) {
    let (family, of, to) = addresses(ask.of.ip(), ask.to.ip());
    out.extend(REQUEST.to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(NLM_F_REQUEST.to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend(0_u32.to_ne_bytes());
    out.extend([family, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    out.extend(u32::MAX.to_ne_bytes());
    out.extend(ask.of.port().to_be_bytes());
    out.extend(ask.to.port().to_be_bytes());
    out.extend(of);
    out.extend(to);
    out.extend(interface(ask.of).to_ne_bytes());
    out.extend(ask.cookie.unwrap_or(ANY_COOKIE));
}

/// Reads the answers in one datagram, each with the sequence number of its request. Whatever
/// cannot be read ends the reading.
pub(crate) fn read_answers(mut bytes: &[u8]) -> Vec<(u32, Look)> {
    let mut answers = Vec::new();
    while let Some((sequence, look, length)) = read_answer(bytes) {
        answers.push((sequence, look));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    answers
}

fn read_answer(bytes: &[u8]) -> Option<(u32, Look, usize)> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let sequence = u32_at(bytes, 8)?;
    let payload = bytes.get(NLMSG_HEADER..length)?;
    let look = match kind {
        SOCK_DIAG_BY_FAMILY => read_socket(payload)?,
        NLMSG_ERROR => match u32_at(payload, 0)?.cast_signed().saturating_neg() {
            ENOENT => Look::Absent,
            error => Look::Refused(error),
        },
        _ => return None,
    };
    Some((sequence, look, length))
}

/// A socket that the kernel only remembers comes without TCP figures.
fn read_socket(payload: &[u8]) -> Option<Look> {
    let state = State::from_kernel(*payload.get(1)?);
    let attributes = payload.get(72..)?;
    let Some(info) = attribute(attributes, INET_DIAG_INFO).and_then(TcpInfo::from_kernel_bytes)
    else {
        return Some(Look::Remembered(state));
    };
    Some(Look::Open(OpenSocket {
        state,
        unread: u32_at(payload, 56)?,
        unacknowledged: u32_at(payload, 60)?,
        received: info.bytes_received,
        uid: u32_at(payload, 64)?,
        inode: u32_at(payload, 68)?,
        cookie: *payload.get(44..)?.first_chunk()?,
    }))
}

fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::from(u16::from_ne_bytes(*length));
        let kind = u16::from_ne_bytes(*rest.first_chunk()?);
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

/// The kernel finds a dual-stack socket by its IPv4 addresses too, so these come first.
fn addresses(of: IpAddr, to: IpAddr) -> (u8, [u8; 16], [u8; 16]) {
    match (of.to_canonical(), to.to_canonical()) {
        (IpAddr::V4(of), IpAddr::V4(to)) => (AF_INET, padded(of), padded(to)),
        (of, to) => (AF_INET6, six(of), six(to)),
    }
}

fn padded(address: Ipv4Addr) -> [u8; 16] {
    let [a, b, c, d] = address.octets();
    [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

fn six(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
        IpAddr::V6(six) => six.octets(),
    }
}

/// A link-local address means something on one interface only.
fn interface(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(six) => six.scope_id(),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
