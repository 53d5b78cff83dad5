//! What `skewtap run` passes through, and how it ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::delaying_server::DelayingServer;
use super::finished::{code, stderr, stdout};
use super::measured_run::MeasuredRun;
use super::program::skewtap;

/// `skewtap run` with the tests' own search path.
fn run(arguments: &[&str]) -> Command {
    let mut command = skewtap();
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.arg("run").args(arguments);
    command
}

#[test]
fn input_output_and_errors_are_the_commands_own() {
    let mut child = run(&["--quiet", "--", "sh", "-c", "cat; echo trouble >&2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"in\0out\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"in\0out\n");
    assert_eq!(stderr(&output), "trouble\n");
    assert_eq!(code(&output), 0);
}

#[test]
fn a_log_filter_of_the_commands_is_not_taken_for_ones_own() {
    let output = run(&["--quiet", "--", "sh", "-c", "echo $RUST_LOG"])
        .env("RUST_LOG", "trace")
        .output()
        .unwrap();
    assert_eq!(
        (stdout(&output).as_str(), stderr(&output).as_str()),
        ("trace\n", "")
    );
}

#[test]
fn the_exit_code_is_the_commands_own() {
    for (script, expected) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        let output = run(&["--quiet", "--", "sh", "-c", script])
            .output()
            .unwrap();
        assert_eq!(code(&output), expected, "{script}: {}", stderr(&output));
    }
}

#[test]
fn what_cannot_be_run_has_the_codes_of_a_shell() {
    let output = run(&["--", "no-such-command-here"]).output().unwrap();
    assert_eq!(code(&output), 127);
    assert!(stderr(&output).contains("no-such-command-here"));
    let output = run(&["--", env!("CARGO_MANIFEST_DIR")]).output().unwrap();
    assert_eq!(code(&output), 126, "{}", stderr(&output));
}

