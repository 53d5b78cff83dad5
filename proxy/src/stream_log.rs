//! The messages of one direction of an HTTP/2 connection: where each stream's frames lie, and
//! when their first and last bytes went by.
//!
//! Which header block of a stream is the head of its message cannot be seen without
//! decompression: interim responses come before it and trailers after. Whoever asks says how
//! many interim responses there were, which the HTTP library knows.

use std::collections::BTreeMap;

use skewtap_capture::http2_boundary::{Frame, FrameBoundaries, FrameBoundary, FrameKind};

use crate::message_log::{Interleaved, Message};

/// Most streams of a client that are followed before their exchange has begun or ended.
const STREAMS_CAP: usize = 4_096;

/// Most header blocks of one stream whose times are kept; a message that begins with a later
/// one has no stamps.
const BLOCKS_CAP: usize = 8;

/// What a piece of the stream completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamPassed<T> {
    /// A message, with everything that came before it on its stream.
    End {
        /// The stream.
        stream: u32,
        /// Offset just after its last byte.
        end: u64,
        /// When that went by.
        last: T,
    },
    /// A frame that ends a stream before its time.
    Reset {
        /// The stream.
        stream: u32,
    },
}

/// The streams of one direction.
#[derive(Debug)]
pub(crate) struct StreamLog<T> {
    scanner: FrameBoundaries,
    tracks: Tracks<T>,
}

#[derive(Debug)]
struct Tracks<T> {
    /// By stream. Streams begin in the order of their numbers.
    by_stream: BTreeMap<u32, Track<T>>,
    /// The latest stream that its own head began; `None` where streams are expected instead.
    newest: Option<u32>,
    /// When the first byte of a frame's header went by that came in several pieces.
    cut_header: Option<T>,
    /// Whether a header block has begun but is not complete.
    block_is_open: bool,
    /// Bytes of the messages of all streams so far.
    carried: u64,
    /// Streams given up to keep within the cap.
    lost: u64,
}

/// What went by of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Track<T> {
    stream: u32,
    blocks: Vec<Block<T>>,
    /// Header blocks, also those whose times were not kept.
    count: usize,
    own: u64,
    /// A frame has said that nothing follows it.
    closing: bool,
    end: Option<End<T>>,
    /// It was ended before its time.
    reset: bool,
}

#[derive(Clone, Copy, Debug)]
struct Block<T> {
    start: u64,
    first: T,
    /// Bytes of this stream, and of all, before it.
    before: (u64, u64),
    /// Offset just after it, and when its last byte went by.
    end: Option<(u64, T)>,
}

#[derive(Clone, Copy, Debug)]
struct End<T> {
    at: u64,
    last: T,
    /// Bytes of this stream, and of all, up to there.
    up_to: (u64, u64),
}

impl<T: Copy> StreamLog<T> {
    /// Of what a client sends; its streams are followed from their first byte on.
    pub(crate) fn of_client() -> Self {
        Self::new(FrameBoundaries::of_client(), Some(0))
    }

    /// Of what is sent to a server; streams are followed once they are expected.
    pub(crate) fn to_server() -> Self {
        Self::new(FrameBoundaries::of_client(), None)
    }

    /// Of responses, in either direction; streams are followed once they are expected.
    pub(crate) fn of_responses() -> Self {
        Self::new(FrameBoundaries::of_server(), None)
    }

    fn new(scanner: FrameBoundaries, newest: Option<u32>) -> Self {
        let tracks = Tracks {
            by_stream: BTreeMap::new(),
            newest,
            cut_header: None,
            block_is_open: false,
            carried: 0,
            lost: 0,
        };
        Self { scanner, tracks }
    }

    /// Follows `stream` from here on.
    pub(crate) fn expect(&mut self, stream: u32) {
        let track = || Track::new(stream);
        self.tracks.by_stream.entry(stream).or_insert_with(track);
    }

    /// What has gone by of `stream`.
    pub(crate) fn get(&self, stream: u32) -> Option<&Track<T>> {
        self.tracks.by_stream.get(&stream)
    }

    /// Follows `stream` no longer.
    pub(crate) fn forget(&mut self, stream: u32) {
        self.tracks.by_stream.remove(&stream);
    }

    /// Takes the next piece; `at` says when the byte at an offset went by.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        at: impl Fn(u64) -> T,
        mut passed: impl FnMut(StreamPassed<T>),
    ) {
        let Self { scanner, tracks } = self;
        let piece = scanner.offset();
        scanner.feed(bytes, |boundary| match boundary {
            FrameBoundary::Header(frame) => tracks.begin(frame, piece, &at),
            FrameBoundary::End(frame) => tracks.end(frame, &at, &mut passed),
        });
        if let Some(start) = scanner.open_header().filter(|start| *start >= piece) {
            tracks.cut_header = Some(at(start));
        }
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// Offset of the first byte of all streams that are followed.
    pub(crate) fn floor(&self) -> u64 {
        let begun = self.tracks.by_stream.values().filter_map(Track::begun_at);
        begun.min().unwrap_or_else(|| self.offset())
    }

    /// Whether a header block, or the header of a frame, has begun but is not complete.
    pub(crate) fn head_is_open(&self) -> bool {
        self.tracks.block_is_open || self.scanner.open_header().is_some()
    }

    /// Takes the number of streams given up since it was last asked.
    pub(crate) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.tracks.lost)
    }
}

