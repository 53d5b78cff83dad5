//! At which byte of a stream each HTTP/2 frame starts and ends.
//!
//! A scanner is fed the bytes of one direction of one connection, in order and in any pieces,
//! and calls back when the header of a frame is complete, and again when its last byte has
//! passed. Offsets count from the first byte fed. Payloads are skipped by count; nothing is
//! decompressed, so of a header block only its place is known, not its content.
//!
//! A client's direction begins with a preface. Where something else stands in its place the
//! scanner is lost for good and calls back no more. After that every nine bytes are some frame's
//! header, so nothing can be malformed: whether a frame is allowed is for the peers to judge.

#[cfg(test)]
mod tests;

/// What a client sends before its first frame (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame before its payload.
pub const HEADER_LENGTH: usize = 9;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// What a frame is for, as far as messages are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A piece of a body.
    Data,
    /// The begin of a header block: a head, or trailers.
    Headers,
    /// More of a header block.
    Continuation,
    /// The end of a stream before its time.
    Reset,
    /// Anything else: settings, window updates, pings and what may be added one day.
    Other,
}

/// A frame whose header is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: FrameKind,
    /// The stream it belongs to; 0 is the connection itself.
    pub stream: u32,
    /// Offset of its first byte.
    pub start: u64,
    /// Offset just after its last byte.
    pub end: u64,
    /// Whether its sender sends nothing more on the stream, once a header block that it begins
    /// is complete.
    pub ends_stream: bool,
    /// Whether it completes a header block.
    pub ends_block: bool,
}

impl Frame {
    fn new(header: [u8; HEADER_LENGTH], start: u64) -> Self {
        let [high, mid, low, kind, flags, s0, s1, s2, s3] = header;
        let payload = u32::from_be_bytes([0, high, mid, low]);
        let kind = match kind {
            0x0 => FrameKind::Data,
            0x1 => FrameKind::Headers,
            0x3 => FrameKind::Reset,
            0x9 => FrameKind::Continuation,
            _ => FrameKind::Other,
        };
        let may_end = matches!(kind, FrameKind::Data | FrameKind::Headers);
        let is_block = matches!(kind, FrameKind::Headers | FrameKind::Continuation);
        Self {
            kind,
            // The first bit is reserved.
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
            start,
            end: start
                .saturating_add(HEADER_LENGTH as u64)
                .saturating_add(u64::from(payload)),
            ends_stream: may_end && flags & END_STREAM != 0,
            ends_block: is_block && flags & END_HEADERS != 0,
        }
    }

    /// Whether it carries a part of a message.
    #[must_use]
    pub fn is_message(&self) -> bool {
        match self.kind {
            FrameKind::Data | FrameKind::Headers | FrameKind::Continuation => self.stream != 0,
            FrameKind::Reset | FrameKind::Other => false,
        }
    }
}

/// What passed of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameBoundary {
    /// Its header is complete.
    Header(Frame),
    /// Its last byte; follows its header at once where there is no payload.
    End(Frame),
}

/// Finds the frames in one direction of a connection.
#[derive(Clone, Debug)]
pub struct FrameBoundaries {
    offset: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// So many bytes of the preface have come.
    Preface(usize),
    /// So many bytes of a header have come.
    Header([u8; HEADER_LENGTH], usize),
    Payload(Frame),
    Lost,
}

impl FrameBoundaries {
    /// Of what a client sends.
    #[must_use]
    pub const fn of_client() -> Self {
        Self {
            offset: 0,
            state: State::Preface(0),
        }
    }

    /// Of what a server sends.
    #[must_use]
    pub const fn of_server() -> Self {
        Self {
            offset: 0,
            state: State::Header([0; HEADER_LENGTH], 0),
        }
    }

    /// Offset of the next byte.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Offset of the first byte of a header that has begun but is not complete.
    #[must_use]
    pub fn open_header(&self) -> Option<u64> {
        match self.state {
            State::Header(_, have @ 1..) => Some(self.offset.saturating_sub(have as u64)),
            State::Header(..) | State::Preface(_) | State::Payload(_) | State::Lost => None,
        }
    }

    /// Whether the preface was something else.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost)
    }

    /// Takes the next piece of the stream.
    pub fn feed(&mut self, bytes: &[u8], mut passed: impl FnMut(FrameBoundary)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match self.state {
                State::Lost => rest.len(),
                State::Preface(have) => self.preface(rest, have),
                State::Header(header, have) => self.header(rest, (header, have), &mut passed),
                State::Payload(frame) => self.payload(rest, frame, &mut passed),
            };
            self.offset = self.offset.saturating_add(taken as u64);
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    fn preface(&mut self, bytes: &[u8], have: usize) -> usize {
        let wanted = PREFACE.get(have..).unwrap_or_default();
        let count = wanted.len().min(bytes.len());
        self.state = if wanted.get(..count) != bytes.get(..count) {
            State::Lost
        } else if count == wanted.len() {
            State::Header([0; HEADER_LENGTH], 0)
        } else {
            State::Preface(have + count)
        };
        count
    }

    fn header(
        &mut self,
        bytes: &[u8],
        (mut header, have): ([u8; HEADER_LENGTH], usize),
        passed: &mut impl FnMut(FrameBoundary),
    ) -> usize {
        let mut taken = 0;
        for (slot, byte) in header.iter_mut().skip(have).zip(bytes) {
            *slot = *byte;
            taken += 1;
        }
        if have + taken < HEADER_LENGTH {
            self.state = State::Header(header, have + taken);
            return taken;
        }
        let frame = Frame::new(header, self.offset.saturating_sub(have as u64));
        passed(FrameBoundary::Header(frame));
        self.state = State::Payload(frame);
        if frame.end <= self.offset.saturating_add(taken as u64) {
            self.end(frame, passed);
        }
        taken
    }

    fn payload(
        &mut self,
        bytes: &[u8],
        frame: Frame,
        passed: &mut impl FnMut(FrameBoundary),
    ) -> usize {
        let left = frame.end.saturating_sub(self.offset);
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        if taken as u64 == left {
            self.end(frame, passed);
        }
        taken
    }

    fn end(&mut self, frame: Frame, passed: &mut impl FnMut(FrameBoundary)) {
        passed(FrameBoundary::End(frame));
        self.state = State::Header([0; HEADER_LENGTH], 0);
    }
}
