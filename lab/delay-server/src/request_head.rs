//! The head of a request, as far as this server cares.

use std::io::{self, BufRead, Read as _};

use otlp_json::TraceContext;

/// The most bytes a head may have.
const HEAD_LIMIT: u64 = 16 * 1024;

/// What a request line and its header fields said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Bytes of body that follow.
    pub(crate) body_length: u64,
    pub(crate) expects_continue: bool,
    /// The connection ends after the answer.
    pub(crate) close: bool,
    pub(crate) caller: Option<TraceContext>,
    pub(crate) user_agent: Option<String>,
}

/// Why no request could be read.
#[derive(Debug)]
pub(crate) enum HeadError {
    /// The connection failed, or ended within the head.
    Connection(io::Error),
    /// Not HTTP/1 as this server speaks it: the status and reason to answer with.
    Refused(&'static str),
}

impl From<io::Error> for HeadError {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl RequestHead {
    /// Reads the next head; `None` if the peer has sent its last request.
    pub(crate) fn read(input: &mut impl BufRead) -> Result<Option<Self>, HeadError> {
        if input.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut limited = input.take(HEAD_LIMIT);
        let mut head = Self::from_request_line(&next_line(&mut limited)?)?;
        loop {
            let line = next_line(&mut limited)?;
            if line.is_empty() {
                return Ok(Some(head));
            }
            head.add_field(&line)?;
        }
    }

    /// The value of a key in the target's query.
    pub(crate) fn query(&self, key: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .into_iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    }

    /// The target's path, also of one in absolute form.
    pub(crate) fn path(&self) -> &str {
        let target = self
            .target
            .split_once('?')
            .map_or(self.target.as_str(), |(path, _)| path);
        match target.split_once("://") {
            Some((_, rest)) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"),
            None => target,
        }
    }

    fn from_request_line(line: &str) -> Result<Self, HeadError> {
        const BAD: HeadError = HeadError::Refused("400 Bad Request");
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(BAD);
        };
        if method.is_empty() || target.is_empty() {
            return Err(BAD);
        }
        let close = match version {
            "HTTP/1.1" => false,
            "HTTP/1.0" => true,
            _ => return Err(HeadError::Refused("505 HTTP Version Not Supported")),
        };
        let (method, target) = (method.to_owned(), target.to_owned());
        Ok(Self {
            method,
            target,
            close,
            ..Self::default()
        })
    }

    fn add_field(&mut self, line: &str) -> Result<(), HeadError> {
        const BAD: HeadError = HeadError::Refused("400 Bad Request");
        let (name, value) = line.split_once(':').ok_or(BAD)?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => self.body_length = value.parse().map_err(|_| BAD)?,
            "transfer-encoding" => return Err(HeadError::Refused("501 Not Implemented")),
            "expect" => self.expects_continue = value.eq_ignore_ascii_case("100-continue"),
            "connection" => self.close |= value.eq_ignore_ascii_case("close"),
            "traceparent" => self.caller = TraceContext::parse(value),
            "user-agent" => self.user_agent = Some(value.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

/// One line without its end.
fn next_line(input: &mut io::Take<impl BufRead>) -> Result<String, HeadError> {
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(if input.limit() == 0 {
            HeadError::Refused("431 Request Header Fields Too Large")
        } else {
            HeadError::Connection(io::ErrorKind::UnexpectedEof.into())
        });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<RequestHead>, HeadError> {
        RequestHead::read(&mut text.as_bytes())
    }

    fn refusal(text: &str) -> &'static str {
        match read(text) {
            Err(HeadError::Refused(reason)) => reason,
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    #[test]
    fn the_fields_that_matter_are_read() {
        let head = read(
            "POST /a?delay_ms=7500&no100=1 HTTP/1.1\r\nHost: x\r\nEXPECT: 100-Continue\r\n\
             content-length:2048\r\nUser-Agent:  curl \r\n\
             traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\nbody",
        );
        let head = head.unwrap().unwrap();
        assert_eq!(
            (head.method.as_str(), head.path(), head.body_length),
            ("POST", "/a", 2048)
        );
        assert_eq!(
            (head.query("delay_ms"), head.query("no100")),
            (Some("7500"), Some("1"))
        );
        assert_eq!((head.query("delay"), head.close), (None, false));
        assert!(head.expects_continue);
        assert_eq!(head.user_agent.as_deref(), Some("curl"));
        assert_eq!(head.caller.unwrap().span_id.to_string(), "00f067aa0ba902b7");
    }

    #[test]
    fn a_target_may_be_absolute() {
        let head = read("GET http://host:80/a/b?c=d HTTP/1.1\r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!((head.path(), head.query("c")), ("/a/b", Some("d")));
        let head = read("GET http://host HTTP/1.1\r\n\r\n").unwrap().unwrap();
        assert_eq!(head.path(), "/");
    }

    #[test]
    fn the_end_between_requests_is_no_error_and_the_end_within_one_is() {
        assert!(matches!(read(""), Ok(None)));
        assert!(matches!(
            read("GET / HTTP/1.1\r\nHo"),
            Err(HeadError::Connection(_))
        ));
    }

    #[test]
    fn what_it_does_not_speak_is_refused_with_a_reason() {
        assert_eq!(refusal("GET /\r\n\r\n"), "400 Bad Request");
        assert_eq!(
            refusal("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
            "400 Bad Request"
        );
        assert_eq!(
            refusal("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
            "400 Bad Request"
        );
        assert_eq!(
            refusal("GET / HTTP/2\r\n\r\n"),
            "505 HTTP Version Not Supported"
        );
        assert_eq!(
            refusal("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "501 Not Implemented"
        );
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(20_000));
        assert_eq!(refusal(&long), "431 Request Header Fields Too Large");
    }
}