impl<T: Copy> Tracks<T> {
    fn begin(&mut self, frame: Frame, piece: u64, at: &impl Fn(u64) -> T) {
        let cut = self.cut_header.take();
        if !frame.is_message() {
            return;
        }
        let carried = self.carried;
        self.carried = carried.saturating_add(length(&frame));
        let is_head = frame.kind == FrameKind::Headers;
        if is_head {
            self.block_is_open = true;
            self.follow_new(frame.stream);
        }
        let Some(track) = self.by_stream.get_mut(&frame.stream) else {
            return;
        };
        if is_head {
            let first = cut.filter(|_| frame.start < piece);
            let first = first.unwrap_or_else(|| at(frame.start));
            track.begin_block(frame.start, first, carried);
        }
        track.own = track.own.saturating_add(length(&frame));
        track.closing |= frame.ends_stream;
    }

    /// Follows a stream that a client opens by this frame.
    fn follow_new(&mut self, stream: u32) {
        if self.newest.is_none_or(|newest| stream <= newest) {
            return;
        }
        self.newest = Some(stream);
        self.by_stream.insert(stream, Track::new(stream));
        if self.by_stream.len() > STREAMS_CAP {
            let oldest = self.by_stream.pop_first();
            // One that was taken back will hardly become an exchange.
            self.lost += u64::from(oldest.is_some_and(|(_, track)| !track.reset));
        }
    }

    fn end(
        &mut self,
        frame: Frame,
        at: &impl Fn(u64) -> T,
        passed: &mut impl FnMut(StreamPassed<T>),
    ) {
        if frame.ends_block {
            self.block_is_open = false;
        }
        let (stream, carried) = (frame.stream, self.carried);
        let track = self.by_stream.get_mut(&stream);
        let whole = match frame.kind {
            FrameKind::Headers | FrameKind::Continuation => frame.ends_block,
            FrameKind::Data => true,
            FrameKind::Other => return,
            FrameKind::Reset => {
                if let Some(track) = track {
                    track.reset = true;
                }
                return passed(StreamPassed::Reset { stream });
            }
        };
        let Some(track) = track else { return };
        let ends = whole && track.closing && track.end.is_none();
        if !ends && !frame.ends_block {
            return;
        }
        let last = at(frame.end.saturating_sub(1));
        if frame.ends_block {
            track.end_block(frame.end, last);
        }
        if ends {
            track.end = Some(End {
                at: frame.end,
                last,
                up_to: (track.own, carried),
            });
            let end = frame.end;
            passed(StreamPassed::End { stream, end, last });
        }
    }
}

impl<T: Copy> Track<T> {
    fn new(stream: u32) -> Self {
        Self {
            stream,
            blocks: Vec::new(),
            count: 0,
            own: 0,
            closing: false,
            end: None,
            reset: false,
        }
    }

    fn begin_block(&mut self, start: u64, first: T, carried: u64) {
        self.count += 1;
        if self.blocks.len() < BLOCKS_CAP {
            self.blocks.push(Block {
                start,
                first,
                before: (self.own, carried),
                end: None,
            });
        }
    }

    fn end_block(&mut self, end: u64, last: T) {
        let newest = self.count.checked_sub(1);
        if let Some(block) = newest.and_then(|newest| self.blocks.get_mut(newest)) {
            block.end.get_or_insert((end, last));
        }
    }

    fn begun_at(&self) -> Option<u64> {
        self.blocks.first().map(|block| block.start)
    }

    /// The message that begins with the header block after so many others, once that is complete.
    pub(crate) fn message(&self, others: usize) -> Option<Message<T>> {
        let block = self.blocks.get(others)?;
        let (head_end, head) = block.end?;
        let interleaved = self.end.map(|end| {
            let own = end.up_to.0.saturating_sub(block.before.0);
            let all = end.up_to.1.saturating_sub(block.before.1);
            Interleaved {
                own,
                others: all.saturating_sub(own),
            }
        });
        Some(Message {
            index: u64::from(self.stream),
            start: block.start,
            head_end,
            end: self.end.map(|end| end.at),
            first: block.first,
            head,
            last: self.end.map(|end| end.last),
            interleaved,
        })
    }

    /// The interim response that is the header block after so many others, once it is complete.
    pub(crate) fn interim(&self, others: usize) -> Option<Message<T>> {
        let message = self.message(others)?;
        Some(Message {
            end: Some(message.head_end),
            last: Some(message.head),
            interleaved: None,
            ..message
        })
    }

    /// Whether it was ended before its time.
    pub(crate) fn was_reset(&self) -> bool {
        self.reset
    }
}

fn length(frame: &Frame) -> u64 {
    frame.end.saturating_sub(frame.start)
}

#[cfg(test)]
mod tests;
