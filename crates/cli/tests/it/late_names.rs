//! What is said of a name that is found late or not at all, and of a first address where nobody
//! answers: on the client's side and on the proxy's.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::delaying_server::DelayingServer;
use super::free_port::free_port;
use super::measured_run::MeasuredRun;
use super::otlp_sink::{OtlpSink, text};
use super::own_names::{ADDRESSES, Answer, OwnNames, Question, in_own_network, silence};
use super::program::Running;
use super::proxy_process::{PATIENCE, records};
use super::run_stages::{assert_holds, client, told};

const SKEWTAP: &str = env!("CARGO_BIN_EXE_skewtap");

/// How long the resolver waits for an answer that does not come, less what a timer may be early.
const RESOLVER_WAITS: f64 = 0.95;

/// How long [`silent_address`]'s client waits before it tries the next address, likewise.
const CLIENT_WAITS: f64 = 0.24;

/// Of the two questions that look-ups ask at once, the one for IPv6 is lost the first time.
fn one_lost(question: &Question) -> Answer {
    if question.six && question.before == 0 {
        Answer::Silence
    } else {
        Answer::Addresses(vec![IpAddr::from([127, 0, 0, 1])])
    }
}

/// Two addresses, of which the one of IPv6 is preferred.
fn both(_: &Question) -> Answer {
    let six = ADDRESSES[0].parse().unwrap();
    Answer::Addresses(vec![six, IpAddr::from([127, 0, 0, 1])])
}

/// Where `name` stands for the server.
fn url(name: &str, server: &DelayingServer) -> String {
    format!("http://{name}:{}/work?delay_ms=100", server.address.port())
}

/// Asserts that nobody is accused: there is no evidence for a cause, and server and network have
/// what the server measured.
#[track_caller]
fn assert_none_accused(run: &MeasuredRun, waited: f64, lost: f64) {
    assert!(
        run.only()["findings"].as_array().unwrap().is_empty(),
        "{:#}",
        run.only()
    );
    assert_holds(run, "server_wait", waited);
    let (lo, _) = run.stage("server_wait");
    assert!(
        lo < waited + lost / 2.0,
        "server_wait from {lo} s with {waited} s"
    );
}

#[test]
fn a_late_look_up_by_the_proxy_is_its_own_time_needs_root() {
    in_own_network(|| {
        let (names, server) = (OwnNames::start(one_lost), DelayingServer::start());
        let url = url("late.test", &server);
        let curl = ["curl", "--silent", "--fail", &url];
        let run = MeasuredRun::with_program(names.ask_here(SKEWTAP), &[], &curl, &[]);
        assert_eq!(run.code(), 0, "{}", run.stderr());
        let took = names.took();
        assert!(took >= RESOLVER_WAITS, "planted {took} s only");
        assert_holds(&run, "request", took);
        assert_none_accused(&run, server.only().waited, took);
        let (lo, _) = run.stage("connect");
        assert!(lo < took / 2.0, "connect from {lo} s");
        let own = segment(&run, "proxy_request");
        assert!(own >= took / 2.0, "{own} s of proxy_request");
    });
}

#[test]
fn a_late_look_up_by_the_client_is_before_its_request_needs_root() {
    in_own_network(|| {
        let (names, server) = (OwnNames::start(one_lost), DelayingServer::start());
        let run = run_mapped(&names, &server, "late.test");
        let (told, took) = (told(&run)["before_send"].as_f64().unwrap(), names.took());
        assert!(told >= took && took >= RESOLVER_WAITS, "{told} s, {took} s");
        assert_holds(&run, "before_send", told);
        assert_none_accused(&run, server.only().waited, told);
        assert_eq!(run.only()["flagged"], true, "{:#}", run.only());
    });
}

#[test]
fn an_address_where_nobody_answers_is_before_the_clients_request_needs_root() {
    in_own_network(|| {
        silence(ADDRESSES[0]);
        let (names, server) = (OwnNames::start(both), DelayingServer::start());
        let run = run_mapped(&names, &server, "two.test");
        let told = told(&run)["before_send"].as_f64().unwrap();
        assert!(told >= CLIENT_WAITS, "planted {told} s only");
        assert_holds(&run, "before_send", told);
        assert_none_accused(&run, server.only().waited, told);
        assert_eq!(run.only()["flagged"], true, "{:#}", run.only());
    });
}

