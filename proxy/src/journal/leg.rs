//! The two connections, each with the messages in both directions.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use skewtap_sockstamp::{TcpInfo, tcp_info};

use super::open_exchange::UpSide;
use super::stream_part::StreamPart;
use crate::message_log::{RequestLog, ResponseLog};
use crate::moment::{Arrival, ArrivalBounds, Counted, Departure, Read};
use crate::stream_log::StreamLog;

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LegAddresses {
    /// The proxy's end.
    pub(crate) local: SocketAddr,
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// What the other end's socket is connected to: the proxy's end, unless the kernel redirected
    /// the connection.
    pub(crate) meant: SocketAddr,
}

impl LegAddresses {
    /// The ends of a connection that was not redirected.
    pub(crate) const fn new(local: SocketAddr, peer: SocketAddr) -> Self {
        Self {
            local,
            peer,
            meant: local,
        }
    }
}

/// Both ends of a connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerEnds {
    /// TCP.
    Tcp(LegAddresses),
    /// The Unix socket at this path. Neither packets nor queues of it can be looked at.
    Unix(Arc<Path>),
}

impl ServerEnds {
    /// The addresses, over TCP.
    pub(crate) const fn over_tcp(&self) -> Option<LegAddresses> {
        match self {
            Self::Tcp(ends) => Some(*ends),
            Self::Unix(_) => None,
        }
    }
}

/// How a connection to a server came about, in nanoseconds of `CLOCK_REALTIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectTimes {
    /// The clock before and after the call that sent the first packet.
    pub(crate) start: Departure,
    /// The clock when the connection was found to stand.
    pub(crate) connected_ns: i64,
}

/// The connection from the client, with the logs of what passes in both directions.
#[derive(Debug)]
pub(super) struct DownLeg<R = RequestLog<Arrival>, S = ResponseLog<Departure>> {
    pub(super) addresses: LegAddresses,
    pub(super) accepted_ns: i64,
    /// When TLS was agreed on, if it was.
    pub(super) tls: Option<Arrival>,
    /// Bytes sent so far as the socket counts them, where TLS makes that more.
    pub(super) ciphertext: Option<u64>,
    pub(super) bounds: ArrivalBounds,
    pub(super) requests: R,
    pub(super) responses: S,
    pub(super) tcp: Option<TcpInfo>,
}

impl<R, S> DownLeg<R, S> {
    pub(super) fn new(
        addresses: LegAddresses,
        accepted_ns: i64,
        tls: Option<Read>,
        (requests, responses): (R, S),
    ) -> Self {
        let (bounds, tls) = after_handshake(accepted_ns, tls);
        Self {
            addresses,
            accepted_ns,
            tls,
            ciphertext: None,
            bounds,
            requests,
            responses,
            tcp: None,
        }
    }
}

/// The version of HTTP that is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    /// HTTP/1.0 or HTTP/1.1: one exchange at a time.
    Http1,
    /// HTTP/2: several at once, each a stream.
    Http2,
}

/// The logs of what passes to and from a server.
#[derive(Debug)]
pub(super) enum Talk {
    /// One exchange after the other.
    Messages {
        requests: RequestLog<Departure>,
        responses: ResponseLog<Arrival>,
    },
    /// Several at once.
    Streams {
        requests: StreamLog<Departure>,
        responses: StreamLog<Arrival>,
    },
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct UpLeg {
    ends: ServerEnds,
    times: ConnectTimes,
    exchanges: i64,
    pub(super) tls: Option<Arrival>,
    /// Bytes sent so far as the socket counts them, where TLS makes that more.
    pub(super) ciphertext: Option<u64>,
    pub(super) bounds: ArrivalBounds,
    pub(super) talk: Talk,
    pub(super) tcp: Option<TcpInfo>,
}

/// How a connection to a server came to stand.
#[derive(Clone, Debug)]
pub(crate) struct Connected {
    pub(crate) ends: ServerEnds,
    pub(crate) times: ConnectTimes,
    /// The read that ended the TLS handshake, if TLS is round it.
    pub(crate) tls: Option<Read>,
}

impl UpLeg {
    pub(super) fn new(connected: Connected, version: HttpVersion) -> Self {
        let times = connected.times;
        let (bounds, tls) = after_handshake(times.connected_ns, connected.tls);
        let talk = match version {
            HttpVersion::Http1 => Talk::Messages {
                requests: RequestLog::new(),
                responses: ResponseLog::new(),
            },
            HttpVersion::Http2 => Talk::Streams {
                requests: StreamLog::to_server(),
                responses: StreamLog::of_responses(),
            },
        };
        Self {
            ends: connected.ends,
            times,
            exchanges: 0,
            tls,
            ciphertext: None,
            bounds,
            talk,
            tcp: None,
        }
    }

