//! Ports for programs that must be told one.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that kernels give out by themselves, so that no other socket of a test takes one
/// between here and the program that it is for.
static NEXT: AtomicU16 = AtomicU16::new(20_000);

/// A port that nobody listens on, and that no other call gives.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(port < 30_000, "no free port is left");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
