//! Every client with every server, in each mode of the proxy.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::bodies::{Bodies, Transfer};
use super::certificates::Certificates;
use super::clients::{Client, Way};
use super::proxy::Proxy;
use super::servers::Servers;

/// Makes the transfers of one row; puts down what went wrong.
pub(super) fn go(client: Client, way: &Way, all: &[Transfer], wrong: &mut Vec<String>) {
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

/// Has every client meet every server through a forward proxy; gives the number of transfers.
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
    for client in Client::HTTP {
        let all = with_every_server(client, bodies, servers, origin);
        go(client, &way, &all, wrong);
        count += all.len();
    }
    count
}

/// What a client transfers from and to all servers.
fn with_every_server(
    client: Client,
    bodies: &Bodies,
    servers: &Servers,
    origin: &str,
) -> Vec<Transfer> {
    let ports = servers.ports.iter();
    let rows = ports.map(|(server, port)| {
        let base = format!("{origin}:{port}");
        bodies.transfers(&base, &format!("{client:?}-{server}"))
    });
    rows.flatten().collect()
}

/// How many exchanges had this outcome; there must be none with another but those `allowed`.
#[track_caller]
pub(super) fn count(proxy: &Proxy, outcome: &str, allowed: &[&str]) -> u32 {
    let outcomes = proxy.outcomes();
    let known = |name: &str| name == outcome || allowed.contains(&name);
    assert!(outcomes.iter().all(|(name, _)| known(name)), "{outcomes:?}");
    let found = outcomes.iter().find(|(name, _)| name == outcome);
    found.map_or(0, |(_, count)| *count)
}

/// How many tunnels and upgrades ended, once there are so many; nothing else may have. They end some
/// time after their clients have.
#[track_caller]
pub(super) fn tunnels(proxy: &Proxy, expected: u32) -> u32 {
    let began = Instant::now();
    loop {
        let outcomes = proxy.outcomes();
        let known = |name: &str| ["upgraded", "client-gone"].contains(&name);
        assert!(outcomes.iter().all(|(name, _)| known(name)), "{outcomes:?}");
        let ended = outcomes.iter().map(|(_, count)| count).sum();
        if ended >= expected {
            return ended;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{outcomes:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
pub(super) fn assert_right(wrong: &[String]) {
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
    for client in Client::WEBSOCKET {
        go(client, &way, &messages, &mut wrong);
    }
    assert_right(&wrong);
    assert_eq!(tunnels(&proxy, 2), 2);
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

    let proxy = Proxy::start(&[]);
    let way = Way {
        proxy: Some(proxy.url()),
        roots: None,
    };
    let messages = bodies.messages(&format!("ws://127.0.0.1:{}/echo", servers.port("aiohttp")));
    for client in Client::WEBSOCKET {
        go(client, &way, &messages, &mut wrong);
    }
    assert_right(&wrong);
    assert_eq!(tunnels(&proxy, 2), 2);
}

#[test]
fn tunnel_for_plain_http() {
    let bodies = Bodies::new();
    let servers = Servers::start(&bodies, None);
    let proxy = Proxy::start(&[]);
    let way = Way {
        proxy: Some(proxy.url()),
        roots: None,
    };
    let client = Client::NodeTunnelledFetch;
    let all = with_every_server(client, &bodies, &servers, "http://127.0.0.1");
    let mut wrong = Vec::new();
    go(client, &way, &all, &mut wrong);
    assert_right(&wrong);
    // One for each server at least.
    tunnels(&proxy, servers.ports.len().try_into().unwrap());
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
    for client in Client::WEBSOCKET {
        go(client, &way, &messages, &mut wrong);
    }
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
    let (proxy, roots) = Proxy::intercepting(&certificates.roots());
    let mut wrong = Vec::new();
    let origin = (&servers, "https://localhost", Some(roots.as_path()));
    let transfers = all_through(&proxy, &bodies, origin, &mut wrong);
    let way = Way {
        proxy: Some(proxy.url()),
        roots: Some(roots),
    };
    let messages = bodies.messages(&format!("wss://localhost:{}/echo", servers.port("aiohttp")));
    for client in Client::WEBSOCKET {
        go(client, &way, &messages, &mut wrong);
    }
    assert_right(&wrong);
    // The CONNECT of each connection, and each WebSocket, are upgrades.
    assert_eq!(count(&proxy, "complete", &["upgraded"]) as usize, transfers);
}
