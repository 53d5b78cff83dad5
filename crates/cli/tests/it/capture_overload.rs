//! More packets than the capture can take: they are counted, and no exchange rests on what is missing.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::not_run::not_run;
use super::otlp_sink::{OtlpSink, text};
use super::proxy_process::{GET, OK, PATIENCE, ProxyProcess, first_line, read_head, records};

/// Connections of some twenty packets that pass the proxy by while it stands still; its capture has
/// room for some thirty thousand packets.
const CONNECTIONS: usize = 3_000;

/// How a byte stream begins that goes nowhere.
const FLOODED: &[u8] = b"FLOOD";

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_nanos()).unwrap()
}

/// A server that says when it has a request and answers when it may, with the times before and
/// after; and that swallows floods.
fn server(asked: mpsc::Sender<()>, go: mpsc::Receiver<mpsc::Sender<(i64, i64)>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let go = Arc::new(Mutex::new(go));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (asked, go) = (asked.clone(), Arc::clone(&go));
            thread::spawn(move || {
                let mut begin = [0; FLOODED.len()];
                stream.peek(&mut begin).unwrap();
                if begin == FLOODED {
                    std::io::copy(&mut stream, &mut std::io::sink()).unwrap();
                    return;
                }
                read_head(&mut stream);
                asked.send(()).unwrap();
                let answered = go.lock().unwrap().recv().unwrap();
                let before = now_ns();
                stream.write_all(OK).unwrap();
                answered.send((before, now_ns())).unwrap();
            });
        }
    });
    address
}

fn flood(server: SocketAddr) {
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(FLOODED).unwrap();
        // On a young connection each write is a packet, and so is what acknowledges it.
        for _ in 0..10 {
            stream.write_all(b"x").unwrap();
        }
    }
}

/// A stamp of a record: its bounds.
fn stamp(span: &Span, key: &str) -> Option<(i64, i64)> {
    let found = span
        .attributes
        .iter()
        .find(|attribute| attribute.key == key)?;
    let Value::ArrayValue(bounds) = found.value.clone()?.value? else {
        return None;
    };
    let bound = |at: usize| match bounds.values.get(at)?.value {
        Some(Value::IntValue(ns)) => Some(ns),
        _ => None,
    };
    Some((bound(0)?, bound(1)?))
}

#[test]
fn packets_lost_to_the_capture_are_told_and_nothing_rests_on_them() {
    let sink = OtlpSink::start();
    let (asked, was_asked) = mpsc::channel();
    let (may_go, go) = mpsc::channel();
    let server = server(asked, go);
    let proxy = ProxyProcess::start(server, &sink, 1_024, &["--admin", "127.0.0.1:0"]);
    let exchange = |in_between: &dyn Fn()| {
        let mut client = proxy.connect();
        client.write_all(GET).unwrap();
        was_asked.recv_timeout(PATIENCE).unwrap();
        in_between();
        let (answered, times) = mpsc::channel();
        may_go.send(answered).unwrap();
        let times = times.recv_timeout(PATIENCE).unwrap();
        // The answer lies there before the proxy may go on.
        thread::sleep(Duration::from_millis(200));
        let resumed = now_ns();
        proxy.signal(Signal::SIGCONT);
        assert_eq!(first_line(&mut client), "HTTP/1.1 200 OK");
        (times, resumed)
    };
    exchange(&|| {});
    let first = records(&sink, 1).remove(0);
    let sources = text(&first.attributes, "skewtap.sources").unwrap();
    if !sources.contains("\"capture\":\"used\"") {
        not_run("needs CAP_NET_RAW");
        return;
    }
    let ((before, after), resumed) = exchange(&|| {
        proxy.signal(Signal::SIGSTOP);
        flood(server);
    });
    let second = records(&sink, 2).remove(1);
    let sources = text(&second.attributes, "skewtap.sources").unwrap();
    assert!(lost(&proxy) > 0, "nothing was lost: {sources}");
    // A capture that was not given time enough by then says that instead.
    let told = [
        "packets may have been lost",
        "the capture had not come to the end",
    ];
    assert!(
        told.iter().any(|words| sources.contains(words)),
        "{sources}"
    );

    // The answer came when the server gave it, and lay there in the proxy's own time.
    let soon = after + 100_000_000;
    for source in ["kernel", "packet"] {
        if let Some(came) = stamp(
            &second,
            &format!("skewtap.stamp.up.response.first.{source}"),
        ) {
            assert!(
                before <= came.1 && came.0 <= soon,
                "{source}: {came:?}, {before} to {soon}"
            );
        }
    }
    let left = stamp(&second, "skewtap.stamp.down.response.first.write-bracket").unwrap();
    assert!(left.1 >= resumed && soon < resumed, "{left:?}, {resumed}");
}

/// Packets lost to the capture, as the proxy counts them.
fn lost(proxy: &ProxyProcess) -> u64 {
    let mut stream = TcpStream::connect(proxy.admin.unwrap()).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("skewtap_proxy_capture_drops_total "));
    count.unwrap().parse().unwrap()
}
