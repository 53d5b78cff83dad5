//! A network of a test's own, in which connections are redirected to the proxy.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use socket2::{Domain, Socket, Type};

use crate::harness::{PATIENCE, config, nobody};
use crate::not_run::not_run;

/// Addresses of servers, which only this network has.
pub(crate) const SERVERS: [&str; 2] = ["192.0.2.1:9000", "[2001:db8::1]:9000"];

/// What clients mark their packets with, so that theirs are redirected and the proxy's are not.
const MARK: u32 = 7;

/// Runs `test` in a thread with a network of its own, or puts it down as not run.
pub(crate) fn in_own_network(name: &str, test: impl FnOnce() + Send + 'static) {
    let name = name.to_owned();
    let thread = thread::spawn(move || {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            return not_run(&name, "needs root, for a network namespace");
        }
        for arguments in [
            "link set lo up",
            "address add 192.0.2.1/32 dev lo",
            "address add 2001:db8::1/128 dev lo nodad",
        ] {
            run(Command::new("ip").args(arguments.split(' ')), "");
        }
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a program that must succeed, in the network of the calling thread.
fn run(command: &mut Command, input: &str) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success(), "{command:?} {input}");
}

/// Redirects what goes to the servers to the proxy's ports for IPv4 and IPv6: what bears the mark,
/// or all of it.
pub(crate) fn redirect(marked: bool, [four, six]: [u16; 2]) {
    let which = if marked {
        format!("meta mark {MARK} ")
    } else {
        String::new()
    };
    let rules = format!(
        "table inet test {{
            chain output {{
                type nat hook output priority -100;
                {which}ip daddr 192.0.2.1 tcp dport 9000 redirect to :{four}
                {which}ip6 daddr 2001:db8::1 tcp dport 9000 redirect to :{six}
            }}
        }}"
    );
    run(Command::new("nft").args(["--file", "-"]), &rules);
}

pub(crate) fn transparent(listen: &[&str]) -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        listen: listen
            .iter()
            .map(|address| address.parse().unwrap())
            .collect(),
        upstream: None,
        transparent: true,
        forward: false,
        ..config(nobody())
    }
}

/// A client's connection to a server's address.
pub(crate) fn connect_to(server: &str) -> TcpStream {
    let server: SocketAddr = server.parse().unwrap();
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None).unwrap();
    socket.set_mark(MARK).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}
