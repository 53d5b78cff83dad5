//! A server that does what the path of a request says, which may be to fail.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const PIECE: &[u8] = &[b'x'; 16_384];

/// What the paths ask for, with how likely it is in percent.
pub(super) const WISHES: [(&str, u64); 9] = [
    ("small", 60),
    ("chunked", 10),
    ("large", 6),
    ("slow", 4),
    ("until-close", 4),
    ("close", 4),
    ("break-in-head", 4),
    ("break-in-body", 4),
    ("nonsense", 4),
];

/// Serves until the runtime ends.
pub(super) async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            socket.set_nodelay(true).unwrap();
            tokio::spawn(async move {
                // Who breaks off is meant to.
                let (Ok(()) | Err(_)) = serve(socket).await;
            });
        }
    });
    address
}

async fn serve(mut socket: TcpStream) -> io::Result<()> {
    let mut waiting = Vec::new();
    while let Some((path, body)) = request(&mut socket, &mut waiting).await? {
        let mut left = body.saturating_sub(waiting.len());
        waiting.drain(..body.min(waiting.len()));
        let mut space = [0; 4096];
        while left > 0 {
            let room = left.min(space.len());
            let count = socket.read(space.get_mut(..room).unwrap()).await?;
            if count == 0 {
                return Ok(());
            }
            left -= count;
        }
        if !answer(&mut socket, &path).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads a head: the path, and the length of the body. What came after it stays in `waiting`.
async fn request(
    socket: &mut TcpStream,
    waiting: &mut Vec<u8>,
) -> io::Result<Option<(String, usize)>> {
    loop {
        if let Some(at) = waiting.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = waiting.drain(..at + 4).collect();
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let length = head.split("Content-Length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            return Ok(Some((path, length.unwrap_or(0))));
        }
        if socket.read_buf(waiting).await? == 0 {
            return Ok(None);
        }
    }
}

/// Answers; whether the connection goes on.
async fn answer(socket: &mut TcpStream, path: &str) -> io::Result<bool> {
    match path.trim_start_matches('/') {
        "chunked" => {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let body = "5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n";
            socket.write_all(format!("{head}{body}").as_bytes()).await?;
        }
        "large" => {
            let length = PIECE.len() * 40;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            socket.write_all(head.as_bytes()).await?;
            for _ in 0..40 {
                socket.write_all(PIECE).await?;
            }
        }
        "until-close" => {
            socket
                .write_all(b"HTTP/1.1 200 OK\r\n\r\nall of it")
                .await?;
            return Ok(false);
        }
        "close" => return Ok(false),
        "break-in-head" => {
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-").await?;
            socket.set_zero_linger()?;
            return Ok(false);
        }
        "break-in-body" => {
            let part = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
            socket.write_all(part).await?;
            socket.set_zero_linger()?;
            return Ok(false);
        }
        "nonsense" => {
            socket
                .write_all(b"no protocol that anybody speaks\r\n\r\n")
                .await?;
            return Ok(false);
        }
        wish => {
            if wish == "slow" {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
            socket.write_all(ok).await?;
        }
    }
    Ok(true)
}
