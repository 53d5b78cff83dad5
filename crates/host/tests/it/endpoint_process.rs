//! Starting endpoints, sending them a message, and watching it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use skewtap_core::clock::{ProxyClock, Stamp};
use skewtap_host::{WatchHandle, WatchRequest, WatchResult, Watcher, WatcherSettings};
use skewtap_sockstamp::realtime_ns;

use crate::endpoint::MESSAGE_BYTES;

/// Variables that tell a child process what to do, and the mark of its words.
pub(crate) const ROLE: &str = "SKEWTAP_TEST_ROLE";
pub(crate) const ADDRESS: &str = "SKEWTAP_TEST_ADDRESS";
pub(crate) const MARK: &str = "skewtap: ";

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running endpoint; killed when dropped.
pub(crate) struct Endpoint {
    child: Child,
    output: BufReader<ChildStdout>,
}

/// Clock readings before and after an act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    pub(crate) before_ns: i64,
    pub(crate) after_ns: i64,
}

impl Act {
    /// Whether the act can have been within the stamp.
    pub(crate) fn overlaps(&self, stamp: &Stamp<ProxyClock>) -> bool {
        self.before_ns <= stamp.hi() && stamp.lo() <= self.after_ns
    }
}

impl Endpoint {
    pub(crate) fn start(role: &str, address: &str) -> Self {
        Self::spawn(own_program(), role, address)
    }

    pub(crate) fn spawn(mut program: Command, role: &str, address: &str) -> Self {
        let mut child = program
            .args(["endpoint::plays_the_role_it_is_given", "--exact"])
            .args(["--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(ADDRESS, address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Waits for the endpoint's word of an act.
    pub(crate) fn act(&mut self, name: &str) -> Act {
        let words = self.said(name);
        let mut numbers = words.iter().map(|word| word.parse().unwrap());
        Act {
            before_ns: numbers.next().unwrap(),
            after_ns: numbers.next().unwrap(),
        }
    }

    /// Waits for a line of the endpoint that starts with `name`; gives the words that follow.
    pub(crate) fn said(&mut self, name: &str) -> Vec<String> {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "the endpoint ended without saying {name}");
            let said = line.split_once(MARK).map(|(_, said)| said.trim_end());
            if let Some(rest) = said.and_then(|said| said.strip_prefix(name)) {
                return rest.split_whitespace().map(str::to_owned).collect();
            }
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.stdin.take());
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}

pub(crate) fn own_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// A client that has connected and sent its request, and our end of the connection.
pub(crate) fn client(role: &str) -> (Endpoint, TcpStream) {
    client_to(
        role,
        &TcpListener::bind("127.0.0.1:0").unwrap(),
        "127.0.0.1",
    )
}

/// The same, through a listener of the caller's and by an address of the caller's choice.
pub(crate) fn client_to(role: &str, listener: &TcpListener, host: &str) -> (Endpoint, TcpStream) {
    let port = listener.local_addr().unwrap().port();
    let endpoint = Endpoint::start(role, &format!("{host}:{port}"));
    let (mut stream, _) = listener.accept().unwrap();
    // Either the request or, from a client that ends its side first, the end of the stream.
    let read = stream.read(&mut [0]).unwrap();
    assert_eq!(read, usize::from(role != "half-close"));
    (endpoint, stream)
}

/// Writes a message; gives what is needed to watch it.
pub(crate) fn send_message(stream: &mut TcpStream) -> WatchRequest {
    let sent_before_ns = realtime_ns();
    stream.write_all(&[7; MESSAGE_BYTES]).unwrap();
    WatchRequest {
        peer: stream.peer_addr().unwrap(),
        local: stream.local_addr().unwrap(),
        bytes_sent: MESSAGE_BYTES.try_into().unwrap(),
        sent_before_ns,
        watch_accept: false,
        peer_had_ended: false,
    }
}

/// A watch whose result can be waited for.
pub(crate) struct Watched {
    pub(crate) handle: Option<WatchHandle>,
    result: mpsc::Receiver<WatchResult>,
}

impl Watched {
    pub(crate) fn by(watcher: &Watcher, request: WatchRequest) -> Self {
        let (tell, result) = mpsc::channel();
        let handle = watcher.watch(request, move |result| {
            // The test may have given up waiting.
            tell.send(result).unwrap_or_default();
        });
        Self {
            handle: Some(handle),
            result,
        }
    }

    pub(crate) fn result(&self) -> WatchResult {
        self.result.recv_timeout(PATIENCE).unwrap()
    }
}

/// Sends a client a message and watches it to the end.
pub(crate) fn watch_client(role: &str) -> (WatchResult, Endpoint, TcpStream) {
    let watcher = Watcher::start(WatcherSettings::default());
    let (endpoint, mut stream) = client(role);
    let watched = Watched::by(&watcher, send_message(&mut stream));
    (watched.result(), endpoint, stream)
}

/// An address nobody has.
pub(crate) fn nowhere() -> SocketAddr {
    "192.0.2.1:9".parse().unwrap()
}
