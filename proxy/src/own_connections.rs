//! The connections to servers that a transparent proxy has open.
//!
//! Rules that redirect what leaves a machine redirect the proxy's own connections too, unless they
//! leave those out. Then each would come back as a client, and be sent on again, without end.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// All of them, by their own ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnConnections(Arc<Mutex<HashSet<SocketAddr>>>);

/// One of them, for as long as it is open.
#[derive(Debug)]
pub(crate) struct OwnConnection {
    all: OwnConnections,
    end: SocketAddr,
}

impl OwnConnections {
    /// Notes a connection whose end here is `end`.
    pub(crate) fn note(&self, end: SocketAddr) -> OwnConnection {
        let end = canonical(end);
        self.with(|ends| ends.insert(end));
        OwnConnection {
            all: self.clone(),
            end,
        }
    }

    /// Whether a client at `end` is this proxy itself.
    pub(crate) fn has(&self, end: SocketAddr) -> bool {
        self.with(|ends| ends.contains(&canonical(end)))
    }

    fn with<T>(&self, look: impl FnOnce(&mut HashSet<SocketAddr>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for OwnConnection {
    fn drop(&mut self) {
        self.all.with(|ends| ends.remove(&self.end));
    }
}

/// IPv4 without its IPv6 clothes.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_known_in_every_form_until_it_is_closed() {
        let all = OwnConnections::default();
        let plain = "127.0.0.1:4000".parse().unwrap();
        let mapped = "[::ffff:127.0.0.1]:4000".parse().unwrap();
        let open = all.note(mapped);
        assert!(all.has(plain) && all.has(mapped));
        assert!(!all.has("127.0.0.1:4001".parse().unwrap()));
        drop(open);
        assert!(!all.has(plain));
    }
}
