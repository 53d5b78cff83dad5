//! A clock that is stepped while the proxy serves.
//!
//! The step is planted in what processes read of `CLOCK_REALTIME`. The kernel's own stamps would not
//! take part in it, as they do when a machine's clock is stepped, so they are off here.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::otlp_sink::{OtlpSink, integer, text};
use super::program::Running;
use super::proxy_process::{PATIENCE, records};
use super::stepped_clock::SteppedClock;

const HOUR_NS: i64 = 3_600_000_000_000;

/// Far longer than any limit of the proxy, which none of them may mind.
const STEPS: [i64; 5] = [0, 2 * HOUR_NS, 0, -HOUR_NS, 0];

/// How much of a step may be in doubt: the readings of two clocks that show it lie apart.
const DOUBT_NS: i64 = 500_000_000;

/// A server that steps the clock by what the path says before it answers.
fn stepping_server(clock: Arc<SteppedClock>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                if reader.read_until(b'\n', &mut head).unwrap() == 0 {
                    return;
                }
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap();
            clock.step_by(path.trim_start_matches('/').parse().unwrap());
            let stream = reader.get_mut();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .unwrap();
        }
    });
    address
}

/// A proxy on the clock, before a server that steps it; its records go to `otlp`.
fn start_proxy(clock: &Arc<SteppedClock>, otlp: &str) -> Running {
    let upstream = format!("http://{}", stepping_server(Arc::clone(clock)));
    let mut arguments = vec!["proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream];
    arguments.extend(["--otlp", otlp]);
    arguments.extend(["--no-stamps", "--no-capture", "--no-queues"]);
    start(clock, &arguments)
}

fn start(clock: &SteppedClock, arguments: &[&str]) -> Running {
    let variables = clock.variables();
    let [preload, step] = &variables;
    let off = ("OTEL_SDK_DISABLED", "true");
    let variables = [(preload.0, preload.1.as_str()), (step.0, &step.1), off];
    Running::start_with(arguments, &variables)
}

/// One exchange for each step, on one connection; the trace has the exchange's number.
fn exchange_all(proxy: &Running) {
    let mut client = TcpStream::connect(proxy.address("traffic")).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    for (number, step) in STEPS.iter().enumerate() {
        let (trace, span) = ids(number);
        let request =
            format!("GET /{step} HTTP/1.1\r\nHost: a\r\ntraceparent: 00-{trace}-{span}-01\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\nok") {
            client.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }
}

/// Trace and span of an exchange.
fn ids(number: usize) -> (String, String) {
    (
        format!("{:032x}", number + 1),
        format!("{:016x}", number + 1),
    )
}

/// Asserts that of a planted step nothing is said but what is certain, and that is nearly all.
#[track_caller]
fn assert_certain_of(said_ns: i64, planted_ns: i64) {
    let (said, planted) = (said_ns * planted_ns.signum(), planted_ns.abs());
    assert!(
        said <= planted && planted - said <= DOUBT_NS,
        "{said_ns} ns are said of {planted_ns} ns"
    );
}

#[test]
fn a_step_is_put_down_to_the_exchange_it_fell_into_and_stops_none() {
    let clock = Arc::new(SteppedClock::new());
    let sink = OtlpSink::start();
    let proxy = start_proxy(&clock, &sink.url());
    exchange_all(&proxy);
    let records = records(&sink, STEPS.len());
    assert_eq!(records.len(), STEPS.len());
    for record in records {
        let attribute = |key| integer(&record.attributes, key).unwrap();
        let outcome = text(&record.attributes, "skewtap.outcome");
        assert_eq!(outcome.as_deref(), Some("complete"));
        let number = usize::from(*record.trace_id.last().unwrap()) - 1;
        let said_ns = attribute("skewtap.clock_step_ns");
        if STEPS[number] == 0 {
            assert_eq!(said_ns, 0, "of exchange {number}");
        } else {
            assert_certain_of(said_ns, STEPS[number]);
        }
    }
}

#[test]
fn a_verdict_says_that_the_clock_was_stepped_and_names_no_cause() {
    let clock = Arc::new(SteppedClock::new());
    let store = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0";
    let mut arguments = vec!["collector", "--otlp-grpc", any, "--otlp-http", any];
    arguments.extend(["--http", any, "--settle", "1s"]);
    arguments.extend(["--store", store.path().to_str().unwrap()]);
    // The clock is that of one machine.
    let collector = start(&clock, &arguments);
    let otlp = format!("http://{}", collector.address("otlp_grpc"));
    let proxy = start_proxy(&clock, &otlp);
    exchange_all(&proxy);
    for (number, planted_ns) in STEPS.into_iter().enumerate() {
        let verdict = verdict(&collector, number);
        assert_eq!(verdict["outcome"], "complete", "{verdict:#}");
        assert_eq!(verdict["findings"], Value::Array(Vec::new()), "{verdict:#}");
        let notes = verdict["quality"]["notes"].as_array().unwrap();
        let said = notes.iter().filter_map(|note| {
            let words = "the proxy's clock was stepped by at least ";
            let rest = note.as_str().unwrap().strip_prefix(words)?;
            Some(rest.split(' ').next().unwrap().parse::<i64>().unwrap())
        });
        match (planted_ns, &said.collect::<Vec<_>>()[..]) {
            (0, []) => {}
            (planted_ns, [said_ns]) if planted_ns != 0 => assert_certain_of(*said_ns, planted_ns),
            (_, _) => panic!("{planted_ns} ns: {verdict:#}"),
        }
    }
}

/// The verdict on an exchange, once there is one.
fn verdict(collector: &Running, number: usize) -> Value {
    let ((trace, span), page) = (ids(number), collector.address("http"));
    let url = format!("http://{page}/api/v1/exchanges/{trace}/{span}");
    let began = Instant::now();
    loop {
        let mut curl = Command::new("curl");
        let got = curl.args(["--silent", "--fail", &url]).output().unwrap();
        if got.status.success() {
            return serde_json::from_slice(&got.stdout).unwrap();
        }
        assert!(
            began.elapsed() < PATIENCE,
            "no verdict on exchange {number}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}
