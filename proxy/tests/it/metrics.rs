//! Reading what the proxy counts.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use crate::harness::connect;

/// The text of `/metrics`.
pub(crate) fn metrics(address: SocketAddr) -> String {
    let mut stream = connect(address);
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The value of the first line that begins with `name`.
#[track_caller]
pub(crate) fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
