//! Clients that ask as fast as they are answered, and sometimes break off.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::chance::Chance;
use super::origin::WISHES;

/// Most requests on one connection.
const REQUESTS: u64 = 30;

/// What a client knows of its requests, by their trace ids.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Sent, at least in part.
    pub(super) sent: HashSet<u128>,
    /// Answered with a whole response, be it the proxy's own.
    pub(super) answered: HashSet<u128>,
}

/// Where a client breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    Nowhere,
    InHead,
    InBody,
    Waiting,
    InResponse,
}

/// Asks until `end`.
pub(super) async fn ask(proxy: SocketAddr, number: u64, end: Instant) -> Asked {
    let mut chance = Chance::new(number);
    let mut asked = Asked::default();
    while Instant::now() < end {
        let Ok(mut socket) = TcpStream::connect(proxy).await else {
            continue;
        };
        // Who is broken off from is meant to be.
        let (Ok(()) | Err(_)) = one_connection(&mut socket, &mut chance, &mut asked, end).await;
    }
    asked
}

async fn one_connection(
    socket: &mut TcpStream,
    chance: &mut Chance,
    asked: &mut Asked,
    end: Instant,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    for _ in 0..=chance.below(REQUESTS) {
        let id = (u128::from(chance.next()) << 64) | u128::from(chance.next()) | 1;
        let wish = wish(chance);
        let breaks = match chance.below(50) {
            0 => Breaks::InHead,
            1 => Breaks::InBody,
            2 => Breaks::Waiting,
            3 => Breaks::InResponse,
            _ => Breaks::Nowhere,
        };
        asked.sent.insert(id);
        if !one_request(socket, (id, wish, breaks)).await? {
            break_off(socket, chance)?;
            return Ok(());
        }
        asked.answered.insert(id);
        if Instant::now() > end {
            return Ok(());
        }
    }
    Ok(())
}

fn wish(chance: &mut Chance) -> &'static str {
    let mut left = chance.below(100);
    for (wish, share) in WISHES {
        if left < share {
            return wish;
        }
        left -= share;
    }
    "small"
}

/// With a reset or without.
fn break_off(socket: &TcpStream, chance: &mut Chance) -> io::Result<()> {
    if chance.below(2) == 0 {
        socket.set_zero_linger()?;
    }
    Ok(())
}

/// Whether the client went on to the end, and was answered.
async fn one_request(
    socket: &mut TcpStream,
    (id, wish, breaks): (u128, &str, Breaks),
) -> io::Result<bool> {
    let body = if id % 4 == 0 || breaks == Breaks::InBody {
        1_000
    } else {
        0
    };
    let method = if body > 0 { "POST" } else { "GET" };
    let head = format!(
        "{method} /{wish} HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\
         traceparent: 00-{id:032x}-00f067aa0ba902b7-01\r\n\r\n"
    );
    let cut = |length: usize, here: bool| if here { length / 2 } else { length };
    let sent = cut(head.len(), breaks == Breaks::InHead);
    socket
        .write_all(head.as_bytes().get(..sent).unwrap())
        .await?;
    if breaks == Breaks::InHead {
        return Ok(false);
    }
    let sent = cut(body, breaks == Breaks::InBody);
    socket.write_all(&vec![b'b'; sent]).await?;
    if matches!(breaks, Breaks::InBody | Breaks::Waiting) {
        return Ok(false);
    }
    response(socket, breaks == Breaks::InResponse).await
}

/// Reads a response, or only its head; whether all of it.
async fn response(socket: &mut TcpStream, head_only: bool) -> io::Result<bool> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(false);
        }
    };
    if head_only {
        return Ok(false);
    }
    let head = String::from_utf8_lossy(bytes.get(..head_end).unwrap()).to_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next()?.parse::<usize>().ok());
    loop {
        let whole = match length {
            Some(length) => bytes.len() >= head_end + length,
            None => bytes.ends_with(b"0\r\n\r\n"),
        };
        if whole {
            return Ok(true);
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(false);
        }
    }
}