/// Has a client with a span connect to the proxy by `name`, as if it were the server.
fn run_mapped(names: &OwnNames, server: &DelayingServer, name: &str) -> MeasuredRun {
    let port = free_port();
    let map = format!("{port}={}", server.address);
    let url = format!("http://{name}:{port}/work?delay_ms=100");
    let command = ["python3", &client("traced_connect.py"), &url];
    let program = names.ask_here(SKEWTAP);
    let run = MeasuredRun::with_program(program, &["--map", &map], &command, &[]);
    assert_eq!(run.code(), 0, "{}", run.stderr());
    run
}

#[test]
fn a_name_that_is_not_found_ends_the_exchange_and_accuses_no_server_needs_root() {
    in_own_network(|| not_found(|_| Answer::NoSuchName, 0.0));
    in_own_network(|| not_found(|_| Answer::Silence, RESOLVER_WAITS));
}

fn not_found(answer: fn(&Question) -> Answer, planted: f64) {
    let names = OwnNames::start(answer);
    let print = ["--output", "/dev/null", "--write-out", "%{http_code}"];
    let curl = [&["curl", "--silent"], &print[..], &["http://none.test/"]].concat();
    let run = MeasuredRun::with_program(names.ask_here(SKEWTAP), &[], &curl, &[]);
    assert_eq!((run.code(), run.stdout().as_str()), (0, "502"));
    assert_eq!(run.only()["outcome"], "upstream-unreachable");
    assert!(run.only()["findings"].as_array().unwrap().is_empty());
    for stage in ["connect", "server_wait"] {
        assert_eq!(run.only()["stages"][stage], Value::Null, "{stage}");
    }
    let took = names.took();
    assert!(took >= planted, "planted {took} s only");
    let own = segment(&run, "proxy_response");
    assert!(own >= took / 2.0, "{own} s of proxy_response");
}

/// The lower bound of a row of the one verdict there is, in seconds.
fn segment(run: &MeasuredRun, name: &str) -> f64 {
    let verdict = &run.document["verdicts"][0];
    let rows = verdict["segments"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("{verdict:#}"))["lo_seconds"]
        .as_f64()
        .unwrap()
}

#[test]
fn an_address_that_refuses_leaves_the_next_to_the_proxy_needs_root() {
    in_own_network(|| {
        let (names, server) = (OwnNames::start(both), DelayingServer::start());
        let url = url("two.test", &server);
        let curl = ["curl", "--silent", "--fail", &url];
        let run = MeasuredRun::with_program(names.ask_here(SKEWTAP), &[], &curl, &[]);
        assert_eq!(run.code(), 0, "{}", run.stderr());
        assert_none_accused(&run, server.only().waited, 1.0);
    });
}

#[test]
fn an_address_where_nobody_answers_takes_all_the_time_there_is_needs_root() {
    in_own_network(|| {
        silence(ADDRESSES[0]);
        let names = OwnNames::start(both);
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let sink = OtlpSink::start();
        let mut program = names.ask_here(SKEWTAP);
        program
            .args(["proxy", "--listen", "127.0.0.1:0", "--otlp", &sink.url()])
            .args(["--connect-timeout", "1s"])
            .env("OTEL_SDK_DISABLED", "true");
        let proxy = Running::start_program(program);
        let mut client = TcpStream::connect(proxy.address("traffic")).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let port = server.local_addr().unwrap().port();
        let began = Instant::now();
        let host = format!("two.test:{port}");
        let request =
            format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(990));
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
        let record = &records(&sink, 1)[0];
        let outcome = text(&record.attributes, "skewtap.outcome");
        assert_eq!(outcome.as_deref(), Some("upstream-unreachable"));
        let mut keys = record.attributes.iter().map(|attribute| &attribute.key);
        assert!(
            !keys.any(|key| key.starts_with("skewtap.stamp.up.")),
            "{record:?}"
        );
        // Nobody came.
        assert!(server.accept().is_err());
    });
}
