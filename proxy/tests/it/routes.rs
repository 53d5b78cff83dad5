//! Several servers by host and path.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;

use skewtap_core::exchange::Outcome;
use skewtap_proxy::config::{Route, UpstreamHttp};
use skewtap_proxy::tls::TlsSettings;

use crate::harness::{Running, config, nobody, origin};
use crate::pki::Pki;
use crate::streams;
use crate::wire::{exactly, expect, head};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that says its name, in as many connections, one request in each.
fn named(name: &'static str, connections: usize) -> SocketAddr {
    let (address, _) = origin(connections, move |mut stream| {
        head(&mut stream);
        let length = name.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}");
        stream.write_all(answer.as_bytes()).unwrap();
        // Kept open, until the proxy closes it.
        head_or_end(&mut stream);
    });
    address
}

fn head_or_end(stream: &mut std::net::TcpStream) {
    use std::io::Read as _;
    // An end, or a reset where the proxy left something unread.
    let (Ok(_) | Err(_)) = stream.read(&mut [0]);
}

fn route(host: Option<&str>, path: Option<&str>, upstream: &str) -> Route {
    Route {
        host: host.map(str::to_owned),
        path: path.map(str::to_owned),
        upstream: upstream.parse().unwrap(),
        upstream_ca: None,
        upstream_identity: None,
    }
}

fn routed(routes: Vec<Route>) -> skewtap_proxy::Config {
    skewtap_proxy::Config {
        upstream: None,
        routes,
        ..config(nobody())
    }
}

fn ask(client: &mut std::net::TcpStream, host: &str, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    let answer = head(client);
    let lower = answer.to_ascii_lowercase();
    let length = lower.split("content-length: ").nth(1).unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    answer + &String::from_utf8(exactly(client, length)).unwrap()
}

#[test]
fn one_client_is_led_by_host_and_path_and_the_path_stays() {
    let (one, api, two) = (named("one", 2), named("api", 1), named("two", 1));
    let proxy = Running::start(routed(vec![
        route(Some("one.example"), None, &format!("http://{one}")),
        route(Some("one.example"), Some("/api"), &format!("http://{api}")),
        route(Some("*.two.example"), None, &format!("http://{two}")),
    ]));
    let mut client = proxy.connect();
    let asked = [
        ("one.example", "/", "one", one),
        ("one.example:8080", "/api/v1?x=1", "api", api),
        ("a.two.example", "/api", "two", two),
        ("ONE.example", "/apis", "one", one),
    ];
    for (host, path, name, _) in asked {
        let answer = ask(&mut client, host, path);
        assert!(
            answer.ends_with(&format!("\r\n\r\n{name}")),
            "{host}{path}: {answer}"
        );
    }
    drop(client);
    let records = proxy.records(asked.len());
    for (record, (_, path, _, address)) in records.iter().zip(asked) {
        assert_eq!(record.path, path.split('?').next().unwrap());
        assert_eq!(record.up.as_ref().unwrap().peer, address.to_string());
        assert_eq!(record.outcome, Outcome::Complete);
    }
}

#[test]
fn what_fits_no_route_is_not_found_and_says_so() {
    let proxy = Running::start(routed(vec![route(
        Some("one.example"),
        Some("/api"),
        &format!("http://{}", nobody()),
    )]));
    let mut client = proxy.connect();
    for (host, path) in [("one.example", "/"), ("two.example", "/api")] {
        let answer = ask(&mut client, host, path);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert!(
            answer.contains("x-skewtap-reason: no-route\r\n"),
            "{answer}"
        );
    }
    drop(client);
    for record in proxy.records(2) {
        assert_eq!(
            (record.outcome, record.status),
            (Outcome::Refused, Some(404))
        );
        assert_eq!(record.up, None);
    }
}

#[test]
fn what_fits_no_route_goes_to_the_upstream_where_there_is_one() {
    let (routed_to, general) = (named("routed", 1), named("general", 1));
    let proxy = Running::start(skewtap_proxy::Config {
        routes: vec![route(None, Some("/api"), &format!("http://{routed_to}"))],
        ..config(general)
    });
    let mut client = proxy.connect();
    assert!(ask(&mut client, "a", "/api").ends_with("routed"));
    assert!(ask(&mut client, "a", "/").ends_with("general"));
}

#[test]
fn each_route_trusts_and_shows_what_is_its_own() {
    let (ours, theirs) = (Pki::new(), Pki::new());
    let mut servers = Vec::new();
    let mut routes = Vec::new();
    for (path, pki) in [("/ours", &ours), ("/theirs", &theirs)] {
        let tls = std::sync::Arc::new(pki.server_config("localhost"));
        let (address, server) = origin(1, move |stream| {
            let connection = rustls::ServerConnection::new(tls.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream);
            head(&mut stream);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .unwrap();
        });
        servers.push(server);
        let url = format!("https://localhost:{}", address.port());
        routes.push(route(None, Some(path), &url));
    }
    // The first by what holds for all, the second by what is its own.
    routes[1].upstream_ca = Some(theirs.roots());
    let proxy = Running::start(skewtap_proxy::Config {
        tls: TlsSettings {
            upstream_ca: Some(ours.roots()),
            ..TlsSettings::default()
        },
        ..routed(routes)
    });
    // Each server closes after its answer, and so does the proxy.
    for path in ["/ours", "/theirs"] {
        let answer = ask(&mut proxy.connect(), "a", path);
        assert!(answer.ends_with("\r\n\r\nok"), "{path}: {answer}");
    }
    for server in servers {
        server.join().unwrap();
    }
    assert_eq!(proxy.records(2).len(), 2);
}

#[test]
fn streams_of_one_connection_are_led_by_their_paths_and_over_unix_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let (over_tcp, server) = origin(1, |mut stream| {
        head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        head_or_end(&mut stream);
    });
    let over_unix = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let request = head(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        request
    });
    let proxy = Running::start(skewtap_proxy::Config {
        upstream_http: UpstreamHttp::Http1,
        ..routed(vec![
            route(
                Some("origin.test"),
                Some("/tcp"),
                &format!("http://{over_tcp}"),
            ),
            route(None, Some("/unix"), &format!("unix:{}", path.display())),
        ])
    });
    streams::run(async {
        let mut client = streams::client(proxy.addresses.traffic).await;
        for (path, status) in [("/tcp", 200), ("/unix/x", 200), ("/", 404)] {
            let request = streams::request("GET", path);
            let (answer, _) = client.send_request(request, true).unwrap();
            let answer = answer.await.unwrap();
            assert_eq!(answer.status(), status, "{path}");
            streams::whole(&mut answer.into_body()).await;
            client = client.ready().await.unwrap();
        }
    });
    let asked = over_unix.join().unwrap();
    assert!(asked.starts_with("GET /unix/x HTTP/1.1\r\n"), "{asked}");
    server.join().unwrap();
    let mut records: Vec<_> = (0..3).map(|_| proxy.record()).collect();
    records.sort_by_key(|record| record.path.clone());
    let peers: Vec<_> = records
        .iter()
        .map(|record| record.up.as_ref().map(|up| up.peer.clone()))
        .collect();
    let unix = format!("unix:{}", path.display());
    assert_eq!(peers, [None, Some(over_tcp.to_string()), Some(unix)]);
}

#[test]
fn a_route_does_not_lead_back_to_the_proxy() {
    let address = nobody();
    let proxy = Running::start(skewtap_proxy::Config {
        listen: vec![address],
        ..routed(vec![route(None, None, &format!("http://{address}"))])
    });
    let mut client = proxy.connect();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    expect(&mut client, "HTTP/1.1 508 ");
}
