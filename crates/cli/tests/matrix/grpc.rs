//! grpcio on both sides of the proxy, in each mode.

use std::process::Command;

use super::bodies::Bodies;
use super::certificates::Certificates;
use super::clients::{Client, Way};
use super::modes::{assert_right, count, go, tunnels};
use super::processes::{Process, python, script};
use super::proxy::Proxy;

/// Starts a server, under TLS if there are certificates: its port.
fn serve(certificates: Option<&Certificates>) -> (Process, u16) {
    let mut command = Command::new(python());
    command.arg(script("servers/grpc_server.py"));
    command.args(certificates.map(Certificates::certificate));
    command.args(certificates.map(Certificates::key));
    let (server, line) = Process::start(&mut command);
    (server, line.trim().parse().unwrap())
}

/// Has the client make its calls; gives their number.
fn call(way: &Way, url: &str) -> usize {
    let bodies = Bodies::new();
    let messages = bodies.messages(url);
    let mut wrong = Vec::new();
    go(Client::Grpcio, way, &messages, &mut wrong);
    assert_right(&wrong);
    // One for each message, and one for all of them.
    messages.len() + 1
}

#[test]
fn grpc_reverse() {
    let (_server, port) = serve(None);
    let upstream = format!("http://127.0.0.1:{port}");
    let proxy = Proxy::start(&["--upstream", &upstream, "--upstream-http", "2"]);
    let calls = call(&Way::default(), &proxy.url());
    assert_eq!(count(&proxy, "complete", &[]) as usize, calls);
}

#[test]
fn grpc_tunnel() {
    for certificates in [None, Some(Certificates::new())] {
        let (_server, port) = serve(certificates.as_ref());
        let proxy = Proxy::start(&[]);
        let way = Way {
            proxy: Some(proxy.url()),
            roots: certificates.as_ref().map(Certificates::roots),
        };
        let scheme = if certificates.is_some() {
            "https"
        } else {
            "http"
        };
        call(&way, &format!("{scheme}://localhost:{port}"));
        assert_eq!(tunnels(&proxy, 1), 1);
    }
}

#[test]
fn grpc_intercepted() {
    let certificates = Certificates::new();
    let (_server, port) = serve(Some(&certificates));
    let (proxy, roots) = Proxy::intercepting(&certificates.roots());
    let way = Way {
        proxy: Some(proxy.url()),
        roots: Some(roots),
    };
    let calls = call(&way, &format!("https://localhost:{port}"));
    assert_eq!(count(&proxy, "complete", &["upgraded"]) as usize, calls);
}
