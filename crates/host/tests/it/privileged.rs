//! What only root can set up. Run with `cargo test -p skewtap-host -- --ignored needs_root`.

use std::net::TcpListener;
use std::process::Command;

use skewtap_core::endpoint::QueueOutcome;
use skewtap_host::{Watcher, WatcherSettings};

use crate::endpoint_process::{Endpoint, Watched, send_message};

/// Queues of another user's sockets can be looked into; the process cannot, and it is said so.
#[test]
#[ignore = "needs root: becomes another user"]
fn needs_root_to_become_another_user() {
    let mut watcher = Endpoint::start("watch-as-nobody", "");
    assert_eq!(watcher.said("outcome"), ["Read", "false"]);
    let missing = watcher.said("missing").join(" ");
    assert!(missing.contains("may not"), "{missing}");
}

/// A network namespace of its own, linked to this one; taken down when dropped.
struct Namespace(String);

impl Namespace {
    fn new() -> Self {
        let name = format!("skewtap{}", std::process::id());
        let namespace = Self(name.clone());
        run(&["netns", "add", &name]);
        run(&[
            "link",
            "add",
            "skewtap-a",
            "type",
            "veth",
            "peer",
            "name",
            "skewtap-b",
            "netns",
            &name,
        ]);
        run(&["addr", "add", "198.18.0.1/30", "dev", "skewtap-a"]);
        run(&["link", "set", "skewtap-a", "up"]);
        run(&[
            "-n",
            &name,
            "addr",
            "add",
            "198.18.0.2/30",
            "dev",
            "skewtap-b",
        ]);
        run(&["-n", &name, "link", "set", "skewtap-b", "up"]);
        namespace
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run(&["netns", "delete", &self.0]);
    }
}

fn run(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}

#[test]
#[ignore = "needs root: makes a network namespace"]
fn needs_root_to_put_a_client_into_another_network_namespace() {
    let namespace = Namespace::new();
    let listener = TcpListener::bind("198.18.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut program = Command::new("ip");
    program
        .args(["netns", "exec", &namespace.0])
        .arg(std::env::current_exe().unwrap());
    let _client = Endpoint::spawn(program, "sleep", &address);
    let (mut stream, _) = listener.accept().unwrap();
    let watcher = Watcher::start(WatcherSettings::default());
    let result = Watched::by(&watcher, send_message(&mut stream)).result();
    assert_eq!(result.queue.outcome, QueueOutcome::NotHere);
    assert_eq!(result.picked_up, None);
}
