//! Every client with every server, in each mode of the proxy.

use std::path::Path;
use std::process::Command;

use super::bodies::{Bodies, Transfer};
use super::certificates::Certificates;
use super::clients::{Client, Way};
use super::processes::{Process, python, script};
use super::proxy::Proxy;
use super::servers::Servers;

/// Makes the transfers of one row; puts down what went wrong.
fn go(client: Client, way: &Way, all: &[Transfer], wrong: &mut Vec<String>) {
    match client.transfer(way, all) {
        Err(error) => wrong.push(format!("{client:?}: {error}")),
        Ok(found) => {
            assert_eq!(found.len(), all.len(), "{client:?} left some out");
            let faults = all.iter().zip(&found);
            let faults = faults.filter_map(|(transfer, found)| transfer.fault(found));
            wrong.extend(faults.map(|fault| format!("{client:?}: {fault}")));
        }
    }
}

/// Has every client that knows proxies meet every server; gives the number of transfers.
fn all_through(
    proxy: &Proxy,
    bodies: &Bodies,
    (servers, origin, roots): (&Servers, &str, Option<&Path>),
    wrong: &mut Vec<String>,
) -> usize {
    let way = Way {
        proxy: Some(proxy.url()),
        roots: roots.map(Path::to_owned),
    };
    let mut count = 0;
    for client in Client::HTTP
        .into_iter()
        .filter(|client| client.knows_proxies())
    {
        let mut all = Vec::new();
        for (server, port) in &servers.ports {
            let base = format!("{origin}:{port}");
            all.extend(bodies.transfers(&base, &format!("{client:?}-{server}")));
        }
        go(client, &way, &all, wrong);
        count += all.len();
    }
    count
}

/// How many exchanges had this outcome; there must be none with another but those `allowed`.
#[track_caller]
fn count(proxy: &Proxy, outcome: &str, allowed: &[&str]) -> u32 {
    let outcomes = proxy.outcomes();
    let known = |name: &str| name == outcome || allowed.contains(&name);
    assert!(outcomes.iter().all(|(name, _)| known(name)), "{outcomes:?}");
    let found = outcomes.iter().find(|(name, _)| name == outcome);
    found.map_or(0, |(_, count)| *count)
}

#[track_caller]
fn assert_right(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn reverse() {
    let bodies = Bodies::new();
    let servers = Servers::start(&bodies, None);
    let way = Way::default();
    let mut wrong = Vec::new();
    for (server, port) in &servers.ports {
        let upstream = format!("http://127.0.0.1:{port}");
        let proxy = Proxy::start(&["--upstream", &upstream]);
        let mut transfers = 0;
        for client in Client::HTTP {
            let all = bodies.transfers(&proxy.url(), &format!("{client:?}-{server}"));
            go(client, &way, &all, &mut wrong);
            transfers += all.len();
        }
        assert_right(&wrong);
        assert_eq!(
            count(&proxy, "complete", &[]) as usize,
            transfers,
            "{server}"
        );
    }
    let upstream = format!("http://127.0.0.1:{}", servers.port("aiohttp"));
    let proxy = Proxy::start(&["--upstream", &upstream]);
    let messages = bodies.messages(&format!("{}/echo", proxy.url().replace("http", "ws")));
    go(Client::WebSockets, &way, &messages, &mut wrong);
    assert_right(&wrong);
    assert_eq!(count(&proxy, "upgraded", &[]), 1);
}

#[test]
fn forward() {
    let bodies = Bodies::new();
    let servers = Servers::start(&bodies, None);
    let proxy = Proxy::start(&[]);
    let mut wrong = Vec::new();
    let origin = (&servers, "http://127.0.0.1", None);
    let transfers = all_through(&proxy, &bodies, origin, &mut wrong);
    assert_right(&wrong);
    assert_eq!(count(&proxy, "complete", &[]) as usize, transfers);
}

#[test]
fn tunnel() {
    let bodies = Bodies::new();
    let certificates = Certificates::new();
    let servers = Servers::start(&bodies, Some(&certificates));
    let proxy = Proxy::start(&[]);
    let roots = certificates.roots();
    let mut wrong = Vec::new();
    let origin = (&servers, "https://localhost", Some(roots.as_path()));
    all_through(&proxy, &bodies, origin, &mut wrong);
    let way = Way {
        proxy: Some(proxy.url()),
        roots: Some(roots),
    };
    let messages = bodies.messages(&format!("wss://localhost:{}/echo", servers.port("aiohttp")));
    go(Client::WebSockets, &way, &messages, &mut wrong);
    assert_right(&wrong);
    // Clients keep their tunnels, each for one server at least; and none shows what is inside. Some
    // leave theirs with a reset.
    let tunnels = count(&proxy, "upgraded", &["client-gone"]);
    assert!(tunnels >= 5, "{tunnels} tunnels");
}

#[test]
fn intercepted() {
    let bodies = Bodies::new();
    let certificates = Certificates::new();
    let servers = Servers::start(&bodies, Some(&certificates));
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca");
    let ca_dir = ca.to_str().unwrap();
    let skewtap = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skewtap"));
        let output = command.args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    skewtap(&["ca", "--ca-dir", ca_dir, "init"]);
    let own = skewtap(&["ca", "--ca-dir", ca_dir, "show", "--path"]);
    let trusted = certificates.roots();
    let trusted = trusted.to_str().unwrap();
    let proxy = Proxy::start(&[
        "--intercept",
        "localhost",
        "--ca-dir",
        ca_dir,
        "--upstream-ca",
        trusted,
    ]);
    let roots = Path::new(own.trim());
    let mut wrong = Vec::new();
    let origin = (&servers, "https://localhost", Some(roots));
    let transfers = all_through(&proxy, &bodies, origin, &mut wrong);
    let way = Way {
        proxy: Some(proxy.url()),
        roots: Some(roots.to_owned()),
    };
    let messages = bodies.messages(&format!("wss://localhost:{}/echo", servers.port("aiohttp")));
    go(Client::WebSockets, &way, &messages, &mut wrong);
    assert_right(&wrong);
    // The CONNECT of each connection, and the WebSocket, are upgrades.
    assert_eq!(count(&proxy, "complete", &["upgraded"]) as usize, transfers);
}

#[test]
fn grpc() {
    let bodies = Bodies::new();
    let mut command = Command::new(python());
    let (_server, line) = Process::start(command.arg(script("servers/grpc_server.py")));
    let upstream = format!("http://127.0.0.1:{}", line.trim());
    let proxy = Proxy::start(&["--upstream", &upstream, "--upstream-http", "2"]);
    let messages = bodies.messages(&proxy.url());
    let mut wrong = Vec::new();
    go(Client::Grpcio, &Way::default(), &messages, &mut wrong);
    assert_right(&wrong);
    // A call for each message, and one for all of them.
    let calls = count(&proxy, "complete", &[]) as usize;
    assert_eq!(calls, messages.len() + 1);
}
