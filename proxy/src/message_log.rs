//! The messages of one direction of a connection: where they lie in the
//! stream, and when their first and last bytes went by.

use skewtap_capture::http_boundary::{
    LostTrack, RequestBoundaries, RequestBoundary, ResponseBoundaries, ResponseBoundary, Tracking,
};

/// One message whose head is complete. Offsets count the bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<T> {
    /// How many messages of its kind came before it on the connection.
    pub(crate) index: u64,
    /// Offset of its first byte.
    pub(crate) start: u64,
    /// Offset just after its head.
    pub(crate) head_end: u64,
    /// Offset just after its last byte, once known.
    pub(crate) end: Option<u64>,
    /// When its first byte went by.
    pub(crate) first: T,
    /// When the last byte of its head went by.
    pub(crate) head: T,
    /// When its last byte went by, once it has.
    pub(crate) last: Option<T>,
    /// What lies between its first byte and its last, where several messages go at once.
    pub(crate) interleaved: Option<Interleaved>,
}

/// The bytes from a message's first to its last, on a connection that carries several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interleaved {
    /// Bytes of its own frames, their headers included.
    pub(crate) own: u64,
    /// Bytes of other messages.
    pub(crate) others: u64,
}

/// A request's head as it was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// What a piece of the stream completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed<T> {
    /// A head.
    Head { message: Message<T>, status: u16 },
    /// An interim response.
    Interim { message: Message<T>, status: u16 },
    /// A message: its index, the offset just after it, and when its last byte went by.
    End { index: u64, end: u64, last: T },
}

/// Remembers when the first byte of a head went by that came in several pieces.
#[derive(Debug)]
struct OpenHead<T> {
    first: Option<T>,
    in_message: bool,
    latest: Option<T>,
}

impl<T: Copy> OpenHead<T> {
    const fn new() -> Self {
        Self {
            first: None,
            in_message: false,
            latest: None,
        }
    }

    fn head(
        &mut self,
        index: u64,
        (start, head_end): (u64, u64),
        (piece, at): (u64, &impl Fn(u64) -> T),
    ) -> Message<T> {
        let earlier = self.first.take();
        Message {
            index,
            start,
            head_end,
            end: None,
            first: earlier
                .filter(|_| start < piece)
                .unwrap_or_else(|| at(start)),
            head: at(head_end.saturating_sub(1)),
            last: None,
            interleaved: None,
        }
    }

    /// To be called after each piece; `left` are its bytes after the last boundary in it.
    fn after_piece(&mut self, left: &[u8], at: impl Fn() -> T) {
        let begun = left.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
        if !self.in_message && self.first.is_none() && begun {
            self.first = Some(at());
        }
    }
}

/// The requests of one direction.
#[derive(Debug)]
pub(crate) struct RequestLog<T> {
    scanner: RequestBoundaries,
    open: OpenHead<T>,
}

impl<T: Copy> RequestLog<T> {
    pub(crate) fn new() -> Self {
        Self {
            scanner: RequestBoundaries::new(),
            open: OpenHead::new(),
        }
    }

    /// Takes the next piece of the stream; `at` says when the byte at an offset went by. What is
    /// a head comes with its text.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        at: impl Fn(u64) -> T,
        mut passed: impl FnMut(Passed<T>, Head<'_>),
    ) {
        let piece = self.scanner.offset();
        let mut boundary = piece;
        let open = &mut self.open;
        self.scanner.feed(bytes, |found| match found {
            RequestBoundary::Head(head) => {
                let bounds = (head.start, head.head_end);
                let message = open.head(head.index, bounds, (piece, &at));
                (open.in_message, boundary) = (true, head.head_end);
                let found = Head {
                    method: head.method,
                    bytes: head.bytes,
                };
                passed(Passed::Head { message, status: 0 }, found);
            }
            RequestBoundary::End { index, end } => {
                (open.in_message, boundary) = (false, end);
                let last = at(end.saturating_sub(1));
                passed(Passed::End { index, end, last }, Head::default());
            }
        });
        let left = after(bytes, boundary - piece);
        self.open.after_piece(left, || at(boundary));
    }

    /// Whether the requests can still be told apart.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.scanner.tracking(), Tracking::Lost { .. })
    }

    /// Whether the end of the request whose head came last can no longer be told.
    pub(crate) fn body_is_broken(&self) -> bool {
        self.open.in_message && self.is_lost()
    }

    /// Whether a head has begun but is not complete.
    pub(crate) fn head_is_open(&self) -> bool {
        self.open.first.is_some()
    }

    /// Whether every message so far is complete.
    pub(crate) fn between_messages(&self) -> bool {
        !self.open.in_message && self.open.first.is_none()
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.scanner.offset()
    }
}

/// The responses of one direction.
#[derive(Debug)]
pub(crate) struct ResponseLog<T> {
    scanner: ResponseBoundaries,
    open: OpenHead<T>,
}

impl<T: Copy> ResponseLog<T> {
    pub(crate) fn new() -> Self {
        Self {
            scanner: ResponseBoundaries::new(),
            open: OpenHead::new(),
        }
    }

    /// Notes the method of a request whose response will come in this direction.
    pub(crate) fn expect_response_to(&mut self, method: &str) {
        self.scanner.expect_response_to(method);
    }

    /// Takes the next piece of the stream; `at` says when the byte at an offset went by, `latest`
    /// when the last byte of the piece did. With a head come its bytes.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        at: impl Fn(u64) -> T,
        latest: T,
        mut passed: impl FnMut(Passed<T>, &[u8]),
    ) {
        let piece = self.scanner.offset();
        let mut boundary = piece;
        let open = &mut self.open;
        open.latest = Some(latest);
        self.scanner.feed(bytes, |found| match found {
            ResponseBoundary::Interim(head) => {
                let message = open.head(head.index, (head.start, head.head_end), (piece, &at));
                boundary = head.head_end;
                let status = head.status;
                passed(Passed::Interim { message, status }, head.bytes);
            }
            ResponseBoundary::Head(head) => {
                let message = open.head(head.index, (head.start, head.head_end), (piece, &at));
                (open.in_message, boundary) = (true, head.head_end);
                let status = head.status;
                passed(Passed::Head { message, status }, head.bytes);
            }
            ResponseBoundary::End { index, end } => {
                (open.in_message, boundary) = (false, end);
                let last = at(end.saturating_sub(1));
                passed(Passed::End { index, end, last }, &[]);
            }
        });
        let left = after(bytes, boundary - piece);
        self.open.after_piece(left, || at(boundary));
    }

    /// Notes the end of the stream, which ends a response that lasts until then.
    pub(crate) fn end_of_stream(&mut self, mut passed: impl FnMut(Passed<T>)) {
        let open = &mut self.open;
        self.scanner.end_of_stream(|found| {
            if let (ResponseBoundary::End { index, end }, Some(last)) = (found, open.latest) {
                open.in_message = false;
                passed(Passed::End { index, end, last });
            }
        });
    }

    /// Whether every message so far is complete.
    pub(crate) fn between_messages(&self) -> bool {
        !self.open.in_message && self.open.first.is_none()
    }

    /// Whether something came that is not HTTP/1.
    pub(crate) fn is_malformed(&self) -> bool {
        match self.scanner.tracking() {
            Tracking::Following | Tracking::LeftHttp { .. } => false,
            Tracking::Lost { why, .. } => why != LostTrack::CutShort,
        }
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.scanner.offset()
    }
}

fn after(bytes: &[u8], count: u64) -> &[u8] {
    usize::try_from(count)
        .ok()
        .and_then(|count| bytes.get(count..))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
