//! At which byte of a stream each HTTP/1 message starts and ends.
//!
//! A scanner is fed the bytes of one direction of one connection, in order and
//! in any pieces, and calls back with every boundary it passes. Offsets count
//! from the first byte fed. Bodies are skipped by count; only heads and the
//! lines between chunks are looked at.
//!
//! A stream that is not understood is given up for good: the scanner is then
//! [`Tracking::Lost`] and calls back no more. It never guesses where the next
//! message might start.

mod chunked;
mod framing;
mod head;
mod scanner;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use framing::{Asked, Framing};
use scanner::{Found, Scanner, Step};

/// Longest head that is followed, in bytes.
pub const HEAD_CAP: usize = 64 * 1024;

/// Most header fields of one head.
pub const FIELDS_CAP: usize = 256;

/// Most requests whose response may be outstanding on one connection.
pub const OUTSTANDING_CAP: usize = 16 * 1024;

/// How far a scanner can follow its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    /// Every boundary so far is known.
    Following,
    /// The connection was handed to another protocol; `at` is its first byte.
    LeftHttp {
        /// Offset of the first byte that is not HTTP/1.
        at: u64,
    },
    /// The stream is no longer understood; no boundary after `at` is known.
    Lost {
        /// Offset at which that became clear.
        at: u64,
        /// What was wrong.
        why: LostTrack,
    },
}

/// Why a stream is no longer understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LostTrack {
    /// A head grew beyond [`HEAD_CAP`].
    #[error("message head exceeds {HEAD_CAP} bytes")]
    HeadTooLong,
    /// A head is not HTTP/1.0 or HTTP/1.1.
    #[error("malformed message head: {0}")]
    Head(httparse::Error),
    /// A status code below 100.
    #[error("invalid status code")]
    Status,
    /// `Content-Length` is not one number, or reaches beyond any stream.
    #[error("invalid content-length")]
    ContentLength,
    /// `Transfer-Encoding` does not tell where the body ends.
    #[error("transfer-encoding leaves the end of the body open")]
    TransferEncoding,
    /// A chunk's size line, or the line end after its data, is malformed.
    #[error("malformed chunk")]
    Chunk,
    /// A response began that no request had asked for.
    #[error("response without a request")]
    Unasked,
    /// More than [`OUTSTANDING_CAP`] requests wait for their response.
    #[error("more than {OUTSTANDING_CAP} outstanding requests")]
    TooManyOutstanding,
    /// The stream ended inside a message.
    #[error("stream ended inside a message")]
    CutShort,
}

/// A request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// How many requests came before it on this connection.
    pub index: u64,
    /// Offset of its first byte.
    pub start: u64,
    /// Offset just after the empty line that ends the head.
    pub head_end: u64,
    /// Method, as sent.
    pub method: &'a str,
    /// Whether the client may wait for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// The bytes from `start` to `head_end`.
    pub bytes: &'a [u8],
}

/// A boundary in the stream of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBoundary<'a> {
    /// A head is complete.
    Head(RequestHead<'a>),
    /// The message is complete.
    End {
        /// Which request, as in [`RequestHead::index`].
        index: u64,
        /// Offset just after its last byte.
        end: u64,
    },
}

/// A response's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// Index of the request that it answers.
    pub index: u64,
    /// Offset of its first byte.
    pub start: u64,
    /// Offset just after the empty line that ends the head.
    pub head_end: u64,
    /// Status code.
    pub status: u16,
    /// The bytes from `start` to `head_end`.
    pub bytes: &'a [u8],
}

