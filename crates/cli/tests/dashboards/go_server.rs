//! A server of the Prometheus project: it says in its log which port it was given.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;

/// A server that runs until this value is dropped.
pub(super) struct GoServer {
    child: Child,
    pub(super) address: SocketAddr,
}

impl GoServer {
    /// Starts it on a free port of the loopback address.
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child = command
            .arg("--web.listen-address=127.0.0.1:0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = loop {
            let Some(line) = log.next() else {
                panic!("{command:?} ended: {said:#?}");
            };
            let line = line.unwrap();
            if let Some(address) = listening(&line) {
                break address;
            }
            said.push(line);
        };
        // A full pipe would stop it.
        thread::spawn(move || log.for_each(drop));
        Self { child, address }
    }
}

impl Drop for GoServer {
    fn drop(&mut self) {
        // It serves until it is ended.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

fn listening(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("msg=\"Listening on\" address=")?;
    rest.split_whitespace().next()?.parse().ok()
}
