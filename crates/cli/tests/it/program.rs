//! Runs the program.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};

/// The program, away from whatever variables the tests run under.
pub(super) fn skewtap() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skewtap"));
    command.env_clear();
    command
}

/// Runs it to its end.
pub(super) fn run(arguments: &[&str]) -> Output {
    skewtap().args(arguments).output().unwrap()
}

pub(super) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub(super) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(super) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A part that runs until this value is dropped.
pub(super) struct Running {
    child: Child,
    start_line: String,
}

impl Running {
    /// Starts it and reads its start line.
    pub(super) fn start(arguments: &[&str]) -> Self {
        let mut child = skewtap()
            .args(arguments)
            .arg("--end-with-stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut start_line = String::new();
        let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
        stdout.read_line(&mut start_line).unwrap();
        Self { child, start_line }
    }

    /// Where it listens under `name`.
    pub(super) fn address(&self, name: &str) -> SocketAddr {
        self.start_line
            .split_whitespace()
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.start_line))
            .parse()
            .unwrap()
    }

    /// Closes its standard input, and gives its exit code.
    pub(super) fn end(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, or to be ended after a failed assertion.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}
