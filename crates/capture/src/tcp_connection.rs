//! Both directions of one TCP connection.

use std::net::{IpAddr, SocketAddr};

use crate::tcp_segment::TcpSegment;
use crate::tcp_stream::TcpStream;

/// The two ends of a connection, whichever way round they are given.
///
/// IPv4 addresses written as IPv6 ones, as a dual-stack socket shows them, are taken for what
/// they are, and the scope of a link-local address is left out, as packets do not bear it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ends {
    low: (IpAddr, u16),
    high: (IpAddr, u16),
}

impl Ends {
    /// The connection between `a` and `b`.
    #[must_use]
    pub fn between(a: SocketAddr, b: SocketAddr) -> Self {
        let (a, b) = (plain(a), plain(b));
        Self {
            low: a.min(b),
            high: a.max(b),
        }
    }
}

/// When the three packets of the handshake first passed the tap, in nanoseconds since the Unix
/// epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// The `SYN` of the end that connects.
    pub syn: Option<i64>,
    /// The `SYN` of the end that accepts; on its arrival the connection stands for the first end.
    pub syn_ack: Option<i64>,
    /// The acknowledgement of that; on its arrival the connection stands for the second end.
    pub ack: Option<i64>,
}

/// What was seen of a connection, from its first packet on.
#[derive(Clone, Debug)]
pub struct TcpConnection {
    ends: Ends,
    from_low: TcpStream,
    from_high: TcpStream,
    first_at: i64,
    last_at: i64,
    /// Whether the lower end sent the `SYN` without acknowledgement.
    low_connects: Option<bool>,
}

impl TcpConnection {
    pub(crate) fn begun_by(segment: &TcpSegment) -> Self {
        Self {
            ends: Ends::between(segment.from, segment.to),
            from_low: TcpStream::new(),
            from_high: TcpStream::new(),
            first_at: segment.time_ns,
            last_at: segment.time_ns,
            low_connects: None,
        }
    }

    /// What the end at `sender` sent; `None` if that is no end of this connection.
    #[must_use]
    pub fn sent_by(&self, sender: SocketAddr) -> Option<&TcpStream> {
        match plain(sender) {
            end if end == self.ends.low => Some(&self.from_low),
            end if end == self.ends.high => Some(&self.from_high),
            _ => None,
        }
    }

    /// Like [`TcpConnection::sent_by`], to change what is known.
    pub fn sent_by_mut(&mut self, sender: SocketAddr) -> Option<&mut TcpStream> {
        match plain(sender) {
            end if end == self.ends.low => Some(&mut self.from_low),
            end if end == self.ends.high => Some(&mut self.from_high),
            _ => None,
        }
    }

    /// The handshake, as far as it was seen.
    #[must_use]
    pub fn handshake(&self) -> Handshake {
        let (connecting, accepting) = match self.low_connects {
            Some(true) => (&self.from_low, &self.from_high),
            Some(false) => (&self.from_high, &self.from_low),
            None => return Handshake::default(),
        };
        Handshake {
            syn: connecting.syn_at(),
            syn_ack: accepting.syn_at(),
            ack: accepting.syn_acknowledged_at().map(|at| at.earliest),
        }
    }

    /// When its first packet passed the tap, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn first_at(&self) -> i64 {
        self.first_at
    }

    /// When its latest packet passed the tap, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn last_at(&self) -> i64 {
        self.last_at
    }

    /// Whether it was broken off, or closed from both sides.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let streams = [&self.from_low, &self.from_high];
        streams.iter().any(|stream| stream.rst_at().is_some())
            || streams.iter().all(|stream| stream.fin_at().is_some())
    }

    /// Entries of memory in use.
    pub(crate) fn held(&self) -> usize {
        self.from_low.held() + self.from_high.held()
    }

    /// Whether `segment`, which is between the same ends, opens another connection than this.
    pub(crate) fn is_succeeded_by(&self, segment: &TcpSegment) -> bool {
        if !segment.syn {
            return false;
        }
        match self
            .sent_by(segment.from)
            .and_then(TcpStream::initial_sequence)
        {
            Some(initial) => initial != segment.seq,
            // Nothing of a connection comes before its SYN, but packets taken on two CPUs may
            // be handed over in the wrong order.
            None => segment.ack.is_none() && segment.time_ns > self.first_at,
        }
    }

    pub(crate) fn add(&mut self, segment: &TcpSegment) {
        self.first_at = self.first_at.min(segment.time_ns);
        self.last_at = self.last_at.max(segment.time_ns);
        let from_low = plain(segment.from) == self.ends.low;
        if segment.syn && segment.ack.is_none() {
            self.low_connects = Some(from_low);
        }
        let (sender, receiver) = if from_low {
            (&mut self.from_low, &mut self.from_high)
        } else {
            (&mut self.from_high, &mut self.from_low)
        };
        sender.sent(segment);
        // A reset also acknowledges what nobody keeps.
        if let Some(ack) = segment.ack.filter(|_| !segment.rst) {
            receiver.acknowledged(ack, segment.time_ns);
        }
    }
}

fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}
