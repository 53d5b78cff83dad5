//! Finds in a request's head what two parties on its way could read differently.
//!
//! HTTP's rules are stricter than most readers, and what one reader forgives another takes for
//! something else; that is how requests are smuggled (RFC 9112, section 11.2). Such a request
//! is refused, even where the HTTP library would understand it.

/// What makes a head ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadFault {
    /// A line that does not end in CR LF.
    #[error("a line of the head does not end in CR LF")]
    BareLineFeed,
    /// More than one `Content-Length`.
    #[error("more than one content-length")]
    SeveralLengths,
    /// `Content-Length` beside `Transfer-Encoding`.
    #[error("content-length beside transfer-encoding")]
    LengthAndCoding,
    /// A coding other than `chunked`.
    #[error("a transfer-encoding other than chunked")]
    Coding,
    /// No `Host` in HTTP/1.1, more than one, or one that is none.
    #[error("not exactly one host")]
    Host,
    /// The two readers in this proxy do not agree on the request.
    #[error("the request can be read in two ways")]
    Disputed,
}

impl HeadFault {
    /// Whether `host`, the only one of a head, is one.
    ///
    /// # Errors
    /// It could be taken for something else.
    pub(crate) fn of_host(host: &[u8]) -> Result<(), Self> {
        if is_host(host) {
            Ok(())
        } else {
            Err(Self::Host)
        }
    }
}

/// Finds the first thing that is wrong with the head in `bytes`, which is well-formed otherwise.
pub(crate) fn check(bytes: &[u8]) -> Result<(), HeadFault> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let first = line(lines.next().unwrap_or_default())?;
    let (mut hosts, mut lengths, mut codings) = (0_u32, 0_u32, 0_u32);
    for whole in lines {
        let line = line(whole)?;
        let Some((name, value)) = name_and_value(line) else {
            continue;
        };
        // Most names differ in their length already.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                hosts += 1;
                if !is_host(value) {
                    return Err(HeadFault::Host);
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => lengths += 1,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                codings += 1;
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(HeadFault::Coding);
                }
            }
            _ => {}
        }
    }
    let host_needed = first.ends_with(b"HTTP/1.1");
    match (lengths, codings) {
        (1.., 1..) => Err(HeadFault::LengthAndCoding),
        (2.., 0) => Err(HeadFault::SeveralLengths),
        (_, 2..) => Err(HeadFault::Coding),
        _ if hosts > 1 || (hosts == 0 && host_needed) => Err(HeadFault::Host),
        _ => Ok(()),
    }
}

fn line(whole: &[u8]) -> Result<&[u8], HeadFault> {
    whole.strip_suffix(b"\r\n").ok_or(HeadFault::BareLineFeed)
}

fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, rest) = line.split_at_checked(colon)?;
    Some((name, rest.get(1..)?.trim_ascii()))
}

/// Whether nobody could take it for two things; an empty one is allowed (RFC 9112, section 3.2).
fn is_host(value: &[u8]) -> bool {
    let foreign = |byte: &u8| {
        byte.is_ascii_whitespace() || matches!(byte, b'/' | b'\\' | b'@' | b'?' | b'#' | b',')
    };
    !value.iter().any(foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_heads_pass() {
        for head in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "POST / HTTP/1.1\r\nhost:[::1]:80\r\ncontent-length: 3\r\n\r\n",
            "POST / HTTP/1.1\r\nHost:\r\nTransfer-Encoding: Chunked\r\n\r\n",
        ] {
            assert_eq!(check(head.as_bytes()), Ok(()), "{head}");
        }
    }

    #[test]
    fn each_fault_is_told_by_its_name() {
        for (head, fault) in [
            ("GET / HTTP/1.1\nHost: a\r\n\r\n", HeadFault::BareLineFeed),
            ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", HeadFault::Host),
            ("GET / HTTP/1.1\r\n\r\n", HeadFault::Host),
        ] {
            assert_eq!(check(head.as_bytes()), Err(fault), "{head}");
        }
    }
}
