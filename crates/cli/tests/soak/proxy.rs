//! The proxy as a process, and what the kernel and it itself say of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// A running `skewtap proxy`.
pub(super) struct Proxy {
    child: Child,
    pub(super) traffic: SocketAddr,
    admin: SocketAddr,
}

impl Proxy {
    pub(super) fn start(upstream: SocketAddr, otlp: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_skewtap"))
            .args(["proxy", "--no-capture", "--log", "error"])
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--upstream", &format!("http://{upstream}"), "--otlp", otlp])
            .env("OTEL_SDK_DISABLED", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = |name: &str| {
            let mut pairs = line.split_whitespace();
            let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            value
                .unwrap_or_else(|| panic!("no {name} in {line:?}"))
                .parse()
                .unwrap()
        };
        Self {
            traffic: address("traffic"),
            admin: address("admin"),
            child,
        }
    }

    /// Resident memory, in KiB.
    pub(super) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(super) fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(folder).unwrap().count()
    }

    /// The sum of all counters whose name and labels begin so.
    pub(super) fn counted(&self, begin: &str) -> u64 {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let lines = text.lines().filter(|line| line.starts_with(begin));
        lines
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Ended already, or to be ended now.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}
