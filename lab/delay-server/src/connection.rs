//! Serving one connection, request after request.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::request_head::{HeadError, RequestHead};

/// The longest wait a request can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const OK_HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/plain\r\n\r\n";
const OK_BODY: &str = "ok\n";

/// A request that has been answered with 200.
pub(crate) struct Served {
    pub(crate) head: RequestHead,
    /// When the head had been read.
    pub(crate) start: SystemTime,
    /// From then until the answer had been written.
    pub(crate) duration: Duration,
}

/// Answers requests until the peer closes, a request says to close, or one cannot be read.
/// Every one that was answered with 200 is handed to `served`.
///
/// # Errors
/// The connection's.
pub(crate) fn serve(stream: &TcpStream, mut served: impl FnMut(Served)) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    loop {
        let head = match RequestHead::read(&mut input) {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(()),
            Err(HeadError::Connection(error)) => return Err(error),
            Err(HeadError::Refused(reason)) => return refuse(stream, reason),
        };
        let (start, started) = (SystemTime::now(), Instant::now());
        answer(&head, &mut input, stream)?;
        let duration = started.elapsed();
        let close = head.close;
        served(Served {
            head,
            start,
            duration,
        });
        if close {
            return Ok(());
        }
    }
}

fn answer(
    head: &RequestHead,
    input: &mut BufReader<&TcpStream>,
    mut output: &TcpStream,
) -> io::Result<()> {
    if head.expects_continue && head.query("no100").is_none() {
        thread::sleep(wait(head, "delay100_ms"));
        output.write_all(CONTINUE)?;
    }
    let read = io::copy(&mut input.by_ref().take(head.body_length), &mut io::sink())?;
    if read < head.body_length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    thread::sleep(wait(head, "delay_ms"));
    let body = if head.method == "HEAD" { "" } else { OK_BODY };
    // One write, so that the answer has one instant of departure.
    output.write_all(format!("{OK_HEAD}{body}").as_bytes())
}

fn wait(head: &RequestHead, key: &str) -> Duration {
    let milliseconds = head
        .query(key)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    Duration::from_millis(milliseconds).min(LONGEST_WAIT)
}

fn refuse(mut stream: &TcpStream, reason: &str) -> io::Result<()> {
    let answer = format!("HTTP/1.1 {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes())
}
