//! What the long-running parts say when they start, and when they cannot.

use std::fs;
use std::net::{SocketAddr, TcpListener};

use super::finished::{code, end, run, stderr};
use super::program::Running;

const ANY: &str = "127.0.0.1:0";

/// Flags that give the collector free ports and a store, except where `changed` has its own.
fn collector(store: &str, changed: (&str, &str)) -> Vec<String> {
    let flags = [
        ("--otlp-grpc", ANY),
        ("--otlp-http", ANY),
        ("--http", ANY),
        ("--store", store),
    ];
    let flags = flags.into_iter().flat_map(|(flag, value)| {
        let value = if flag == changed.0 { changed.1 } else { value };
        [flag.to_owned(), value.to_owned()]
    });
    [String::from("collector")]
        .into_iter()
        .chain(flags)
        .collect()
}

fn as_str(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// A port that is in use as long as the listener lives.
fn taken() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(ANY).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[test]
fn a_collector_names_a_taken_port_and_its_flag() {
    let store = tempfile::tempdir().unwrap();
    let store = store.path().to_str().unwrap();
    let (_listener, address) = taken();
    for flag in ["--otlp-grpc", "--otlp-http", "--http"] {
        let arguments = collector(store, (flag, &address.to_string()));
        let output = run(&as_str(&arguments));
        let words = stderr(&output);
        assert_eq!(code(&output), 3, "{words}");
        assert!(words.starts_with("skewtap: "), "{words}");
        assert!(words.contains(&address.port().to_string()), "{words}");
        assert!(words.contains(flag), "{words}");
    }
}

#[test]
fn a_store_that_is_a_file_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store");
    fs::write(&file, "no directory").unwrap();
    let file = file.to_str().unwrap();
    let output = run(&as_str(&collector(file, ("", ""))));
    let words = stderr(&output);
    assert_eq!(code(&output), 3, "{words}");
    assert!(words.contains(file), "{words}");
}

#[test]
fn a_collector_says_where_it_listens_and_ends_in_order() {
    let store = tempfile::tempdir().unwrap();
    let store = store.path().to_str().unwrap();
    let collector = Running::start(&as_str(&collector(store, ("", ""))));
    for name in ["otlp_grpc", "otlp_http", "http"] {
        let address = collector.address(name);
        assert_ne!(address.port(), 0);
        std::net::TcpStream::connect(address).unwrap();
    }
    assert_eq!(end(collector), Some(0));
}

#[test]
fn a_proxy_names_a_taken_port_and_its_flag() {
    let (_listener, address) = taken();
    let address_text = address.to_string();
    for (flag, other) in [("--listen", "--admin"), ("--admin", "--listen")] {
        let output = run(&["proxy", flag, &address_text, other, ANY]);
        let words = stderr(&output);
        assert_eq!(code(&output), 3, "{words}");
        assert!(words.contains(&address.port().to_string()), "{words}");
        assert!(words.contains(flag), "{words}");
    }
}

#[test]
fn a_proxy_says_where_it_listens_and_ends_in_order() {
    let arguments = ["proxy", "--listen", ANY, "--admin", ANY, "--no-capture"];
    let proxy = Running::start(&arguments);
    for name in ["traffic", "admin"] {
        std::net::TcpStream::connect(proxy.address(name)).unwrap();
    }
    assert_eq!(end(proxy), Some(0));
}

#[test]
fn a_proxy_refuses_addresses_it_cannot_use() {
    for (flag, value) in [
        ("--upstream", "ftp://127.0.0.1:9000"),
        ("--upstream", "unix:server.sock"),
        ("--upstream", "127.0.0.1:9000"),
        ("--otlp", "http://127.0.0.1:4317/v1/traces"),
        ("--workers", "0"),
        ("--listen", "everywhere"),
    ] {
        let output = run(&["proxy", flag, value]);
        assert_eq!(code(&output), 2, "{flag} {value}");
        assert!(stderr(&output).contains(flag), "{}", stderr(&output));
    }
}
