//! Who does not read holds up who writes, with the proxy between them as without it.

use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use socket2::SockRef;

use crate::in_turns::{Turns, in_turns};
use crate::wire::head;

/// A writer that could not write for so long is held up.
const HELD_UP: Duration = Duration::from_millis(250);

/// Most bytes that the proxy may add to what lies between writer and reader: some 300 KiB of its
/// own, and the buffers of its sockets, which have hardly grown by then. Without a bound on what a
/// socket takes unsent, it would be 4.5 MiB.
const ADDED: usize = 3 * 1024 * 1024;

/// Writes until it is held up: how much.
fn write_until_held_up(stream: &mut TcpStream) -> usize {
    stream.set_write_timeout(Some(HELD_UP)).unwrap();
    // What the writer's own kernel keeps is not what is measured.
    SockRef::from(&*stream)
        .set_send_buffer_size(16_384)
        .unwrap();
    let piece = [b'x'; 4_096];
    let mut written = 0;
    loop {
        match stream.write(&piece) {
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return written,
            Err(error) => panic!("after {written} bytes: {error}"),
        }
        assert!(written < 1_000_000_000, "nothing holds it up");
    }
}

fn assert_bounded(written: &Turns<usize>) {
    let most = |found: &[usize]| found.iter().copied().max().unwrap();
    let (straight, through) = (most(&written.straight), most(&written.through));
    assert!(through <= straight + ADDED, "{written:?}");
}

#[test]
fn a_client_that_does_not_read_holds_up_the_server() {
    let (told, held_up) = mpsc::channel();
    let (_, server) = in_turns(
        move |mut stream| {
            head(&mut stream);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
                .unwrap();
            let written = write_until_held_up(&mut stream);
            told.send(()).unwrap();
            written
        },
        |mut client| {
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            head(&mut client);
            held_up.recv().unwrap();
        },
    );
    assert_bounded(&server);
}

#[test]
fn a_server_that_does_not_read_holds_up_the_client() {
    let (told, held_up) = mpsc::channel();
    let held_up = Mutex::new(held_up);
    let (client, _) = in_turns(
        move |mut stream| {
            head(&mut stream);
            held_up.lock().unwrap().recv().unwrap();
        },
        |mut client| {
            client
                .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
                .unwrap();
            let written = write_until_held_up(&mut client);
            told.send(()).unwrap();
            written
        },
    );
    assert_bounded(&client);
}
