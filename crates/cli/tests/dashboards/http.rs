//! Just enough HTTP to ask the servers of a test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A status, and what came with it.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// `GET`.
pub(super) fn get(server: SocketAddr, target: &str) -> Answer {
    exchange(
        server,
        &format!("GET {target} HTTP/1.0\r\nHost: {server}\r\n\r\n"),
    )
}

/// `POST` of a body.
pub(super) fn post(server: SocketAddr, target: &str, content_type: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!("POST {target} HTTP/1.0\r\nHost: {server}\r\nContent-Type: {content_type}");
    exchange(
        server,
        &format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}"),
    )
}

/// Percent-encodes a value of a query or a form.
pub(super) fn encode(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    });
    encoded.collect()
}

// HTTP/1.0, so that the answer ends with the connection and comes in one piece.
fn exchange(server: SocketAddr, request: &str) -> Answer {
    let mut stream = TcpStream::connect(server).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        body: body.to_owned(),
    }
}
