//! An HTTP/1.1 request over a plain blocking socket, with nothing between the program and the
//! kernel but its wait loop.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant, SystemTime};

use super::stamped_read;
use super::wait_loop::{WaitLog, wait_readable};
use crate::args::Behaviour;

/// Longest response taken, in bytes.
const MAX_RESPONSE: usize = 64 << 10;
const NO_STAMP: &str = "the kernel does not say when the response arrived";

/// A GET request.
pub(super) struct PlainRequest {
    /// Whom to ask.
    pub(super) server: SocketAddr,
    /// Path and query.
    pub(super) target: String,
    /// W3C trace context.
    pub(super) traceparent: String,
    /// Who asks.
    pub(super) user_agent: &'static str,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Response {
    /// Its status.
    pub(super) status: u16,
    /// Its body.
    pub(super) body: Vec<u8>,
    /// How it was waited for.
    pub(super) wait: WaitLog,
    /// When the request had been handed to the kernel.
    pub(super) sent: Instant,
    /// How long the end of the response lay in the kernel before it was read.
    pub(super) unread: Duration,
}

impl PlainRequest {
    /// Connects, sends, and waits for the whole response as `behaviour` does.
    ///
    /// # Errors
    /// The connection failed or ended early, the deadline passed, the response is none that a
    /// `Content-Length` bounds, or the kernel did not say when it arrived.
    pub(super) fn send(&self, behaviour: Behaviour, deadline: Instant) -> io::Result<Response> {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut socket = TcpStream::connect_timeout(&self.server, left)?;
        socket.set_nodelay(true)?;
        stamped_read::ask_for_stamps(&socket)?;
        socket.write_all(self.head().as_bytes())?;
        let sent = Instant::now();

        let mut wait = WaitLog::default();
        let mut received = Vec::new();
        loop {
            wait_readable(behaviour, &socket, &mut wait, deadline)?;
            let mut chunk = [0; 4096];
            let read = stamped_read::read(&socket, &mut chunk)?;
            let now = SystemTime::now();
            if read.bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            received.extend_from_slice(chunk.get(..read.bytes).unwrap_or_default());
            if let Some((status, body)) = whole_response(&received)? {
                let arrived = read.arrived.ok_or_else(|| io::Error::other(NO_STAMP))?;
                let unread = now.duration_since(arrived).map_err(io::Error::other)?;
                return Ok(Response {
                    status,
                    body,
                    wait,
                    sent,
                    unread,
                });
            }
            if received.len() > MAX_RESPONSE {
                return Err(malformed("a response above 64 KiB"));
            }
        }
    }

    fn head(&self) -> String {
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: application/json\r\n\
             traceparent: {}\r\n\r\n",
            self.target, self.server, self.user_agent, self.traceparent
        )
    }
}

/// Status and body, once all of it is there.
fn whole_response(received: &[u8]) -> io::Result<Option<(u16, Vec<u8>)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(received).map_err(malformed)? else {
        return Ok(None);
    };
    let length: usize = response
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("content-length"))
        .and_then(|header| str::from_utf8(header.value).ok()?.trim().parse().ok())
        .ok_or_else(|| malformed("a response without Content-Length"))?;
    let status = response
        .code
        .ok_or_else(|| malformed("a response without a status"))?;
    let end = head.saturating_add(length);
    Ok(received.get(head..end).map(|body| (status, body.to_vec())))
}

fn malformed(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_whole_with_its_last_byte() {
        let all = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
        for cut in 0..all.len() {
            assert!(whole_response(&all[..cut]).unwrap().is_none(), "{cut}");
        }
        let (status, body) = whole_response(all).unwrap().unwrap();
        assert_eq!((status, body.as_slice()), (200, b"abc".as_slice()));
    }

    #[test]
    fn what_is_no_bounded_response_is_refused() {
        for bad in ["hello\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
            let error = whole_response(bad.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bad}");
        }
    }
}
