//! What a client begins with, told from its first bytes, which are not taken.

use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};

use rustls::server::Acceptor;
use skewtap_capture::http2_boundary::PREFACE;
use tokio::time::timeout;

use crate::config::Config;
use crate::journal::HttpVersion;
use crate::stamped_io::Scratch;
use crate::transport::Transport;

/// The first byte of a record of TLS that has a handshake in it.
const HANDSHAKE: u8 = 22;

/// What a client begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// HTTP, or what is to be answered as HTTP that has something wrong with it.
    Http(HttpVersion),
    /// A handshake of TLS.
    Tls,
    /// Something else.
    Unknown,
}

/// Waits for a client's first bytes; `None` if it sent none for as long as it may be idle. Under
/// TLS the handshake has told already. Of a connection that was `redirected` anything may come.
pub(crate) async fn of(
    transport: &Transport,
    (config, scratch): (&Config, &Scratch),
    redirected: bool,
) -> Option<Begins> {
    if let Some(version) = transport.agreed_on() {
        return Some(Begins::Http(version));
    }
    let judge = if redirected { anything } else { http };
    let first = look(transport, scratch, |seen| {
        (!seen.is_empty()).then(|| judge(seen))
    });
    let first = timeout(config.idle_timeout, first).await.ok()?;
    let told = match first {
        Ok(Some(None)) => {
            // Seldom needed, and not to be a part of every connection's task.
            let whole = Box::pin(look(transport, scratch, judge));
            timeout(config.head_timeout, whole).await
        }
        Ok(Some(told)) => Ok(Ok(told)),
        Ok(None) | Err(_) => return Some(Begins::Http(HttpVersion::Http1)),
    };
    Some(match told {
        Ok(Ok(Some(begins))) => begins,
        Ok(Ok(None)) if redirected => Begins::Unknown,
        // HTTP/1 says what is wrong with it.
        Err(_) | Ok(Err(_) | Ok(None)) => Begins::Http(HttpVersion::Http1),
    })
}

/// The name of the server that a client asks for in its handshake, as far as it tells within the
/// time that a head may take.
pub(crate) async fn server_name(
    transport: &Transport,
    (config, scratch): (&Config, &Scratch),
) -> Option<String> {
    let mut acceptor = Acceptor::default();
    let mut taken = 0;
    let hello = look(transport, scratch, |seen| {
        let mut new = seen.get(taken..).unwrap_or_default();
        taken = seen.len();
        while !new.is_empty() {
            if !matches!(acceptor.read_tls(&mut new), Ok(1..)) {
                return Some(None);
            }
        }
        match acceptor.accept() {
            Ok(None) => None,
            Ok(Some(accepted)) => Some(accepted.client_hello().server_name().map(str::to_owned)),
            // The server may make more of it.
            Err(_) => Some(None),
        }
    });
    let told = timeout(config.head_timeout, hello).await;
    told.ok()?.ok()??
}

/// Shows `judge` what has come, again when more has, until it can tell; `None` if it cannot by
/// the end of the stream, nor by all that is looked at.
async fn look<T>(
    transport: &Transport,
    scratch: &Scratch,
    mut judge: impl FnMut(&[u8]) -> Option<T>,
) -> io::Result<Option<T>> {
    loop {
        let ended = transport.readable().await?;
        let (told, full) = poll_fn(|cx| {
            let mut space = scratch.borrow_mut();
            let room = space.len();
            let seen = ready!(transport.poll_peek(cx, &mut space))?;
            Poll::Ready(io::Result::Ok((judge(seen), seen.len() == room)))
        })
        .await?;
        if told.is_some() || ended || full {
            return Ok(told);
        }
        transport.wait_for_more();
    }
}

/// Tells the versions of HTTP apart.
fn http(seen: &[u8]) -> Option<Begins> {
    if seen.starts_with(PREFACE) {
        Some(Begins::Http(HttpVersion::Http2))
    } else if PREFACE.starts_with(seen) {
        None
    } else {
        Some(Begins::Http(HttpVersion::Http1))
    }
}

/// Tells HTTP from what else may come. A first line tells HTTP/1 by the version in it, not by a
/// method, which may be any word.
fn anything(seen: &[u8]) -> Option<Begins> {
    let begins = http(seen)?;
    if begins == Begins::Http(HttpVersion::Http2) {
        return Some(begins);
    }
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let line = seen.iter().position(|byte| !is_end(byte));
    let line = seen.get(line?..)?;
    match *line.first()? {
        HANDSHAKE if line.len() == seen.len() => Some(Begins::Tls),
        first if !is_of_a_word(first) => Some(Begins::Unknown),
        _ => {
            let line = line.get(..line.iter().position(is_end)?)?;
            let is_http = line.windows(6).any(|part| part == b" HTTP/");
            Some(if is_http { begins } else { Begins::Unknown })
        }
    }
}

/// Whether a method of HTTP may have the byte in it: RFC 9110, section 5.6.2.
fn is_of_a_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP_1: Option<Begins> = Some(Begins::Http(HttpVersion::Http1));
    const HTTP_2: Option<Begins> = Some(Begins::Http(HttpVersion::Http2));
    const UNKNOWN: Option<Begins> = Some(Begins::Unknown);

    #[test]
    fn protocols_are_told_apart_by_their_first_bytes() {
        for (seen, begins) in [
            (&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], HTTP_1),
            (b"GET http://a/ HTTP/1.0\n", HTTP_1),
            (b"\r\n\r\nGET / HTTP/1.1\r\n", HTTP_1),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", HTTP_2),
            (b"PRI * HTTP/2.0\r\n\r\nXX", HTTP_1),
            (b"\x16", Some(Begins::Tls)),
            (b"\x16\x03\x01\x02", Some(Begins::Tls)),
            (b"SSH-2.0-OpenSSH_9.6p1 Debian-3\r\n", UNKNOWN),
            (b"*1\r\n$4\r\nPING\r\n", UNKNOWN),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", UNKNOWN),
            (b"GET /\r\n", UNKNOWN),
            (b"\x80", UNKNOWN),
            (b"", None),
            (b"PRI * HTTP", None),
            (b"GET / HT", None),
            (b"\r\n", None),
        ] {
            assert_eq!(anything(seen), begins, "{}", seen.escape_ascii());
        }
    }

    #[test]
    fn what_was_not_redirected_is_all_taken_for_http() {
        for seen in [&b"\x16\x03\x01"[..], b"SSH-2.0-x\r\n", b"\0", b"GE"] {
            assert_eq!(http(seen), HTTP_1, "{}", seen.escape_ascii());
        }
        assert_eq!(http(b"PRI"), None);
    }
}
