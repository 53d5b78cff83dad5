//! Starts the program.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

/// The program, away from whatever variables the tests run under.
pub(super) fn skewtap() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skewtap"));
    command.env_clear();
    command
}

/// A part that runs until this value is dropped.
pub(super) struct Running {
    pub(super) child: Child,
    start_line: String,
}

impl Running {
    /// Starts it and reads its start line.
    pub(super) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// Starts it with `variables` set.
    pub(super) fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut program = skewtap();
        program.args(arguments).envs(variables.iter().copied());
        Self::start_program(program)
    }

    /// Starts the part that `program` has the arguments of.
    pub(super) fn start_program(mut program: Command) -> Self {
        let mut child = program
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
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already, or to be ended after a failed assertion.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}
