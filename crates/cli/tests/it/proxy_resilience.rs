//! The proxy as a process of its own: when it may open no more files, and when it is told to end.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::otlp_sink::{OtlpSink, text};

const PATIENCE: Duration = Duration::from_secs(20);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// Most files that the proxy may have open; it needs about twenty for itself.
const FILES: usize = 48;

/// A proxy under a limit of open files.
struct Limited {
    child: Child,
    traffic: SocketAddr,
}

impl Limited {
    fn start(upstream: SocketAddr, sink: &OtlpSink, files: usize) -> Self {
        let mut child = Command::new("prlimit")
            .arg(format!("--nofile={files}:{files}"))
            .arg(env!("CARGO_BIN_EXE_skewtap"))
            .args(["proxy", "--listen", "127.0.0.1:0", "--no-capture"])
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
        let traffic = line.trim().rsplit_once("traffic=").map(|(_, rest)| rest);
        let traffic = traffic.unwrap_or_else(|| panic!("no address in {line:?}"));
        let traffic = traffic.split(' ').next().unwrap().parse().unwrap();
        Self { child, traffic }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.traffic).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The first line of the answer to a request.
    fn ask(&self) -> String {
        let mut stream = self.connect();
        stream.write_all(GET).unwrap();
        first_line(&mut stream)
    }

    /// Time on a processor so far.
    fn cpu(&self) -> Duration {
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

    fn open_files(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(folder).unwrap().count()
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(id), signal).unwrap();
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // Ended already, or to be ended after a failed assertion.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

fn first_line(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        head.push(byte[0]);
    }
}

/// A server that answers every request after `pause`.
fn server(pause: Duration) -> SocketAddr {
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

/// Outcomes of the records that came so far.
fn outcomes(sink: &OtlpSink) -> Vec<String> {
    let spans = sink.spans_of("skewtap-proxy");
    let outcome = |span: &opentelemetry_proto::tonic::trace::v1::Span| {
        text(&span.attributes, "skewtap.outcome").unwrap_or_default()
    };
    spans.iter().map(outcome).collect()
}

fn wait_for_records(sink: &OtlpSink, count: usize) -> Vec<String> {
    let began = Instant::now();
    while outcomes(sink).len() < count {
        assert!(began.elapsed() < PATIENCE, "{:?}", outcomes(sink));
        thread::sleep(Duration::from_millis(20));
    }
    outcomes(sink)
}

#[test]
fn a_proxy_out_of_descriptors_goes_on_when_there_are_some_again() {
    let sink = OtlpSink::start();
    let proxy = Limited::start(server(Duration::ZERO), &sink, FILES);
    // The connection to the collector stands once a record has been taken.
    assert_eq!(proxy.ask(), "HTTP/1.1 200 OK");
    wait_for_records(&sink, 1);
    let mut clients: Vec<_> = (0..FILES * 2).map(|_| proxy.connect()).collect();
    let began = Instant::now();
    while proxy.open_files() < FILES {
        assert!(began.elapsed() < PATIENCE, "{} open", proxy.open_files());
    }
    // All descriptors are taken by clients: there is none left for a server.
    clients[0].write_all(GET).unwrap();
    assert_eq!(first_line(&mut clients[0]), "HTTP/1.1 502 Bad Gateway");
    let (before, began) = (proxy.cpu(), Instant::now());
    thread::sleep(Duration::from_secs(1));
    let used = proxy.cpu() - before;
    assert!(
        used < began.elapsed() / 4,
        "{used:?} of CPU time spent on waiting"
    );
    drop(clients);
    let began = Instant::now();
    while proxy.open_files() > FILES / 2 {
        assert!(began.elapsed() < PATIENCE, "{} open", proxy.open_files());
    }
    assert_eq!(proxy.ask(), "HTTP/1.1 200 OK");
    let outcomes = wait_for_records(&sink, 3);
    assert_eq!(outcomes, ["complete", "upstream-unreachable", "complete"]);
}

#[test]
fn a_proxy_told_to_end_lets_exchanges_end_and_ships_their_records() {
    let sink = OtlpSink::start();
    let pause = Duration::from_millis(500);
    let mut proxy = Limited::start(server(pause), &sink, 1_024);
    let (told, first) = mpsc::channel();
    let mut client = proxy.connect();
    client.write_all(GET).unwrap();
    thread::spawn(move || told.send(first_line(&mut client)).unwrap());
    // The request is on its way, and the answer is not.
    thread::sleep(pause / 2);
    proxy.signal(Signal::SIGTERM);
    assert_eq!(first.recv_timeout(PATIENCE).unwrap(), "HTTP/1.1 200 OK");
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    assert_eq!(outcomes(&sink), ["complete"]);
}