/// A boundary in the stream of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseBoundary<'a> {
    /// An interim response (1xx but not 101), complete with its head; the final one follows.
    Interim(ResponseHead<'a>),
    /// The head of the final response is complete.
    Head(ResponseHead<'a>),
    /// The final response is complete.
    End {
        /// Index of the request that it answers.
        index: u64,
        /// Offset just after its last byte.
        end: u64,
    },
}

/// Finds the requests in what a client sends on one connection.
#[derive(Debug, Default)]
pub struct RequestBoundaries {
    scanner: Scanner,
    done: u64,
}

impl RequestBoundaries {
    /// A scanner at the start of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the stream and reports every boundary among them, in order.
    pub fn feed(&mut self, bytes: &[u8], mut on: impl FnMut(RequestBoundary<'_>)) {
        let mut rest = bytes;
        loop {
            match self.scanner.advance(&mut rest) {
                Step::Starved => return,
                Step::Head(found) => {
                    let framing = request_head(found, self.done, &mut on);
                    self.scanner.follow(framing);
                }
                Step::End { end } => {
                    let index = self.done;
                    self.done += 1;
                    on(RequestBoundary::End { index, end });
                }
            }
        }
    }

    /// Notes that the client sends no more.
    pub fn end_of_stream(&mut self) {
        // A request's end is never told by the stream's end, so there is none to report.
        let _: Option<u64> = self.scanner.end_of_stream();
    }

    /// Notes that the response to the latest request handed the connection to another protocol
    /// (101, or 2xx to `CONNECT`); the requests alone do not tell.
    pub fn leave_http(&mut self) {
        self.scanner.leave_http();
    }

    /// How far the stream can be followed.
    #[must_use]
    pub fn tracking(&self) -> Tracking {
        self.scanner.tracking()
    }

    /// Bytes fed so far: the offset of the next one.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.scanner.offset()
    }
}

/// Finds the responses in what a server sends on one connection.
#[derive(Debug, Default)]
pub struct ResponseBoundaries {
    scanner: Scanner,
    done: u64,
    outstanding: VecDeque<Asked>,
}

impl ResponseBoundaries {
    /// A scanner at the start of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a request with this method was sent. To be called once for each request, in
    /// order, before the response's bytes are fed: where a response ends depends on the method.
    pub fn expect_response_to(&mut self, method: &str) {
        if self.outstanding.len() >= OUTSTANDING_CAP {
            self.scanner.lose(LostTrack::TooManyOutstanding);
        }
        if self.tracking() == Tracking::Following {
            self.outstanding.push_back(Asked::by(method));
        }
    }

    /// Takes the next bytes of the stream and reports every boundary among them, in order.
    pub fn feed(&mut self, bytes: &[u8], mut on: impl FnMut(ResponseBoundary<'_>)) {
        let mut rest = bytes;
        loop {
            match self.scanner.advance(&mut rest) {
                Step::Starved => return,
                Step::Head(found) => {
                    let asked = self.outstanding.front().copied();
                    let framing = response_head(found, asked, self.done, &mut on);
                    self.scanner.follow(framing);
                }
                Step::End { end } => on(self.ended(end)),
            }
        }
    }

    /// Notes that the server sends no more, and reports the end of a response that lasts until
    /// the connection is closed.
    pub fn end_of_stream(&mut self, mut on: impl FnMut(ResponseBoundary<'_>)) {
        if let Some(end) = self.scanner.end_of_stream() {
            on(self.ended(end));
        }
    }

    /// How far the stream can be followed.
    #[must_use]
    pub fn tracking(&self) -> Tracking {
        self.scanner.tracking()
    }

    /// Bytes fed so far: the offset of the next one.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    fn ended(&mut self, end: u64) -> ResponseBoundary<'static> {
        let index = self.done;
        self.done += 1;
        self.outstanding.pop_front();
        ResponseBoundary::End { index, end }
    }
}

fn request_head(
    found: Found<'_>,
    index: u64,
    on: &mut impl FnMut(RequestBoundary<'_>),
) -> Result<Framing, LostTrack> {
    let parsed = head::request(found.bytes)?;
    on(RequestBoundary::Head(RequestHead {
        index,
        start: found.start,
        head_end: found.end,
        method: parsed.method,
        expects_continue: parsed.expects_continue,
        bytes: found.bytes,
    }));
    Ok(parsed.framing)
}

fn response_head(
    found: Found<'_>,
    asked: Option<Asked>,
    index: u64,
    on: &mut impl FnMut(ResponseBoundary<'_>),
) -> Result<Framing, LostTrack> {
    let parsed = head::response(found.bytes, asked.ok_or(LostTrack::Unasked)?)?;
    let response = ResponseHead {
        index,
        start: found.start,
        head_end: found.end,
        status: parsed.status,
        bytes: found.bytes,
    };
    on(match parsed.framing {
        Framing::Interim => ResponseBoundary::Interim(response),
        Framing::Length(_) | Framing::Chunked | Framing::UntilClose | Framing::LeavesHttp => {
            ResponseBoundary::Head(response)
        }
    });
    Ok(parsed.framing)
}
