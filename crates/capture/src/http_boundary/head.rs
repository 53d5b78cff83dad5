//! Message heads: where one ends, and what it says.

use std::mem::MaybeUninit;

use httparse::{Header, Request, Response, Status};
use memchr::memchr;

use super::framing::{self, Asked, Framing};
use super::{FIELDS_CAP, LostTrack};

/// Finds the empty line that ends a head, without looking at a byte twice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum HeadEnd {
    /// Inside a line that is not empty.
    #[default]
    Line,
    /// At the start of a line.
    LineStart,
    /// After a carriage return that was the first byte of its line.
    EmptyLine,
}

impl HeadEnd {
    /// How many of the `bytes`, which follow those of earlier calls, belong to the head; `None`
    /// when it does not end among them.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (taken, next) = match (*self, rest) {
                (Self::LineStart | Self::EmptyLine, [b'\n', ..]) => {
                    *self = Self::Line;
                    return Some(at + 1);
                }
                (Self::LineStart, [b'\r', ..]) => (1, Self::EmptyLine),
                _ => match memchr(b'\n', rest) {
                    Some(end) => (end + 1, Self::LineStart),
                    None => (rest.len(), Self::Line),
                },
            };
            (at, *self) = (at + taken, next);
        }
        None
    }
}

/// What a request's head says.
pub(super) struct ParsedRequest<'a> {
    pub(super) method: &'a str,
    pub(super) expects_continue: bool,
    pub(super) framing: Framing,
}

/// What a response's head says.
pub(super) struct ParsedResponse {
    pub(super) status: u16,
    pub(super) framing: Framing,
}

/// Reads a complete request head.
pub(super) fn request(bytes: &[u8]) -> Result<ParsedRequest<'_>, LostTrack> {
    let mut space = [const { MaybeUninit::<Header<'_>>::uninit() }; FIELDS_CAP];
    let mut request = Request::new(&mut []);
    let status = request.parse_with_uninit_headers(bytes, &mut space);
    whole(status, bytes)?;
    // Both are set once the head is complete.
    let (Some(method), Some(minor)) = (request.method, request.version) else {
        return Err(LostTrack::Head(httparse::Error::Token));
    };
    Ok(ParsedRequest {
        method,
        expects_continue: framing::expects_continue(minor, request.headers),
        framing: framing::of_request(minor, request.headers)?,
    })
}

/// Reads a complete response head; `asked` is the method of its request.
pub(super) fn response(bytes: &[u8], asked: Asked) -> Result<ParsedResponse, LostTrack> {
    let mut space = [const { MaybeUninit::<Header<'_>>::uninit() }; FIELDS_CAP];
    let mut response = Response::new(&mut []);
    let status = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut space,
    );
    whole(status, bytes)?;
    // Both are set once the head is complete.
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(LostTrack::Head(httparse::Error::Status));
    };
    Ok(ParsedResponse {
        status,
        framing: framing::of_response(status, asked, minor, response.headers)?,
    })
}

/// Checks that the parser saw the head end where the empty line is.
fn whole(parsed: httparse::Result<usize>, bytes: &[u8]) -> Result<(), LostTrack> {
    match parsed.map_err(LostTrack::Head)? {
        Status::Complete(length) if length == bytes.len() => Ok(()),
        Status::Complete(_) | Status::Partial => Err(LostTrack::Head(httparse::Error::NewLine)),
    }
}
