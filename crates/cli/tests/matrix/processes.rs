//! Programs that run beside the tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that runs until this value is dropped.
pub(super) struct Process(Child);

impl Process {
    /// Starts it and reads the first line it prints.
    pub(super) fn start(command: &mut Command) -> (Self, String) {
        let mut process = Self::start_silent(command.stdout(Stdio::piped()));
        let mut line = String::new();
        let mut stdout = BufReader::new(process.0.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        (process, line)
    }

    /// Starts one that prints nothing.
    pub(super) fn start_silent(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ended already, or to be ended now.
        let _killed = self.0.kill();
        let _waited = self.0.wait();
    }
}

/// Runs a program with `input` to its end, which must be a good one: what it printed.
pub(super) fn run(words: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
    // No transfer of a test takes that long.
    let mut child = Command::new("timeout")
        .arg("60")
        .args(words)
        .env_remove("http_proxy")
        .env_remove("https_proxy")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that does not read it has its own account of that.
    let (Ok(()) | Err(_)) = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{}: {words}", output.status))
}

/// The folder with everything that is built.
pub(super) fn target() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_skewtap"));
    program.ancestors().nth(2).unwrap().to_owned()
}

/// The Python with the packages.
pub(super) fn python() -> String {
    let python = target().join("lab/python/bin/python");
    assert!(
        python.exists(),
        "{} is not there: run lab/python.sh",
        python.display()
    );
    python.to_str().unwrap().to_owned()
}

/// The folder with Node's packages.
pub(super) fn node_packages() -> String {
    let folder = target().join("lab/node");
    assert!(
        folder.join("node_modules").exists(),
        "{} is not there: run `make clients`",
        folder.display()
    );
    folder.to_str().unwrap().to_owned()
}

/// A script below `tests`.
pub(super) fn script(name: &str) -> String {
    format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// What a server answers to a plain GET.
pub(super) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
