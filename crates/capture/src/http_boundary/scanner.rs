//! The walk through a stream that requests and responses have in common.

use super::chunked::{self, Chunked};
use super::framing::Framing;
use super::head::HeadEnd;
use super::{HEAD_CAP, LostTrack, Tracking};

/// Buffers larger than this are given back after the head they held.
const KEPT_BUFFER: usize = 4 * 1024;

/// A position in a stream of messages.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    offset: u64,
    place: Place,
    /// The part of the current head that came with earlier calls.
    head: Vec<u8>,
    head_end: HeadEnd,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Before a message; `after_return` when the last byte was a carriage return.
    Between { after_return: bool },
    /// In the head that begins at `start`.
    Head { start: u64 },
    /// After a complete head, until [`Scanner::follow`] tells how to go on.
    Undecided,
    /// In a body with this many bytes left.
    Counted { left: u64 },
    /// In a chunked body.
    Chunked(Chunked),
    /// In a body that lasts until the stream ends.
    UntilClose,
    /// Just after the last message before another protocol.
    LastEnd,
    /// Out of HTTP.
    Left { at: u64 },
    /// No longer understood.
    Lost { at: u64, why: LostTrack },
}

impl Default for Place {
    fn default() -> Self {
        Self::Between {
            after_return: false,
        }
    }
}

/// A complete head.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) start: u64,
    pub(super) end: u64,
}

/// What the scanner came upon.
pub(super) enum Step<'a> {
    /// Nothing more until more bytes come.
    Starved,
    /// The end of a head; [`Scanner::follow`] must be called next.
    Head(Found<'a>),
    /// The end of a message.
    End { end: u64 },
}

impl Scanner {
    /// Takes bytes off the front of `input` up to the next boundary.
    pub(super) fn advance<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Step<'s> {
        if let Place::Between { after_return } = self.place {
            self.skip_empty_lines(after_return, input);
        }
        if let Place::Head { start } = self.place {
            return self.in_head(start, input);
        }
        if self.in_body(input) {
            return Step::End { end: self.offset };
        }
        // Whatever is left belongs to no message that could be followed.
        self.count(input.len());
        *input = &[];
        Step::Starved
    }

    /// Goes on after a head, as its framing says, or not at all.
    pub(super) fn follow(&mut self, framing: Result<Framing, LostTrack>) {
        self.head.clear();
        self.head.shrink_to(KEPT_BUFFER);
        self.place = match framing {
            Ok(Framing::Length(left)) if self.offset.checked_add(left).is_none() => Place::Lost {
                at: self.offset,
                why: LostTrack::ContentLength,
            },
            Ok(Framing::Length(left)) => Place::Counted { left },
            Ok(Framing::Chunked) => Place::Chunked(Chunked::START),
            Ok(Framing::UntilClose) => Place::UntilClose,
            Ok(Framing::Interim) => Place::default(),
            Ok(Framing::LeavesHttp) => Place::LastEnd,
            Err(why) => Place::Lost {
                at: self.offset,
                why,
            },
        };
    }

    /// Notes that the stream is over; the end of a message that this completes.
    pub(super) fn end_of_stream(&mut self) -> Option<u64> {
        match self.place {
            Place::UntilClose => {
                self.place = Place::default();
                Some(self.offset)
            }
            Place::Head { .. } | Place::Counted { .. } | Place::Chunked(_) => {
                self.lose(LostTrack::CutShort);
                None
            }
            Place::Between { .. }
            | Place::Undecided
            | Place::LastEnd
            | Place::Left { .. }
            | Place::Lost { .. } => None,
        }
    }

    /// Stops: what comes next is another protocol.
    pub(super) fn leave_http(&mut self) {
        if self.tracking() == Tracking::Following {
            self.place = Place::Left { at: self.offset };
            self.head = Vec::new();
        }
    }

    /// Stops: what comes next is not understood.
    pub(super) fn lose(&mut self, why: LostTrack) {
        if self.tracking() == Tracking::Following {
            self.place = Place::Lost {
                at: self.offset,
                why,
            };
            self.head = Vec::new();
        }
    }

    pub(super) fn tracking(&self) -> Tracking {
        match self.place {
            Place::Left { at } => Tracking::LeftHttp { at },
            Place::Lost { at, why } => Tracking::Lost { at, why },
            Place::Between { .. }
            | Place::Head { .. }
            | Place::Undecided
            | Place::Counted { .. }
            | Place::Chunked(_)
            | Place::UntilClose
            | Place::LastEnd => Tracking::Following,
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    fn count(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(bytes as u64);
    }

    /// Empty lines before a message are no part of it (RFC 9112, section 2.2).
    fn skip_empty_lines(&mut self, mut after_return: bool, input: &mut &[u8]) {
        while let Some((byte, rest)) = input.split_first() {
            match (*byte, after_return) {
                (b'\n', _) => after_return = false,
                (b'\r', false) => after_return = true,
                (_, true) => return self.lose(LostTrack::Head(httparse::Error::NewLine)),
                _ => {
                    self.place = Place::Head { start: self.offset };
                    return;
                }
            }
            *input = rest;
            self.count(1);
        }
        self.place = Place::Between { after_return };
    }

    fn in_head<'s, 'i: 's>(&'s mut self, start: u64, input: &mut &'i [u8]) -> Step<'s> {
        let found = self.head_end.find(input);
        let (part, rest) = input.split_at(found.unwrap_or(input.len()));
        *input = rest;
        self.count(part.len());
        if self.head.len().saturating_add(part.len()) > HEAD_CAP {
            self.lose(LostTrack::HeadTooLong);
            self.count(input.len());
            *input = &[];
            return Step::Starved;
        }
        if found.is_none() {
            self.head.extend_from_slice(part);
            return Step::Starved;
        }
        self.place = Place::Undecided;
        let bytes = if self.head.is_empty() {
            part
        } else {
            self.head.extend_from_slice(part);
            &self.head
        };
        Step::Head(Found {
            bytes,
            start,
            end: self.offset,
        })
    }

    /// Whether the message ended; `place` is then where the next one begins.
    fn in_body(&mut self, input: &mut &[u8]) -> bool {
        let before = input.len();
        let ended = match &mut self.place {
            Place::Counted { left } => Ok(chunked::skip(left, input)),
            Place::Chunked(body) => body.advance(input),
            Place::LastEnd => {
                self.place = Place::Left { at: self.offset };
                return true;
            }
            _ => Ok(false),
        };
        self.count(before - input.len());
        match ended {
            Ok(true) => self.place = Place::default(),
            Ok(false) => {}
            Err(why) => self.lose(why),
        }
        matches!(ended, Ok(true))
    }
}