#[test]
fn signals_reach_the_command() {
    let script = "trap 'echo USR1' USR1; trap 'echo TERM; exit 5' TERM; echo ready; \
                  while :; do sleep 0.02; done";
    let mut child = run(&["--quiet", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "ready");
    kill(pid, Signal::SIGUSR1).unwrap();
    assert_eq!(next(), "USR1");
    kill(pid, Signal::SIGTERM).unwrap();
    assert_eq!(next(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn ctrl_c_reaches_the_command_once() {
    let helper = format!(
        "{}/tests/clients/in_terminal.py",
        env!("CARGO_MANIFEST_DIR")
    );
    // A second one would come within the pause.
    let script = "n=0; trap 'n=$((n+1))' INT; echo ready; \
                  while [ $n -eq 0 ]; do sleep 0.02; done; sleep 0.3; echo caught $n; exit 6";
    let output = Command::new("python3")
        .arg(helper)
        .arg(env!("CARGO_BIN_EXE_skewtap"))
        .args(["run", "--quiet", "--", "sh", "-c", script])
        .output()
        .unwrap();
    assert!(
        stdout(&output).contains("caught 1\r\n"),
        "{}",
        stdout(&output)
    );
    assert_eq!(code(&output), 6);
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let script = "trap '' HUP; exec \"$0\" run --quiet -- sh -c 'kill -HUP $$; echo survived'";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_skewtap")])
        .output()
        .unwrap();
    assert_eq!(stdout(&output), "survived\n", "{}", stderr(&output));
}

#[test]
fn a_port_that_is_taken_stops_the_start_before_the_command_runs() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let map = format!("{port}=127.0.0.1:9");
    let output = run(&["--map", &map, "--", "echo", "ran"]).output().unwrap();
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("--map"), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_slip_in_a_cause_stops_the_start() {
    let output = run(&["--fail-on", "client_blind_slep", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("client_blind_sleep"));
}

#[test]
fn a_gate_that_measured_nothing_does_not_pass() {
    let gate = ["--quiet", "--max-unexplained", "50ms", "--"];
    let with = |command: &'static str| {
        let mut arguments = gate.to_vec();
        arguments.push(command);
        run(&arguments).output().unwrap()
    };
    let output = with("true");
    assert_eq!(code(&output), 1);
    assert!(
        stderr(&output).contains("gate failed"),
        "{}",
        stderr(&output)
    );
    // `false` failed by itself.
    assert_eq!(code(&with("false")), 1);
    let output = run(&["--fail-on", "any", "--", "sh", "-c", "exit 9"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 9);
}

#[test]
fn the_document_follows_what_the_command_wrote() {
    let server = DelayingServer::start();
    let url = server.url("/a/b?delay_ms=20&secret=1");
    let arguments = ["--quiet", "--json", "-", "--", "curl", "--silent", &url];
    let output = run(&arguments).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let printed = stdout(&output);
    let document = printed.strip_prefix("ok\n").unwrap();
    assert!(!document.contains("secret"), "{document}");
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    assert_eq!(document["version"], 1);
    assert_eq!(document["command"]["program"], "curl");
    assert_eq!(document["summary"]["requests"], 1);
    assert_eq!(document["summary"]["not_judged"], 0);
    let request = &document["requests"][0];
    assert_eq!(
        (&request["method"], &request["path"]),
        (&"GET".into(), &"/a/b".into())
    );
    assert_eq!(request["status"], 200);
    assert_eq!(document["verdicts"][0]["trace_id"], request["trace_id"]);
    // Nothing but the command's output and the document was said.
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_failed_request_is_told_with_its_outcome() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{gone}/");
    let run = MeasuredRun::new(&[], &["curl", "--silent", "--fail", &url]);
    assert_eq!(run.code(), 22, "curl's own code: {}", run.stderr());
    assert_eq!(run.only()["outcome"], "upstream-unreachable");
    assert!(
        run.stderr().contains("upstream-unreachable"),
        "{}",
        run.stderr()
    );
}

#[test]
fn no_request_is_lost_among_many() {
    let server = DelayingServer::start();
    // Two hundred requests over one connection, two hundred over one each.
    let url = server.url("/n/[1-200]");
    let script = "curl --silent \"$0\" && curl --silent --header 'Connection: close' \"$0\"";
    let run = MeasuredRun::new(&[], &["sh", "-c", script, &url]);
    assert_eq!(run.code(), 0, "{}", run.stderr());
    assert_eq!(server.served().len(), 400);
    let mut paths: Vec<_> = run
        .requests()
        .iter()
        .map(|request| request["path"].as_str().unwrap())
        .collect();
    paths.sort_unstable();
    let mut expected: Vec<_> = (1..=200)
        .flat_map(|n| [format!("/n/{n}"), format!("/n/{n}")])
        .collect();
    expected.sort_unstable();
    assert_eq!(paths, expected);
    assert_eq!(run.document["summary"]["not_judged"], 0);
}

#[test]
fn a_users_own_no_proxy_holds() {
    let server = DelayingServer::start();
    let url = server.url("/");
    let direct = MeasuredRun::new(&["--no-proxy", "127.0.0.1"], &["curl", "--silent", &url]);
    assert_eq!(
        (direct.stdout().as_str(), direct.requests().len()),
        ("ok\n", 0)
    );
    let everywhere = [("no_proxy", "localhost,127.0.0.1")];
    let measured = MeasuredRun::with_variables(&[], &["curl", "--silent", &url], &everywhere);
    assert_eq!(measured.only()["path"], "/");
    assert!(
        measured.stderr().contains("NO_PROXY has"),
        "{}",
        measured.stderr()
    );
}

#[test]
fn what_a_command_leaves_running_does_not_hold_it_up() {
    let server = DelayingServer::start();
    let url = server.url("/?delay_ms=600000");
    let script = "curl --silent --output /dev/null \"$0\" >/dev/null 2>&1 & echo $!";
    let mut child = run(&["--", "sh", "-c", script, &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let mut printed = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut printed)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(began.elapsed().as_secs() < 30);
    let left: i32 = printed.trim().parse().unwrap();
    // The proxy is gone, so the request may have ended with it.
    let _ended = kill(Pid::from_raw(left), Signal::SIGTERM);
}
