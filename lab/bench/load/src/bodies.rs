//! Long bodies: a server that gives and takes them, and a client for each direction.

use std::io::{self, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

/// Bytes read or written at once.
const PIECE: usize = 256 * 1024;

/// Which way a body goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the client.
    Down,
    /// To the server.
    Up,
}

/// Serves until it is ended: `GET /N` gets N bytes, the body of any other request is read to its
/// end and its length told.
///
/// # Errors
/// When the port cannot be opened or nothing can be accepted.
pub(crate) fn serve(listen: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    loop {
        let (socket, _) = listener.accept()?;
        // A client that leaves is no fault of the server.
        thread::spawn(move || drop(connection(&socket)));
    }
}

/// Moves one body of `length` bytes and gives how many seconds that took.
///
/// # Errors
/// When the connection breaks or not all of the body came.
pub(crate) fn transfer(to: SocketAddr, way: Way, length: u64) -> io::Result<f64> {
    let start = Instant::now();
    let mut socket = TcpStream::connect(to)?;
    match way {
        Way::Down => write!(socket, "GET /{length} HTTP/1.1\r\nHost: {to}\r\n\r\n")?,
        Way::Up => {
            write!(
                socket,
                "PUT / HTTP/1.1\r\nHost: {to}\r\nContent-Length: {length}\r\n\r\n"
            )?;
            write_body(&socket, length)?;
        }
    }
    let mut answer = BufReader::with_capacity(PIECE, &socket);
    let head = read_head(&mut answer)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let came = read_body(&mut answer, head.length)?;
    let wanted = match way {
        Way::Down => length,
        Way::Up => length.to_string().len() as u64,
    };
    if !head.start.contains(" 200 ") || came != wanted {
        let what = format!("{} with {came} bytes", head.start.trim_end());
        return Err(io::Error::other(what));
    }
    Ok(start.elapsed().as_secs_f64())
}

fn connection(socket: &TcpStream) -> io::Result<()> {
    let mut requests = BufReader::with_capacity(PIECE, socket);
    while let Some(head) = read_head(&mut requests)? {
        let mut socket = socket;
        let came = read_body(&mut requests, head.length)?;
        let asked = head.start.strip_prefix("GET /").and_then(first_word);
        match asked.and_then(|path| path.parse().ok()) {
            Some(length) => {
                write!(
                    socket,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
                )?;
                write_body(socket, length)?;
            }
            None => {
                let came = came.to_string();
                let length = came.len();
                write!(
                    socket,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{came}"
                )?;
            }
        }
    }
    Ok(())
}

fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

struct Head {
    start: String,
    length: u64,
}

fn read_head(from: &mut impl io::BufRead) -> io::Result<Option<Head>> {
    let mut start = String::new();
    if from.read_line(&mut start)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
            None => return Ok(Some(Head { start, length })),
        }
    }
}

fn read_body(from: &mut impl Read, length: u64) -> io::Result<u64> {
    let mut space = vec![0; PIECE];
    let mut body = from.take(length);
    let mut came = 0;
    loop {
        match body.read(&mut space)? {
            0 => return Ok(came),
            piece => came += piece as u64,
        }
    }
}

fn write_body(mut to: &TcpStream, length: u64) -> io::Result<()> {
    let piece = vec![b'.'; PIECE];
    let mut left = length;
    while left > 0 {
        let now = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        to.write_all(piece.get(..now).unwrap_or_default())?;
        left -= now as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_arrive_whole_in_both_directions() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            for socket in listener.incoming() {
                connection(&socket.expect("a client")).expect("whole requests");
            }
        });
        for length in [0, 1, PIECE as u64 + 1, 3_000_000] {
            for way in [Way::Down, Way::Up] {
                assert!(transfer(address, way, length).expect("a body") > 0.0);
            }
        }
    }

    #[test]
    fn a_body_that_is_cut_short_is_noticed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a client");
            let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345";
            socket.write_all(cut).expect("a client that listens");
        });
        assert!(transfer(address, Way::Down, 10).is_err());
    }
}
