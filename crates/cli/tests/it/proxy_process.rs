//! The proxy as a process of its own, with what the kernel says of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::otlp_sink::{OtlpSink, text};

pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A request for one answer on a connection of its own.
pub(super) const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// What [`server`] answers.
pub(super) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// A running `skewtap proxy`.
pub(super) struct ProxyProcess {
    pub(super) child: Child,
    pub(super) traffic: SocketAddr,
    pub(super) admin: Option<SocketAddr>,
}

impl ProxyProcess {
    /// Starts one that may open so many files, with more `flags` if there are any.
    pub(super) fn start(
        upstream: SocketAddr,
        sink: &OtlpSink,
        files: usize,
        flags: &[&str],
    ) -> Self {
        let mut child = Command::new("prlimit")
            .arg(format!("--nofile={files}:{files}"))
            .arg(env!("CARGO_BIN_EXE_skewtap"))
            .args(["proxy", "--listen", "127.0.0.1:0"])
            .args(flags)
            .args(["--upstream", &format!("http://{upstream}")])
            .args(["--otlp", &sink.url()])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("OTEL_SDK_DISABLED", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = |name: &str| {
            let mut pairs = line.split_whitespace();
            let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
            Some(value.parse().unwrap())
        };
        Self {
            traffic: address("traffic").unwrap_or_else(|| panic!("no address in {line:?}")),
            admin: address("admin"),
            child,
        }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.traffic).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The first line of the answer to a request.
    pub(super) fn ask(&self) -> String {
        let mut stream = self.connect();
        stream.write_all(GET).unwrap();
        first_line(&mut stream)
    }

    /// Time on a processor so far.
    pub(super) fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11..=12]
            .iter()
            .map(|f| f.parse::<u64>().unwrap())
            .sum();
        Duration::from_millis(ticks * 10)
    }

    pub(super) fn open_files(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(folder).unwrap().count()
    }

    pub(super) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(id), signal).unwrap();
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        // Ended already, or to be ended after a failed assertion.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// The first line of all that comes.
pub(super) fn first_line(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// Reads a head, or what there is of it.
pub(super) fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        head.push(byte[0]);
    }
}

/// A server that answers every request after `pause`.
pub(super) fn server(pause: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                read_head(&mut stream);
                thread::sleep(pause);
                // A client that is gone has its own account of that.
                let (Ok(()) | Err(_)) = stream.write_all(OK);
            });
        }
    });
    address
}

/// The proxy's records, once there are so many.
pub(super) fn records(sink: &OtlpSink, count: usize) -> Vec<Span> {
    let began = Instant::now();
    loop {
        let spans = sink.spans_of("skewtap-proxy");
        if spans.len() >= count {
            return spans;
        }
        assert!(began.elapsed() < PATIENCE, "{} records", spans.len());
        thread::sleep(Duration::from_millis(20));
    }
}

/// How the exchanges ended, once there are so many.
pub(super) fn outcomes(sink: &OtlpSink, count: usize) -> Vec<String> {
    let spans = records(sink, count);
    let outcome = |span: &Span| text(&span.attributes, "skewtap.outcome").unwrap_or_default();
    spans.iter().map(outcome).collect()
}