    /// The next exchange on this connection; `stream` is the one it takes, where there are any.
    pub(super) fn begin(&mut self, stream: Option<u32>) -> UpSide {
        let earlier = self.exchanges;
        self.exchanges += 1;
        let mut side = UpSide::new(
            self.ends.clone(),
            earlier,
            (earlier == 0).then_some(self.times),
            self.tls,
            self.tcp,
        );
        if let (
            Some(stream),
            Talk::Streams {
                requests,
                responses,
            },
        ) = (stream, &mut self.talk)
        {
            requests.expect(stream);
            responses.expect(stream);
            side.stream = Some(StreamPart::new(stream));
        }
        side
    }

    /// Follows a stream no longer whose exchange is over.
    pub(super) fn forget(&mut self, part: &mut StreamPart) {
        if let Talk::Streams {
            requests,
            responses,
        } = &mut self.talk
        {
            requests.forget(part.id);
            responses.forget(part.id);
            part.ends(requests, responses);
        }
    }

    /// Bytes that have come from the server, as HTTP counts them.
    pub(super) fn received(&self) -> u64 {
        match &self.talk {
            Talk::Messages { responses, .. } => responses.offset(),
            Talk::Streams { responses, .. } => responses.offset(),
        }
    }
}

/// The bounds of a connection that was there at `now_ns`, and when its TLS handshake, if there
/// was one, got its last message.
fn after_handshake(now_ns: i64, tls: Option<Read>) -> (ArrivalBounds, Option<Arrival>) {
    let mut bounds = ArrivalBounds::new(now_ns);
    let done = tls.map(|read| bounds.read(read, None).byte(true));
    (bounds, done)
}

/// One read with its bytes, on its way through a message log.
#[derive(Debug)]
pub(super) struct ReadBytes<'a> {
    bounds: ArrivalBounds,
    read: Read,
    start: u64,
    end: u64,
    socket: BorrowedFd<'a>,
    figures: OnceCell<Option<TcpInfo>>,
}

impl<'a> ReadBytes<'a> {
    /// A read of `length` bytes that begin at `start` of the stream.
    pub(super) fn new(
        bounds: ArrivalBounds,
        read: Read,
        (start, length): (u64, usize),
        socket: BorrowedFd<'a>,
    ) -> Self {
        Self {
            bounds,
            read,
            start,
            end: start.saturating_add(length as u64),
            socket,
            figures: OnceCell::new(),
        }
    }

    /// When the byte at `offset` arrived. Asks the kernel once, so it is for boundaries only.
    pub(super) fn at(&self, offset: u64) -> Arrival {
        let mut bounds = self.bounds;
        let last = offset.checked_add(1) == Some(self.end);
        bounds.read(self.read, self.counted()).byte(last)
    }

    /// When the first byte arrived.
    pub(super) fn first(&self) -> Arrival {
        self.at(self.start)
    }

    /// When the last byte arrived, without asking the kernel.
    pub(super) fn latest(&self) -> Arrival {
        let mut bounds = self.bounds;
        bounds.read(self.read, None).byte(true)
    }

    /// The kernel's figures just after the read.
    pub(super) fn figures(&self) -> Option<TcpInfo> {
        *self.figures.get_or_init(|| tcp_info(self.socket).ok())
    }

    /// Keeps the count of segments going where nothing in the read needed it, as in one that had
    /// settings or window updates only. Under TLS there is no such count.
    pub(super) fn keep_counting(&self, tls: Option<Arrival>) {
        if self.read.drained && tls.is_none() {
            self.figures();
        }
    }

    /// The bounds for the next read, and the figures if they were asked for.
    pub(super) fn done(mut self) -> (ArrivalBounds, Option<TcpInfo>) {
        let figures = self.figures.get().copied().flatten();
        let counted = self.figures.get().and_then(|_| self.counted());
        self.bounds.read(self.read, counted);
        (self.bounds, figures)
    }

    fn counted(&self) -> Option<Counted> {
        self.figures().map(|info| Counted {
            segments: info.data_segments_in,
            all_read: info.bytes_received == self.end,
        })
    }
}
