//! Where a message's body ends, as its head declares (RFC 9112, section 6).

use httparse::Header;

use super::LostTrack;

/// How the end of a message is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After this many more bytes.
    Length(u64),
    /// By the chunked coding.
    Chunked,
    /// By the end of the stream.
    UntilClose,
    /// Here, and it is an interim response: the final one follows.
    Interim,
    /// Here, and what follows is another protocol.
    LeavesHttp,
}

/// What matters of a request's method for where its response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Head,
    Connect,
    Other,
}

impl Asked {
    pub(super) fn by(method: &str) -> Self {
        match method {
            "HEAD" => Self::Head,
            "CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }
}

/// What a head says of its body's length.
enum Declared {
    Nothing,
    Length(u64),
    Chunked,
    OtherCoding,
}

/// Framing of a request.
pub(super) fn of_request(http_minor: u8, headers: &[Header<'_>]) -> Result<Framing, LostTrack> {
    match declared(http_minor, headers)? {
        Declared::Nothing => Ok(Framing::Length(0)),
        Declared::Length(length) => Ok(Framing::Length(length)),
        Declared::Chunked => Ok(Framing::Chunked),
        Declared::OtherCoding => Err(LostTrack::TransferEncoding),
    }
}

/// Framing of a response to a request with method `asked`.
pub(super) fn of_response(
    status: u16,
    asked: Asked,
    http_minor: u8,
    headers: &[Header<'_>],
) -> Result<Framing, LostTrack> {
    match (status, asked) {
        (0..=99, _) => return Err(LostTrack::Status),
        (101, _) | (200..=299, Asked::Connect) => return Ok(Framing::LeavesHttp),
        (100..=199, _) => return Ok(Framing::Interim),
        (204 | 304, _) | (_, Asked::Head) => return Ok(Framing::Length(0)),
        _ => {}
    }
    Ok(match declared(http_minor, headers)? {
        Declared::Nothing | Declared::OtherCoding => Framing::UntilClose,
        Declared::Length(length) => Framing::Length(length),
        Declared::Chunked => Framing::Chunked,
    })
}

fn declared(http_minor: u8, headers: &[Header<'_>]) -> Result<Declared, LostTrack> {
    if let Some(coding) = last_item(headers, "transfer-encoding") {
        // HTTP/1.0 has no codings: whoever forwarded this may not have understood it.
        if http_minor == 0 || coding.is_empty() {
            return Err(LostTrack::TransferEncoding);
        }
        return Ok(if coding.eq_ignore_ascii_case(b"chunked") {
            Declared::Chunked
        } else {
            Declared::OtherCoding
        });
    }
    let mut length = None;
    for value in values(headers, "content-length") {
        for item in value.split(|byte| *byte == b',') {
            let one = number(item.trim_ascii()).ok_or(LostTrack::ContentLength)?;
            if length.is_some_and(|other| other != one) {
                return Err(LostTrack::ContentLength);
            }
            length = Some(one);
        }
    }
    Ok(length.map_or(Declared::Nothing, Declared::Length))
}

/// All values of the header fields called `name`, in order.
fn values<'h>(headers: &'h [Header<'h>], name: &'static str) -> impl Iterator<Item = &'h [u8]> {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value)
}

/// The last item of a comma-separated list that may be spread over several fields.
fn last_item<'h>(headers: &'h [Header<'h>], name: &'static str) -> Option<&'h [u8]> {
    values(headers, name)
        .last()
        .and_then(|value| value.rsplit(|byte| *byte == b',').next())
        .map(<[u8]>::trim_ascii)
}

/// Whether the request's sender may wait for `100 Continue`.
pub(super) fn expects_continue(http_minor: u8, headers: &[Header<'_>]) -> bool {
    http_minor > 0
        && values(headers, "expect")
            .any(|value| value.trim_ascii().eq_ignore_ascii_case(b"100-continue"))
}

/// A number of decimal digits only; `from_str` would allow a sign.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
