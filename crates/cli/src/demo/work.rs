//! What the demo's clients ask of its server, and what it answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The only route.
pub(super) const ROUTE: &str = "/work";
/// Longest delay the server agrees to.
const MAX_DELAY: Duration = Duration::from_secs(60);
const DELAY: &str = "delay_ms";

/// The server's own account of a request, its response body.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// How long the server had the request, in seconds.
    pub(super) server_seconds: f64,
}

/// The request target that asks for a delay.
pub(super) fn target(delay_ms: u64) -> String {
    format!("{ROUTE}?{DELAY}={delay_ms}")
}

/// The delay a query asks for; `None` if it asks for none or for more than a minute.
pub(super) fn delay(query: &str) -> Option<Duration> {
    let asked = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(DELAY)?.strip_prefix('='))?;
    let delay = Duration::from_millis(asked.parse().ok()?);
    (delay <= MAX_DELAY).then_some(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_asks_the_server_understands() {
        let asked = target(1250);
        let (path, query) = asked.split_once('?').unwrap();
        assert_eq!(path, ROUTE);
        assert_eq!(delay(query), Some(Duration::from_millis(1250)));
    }

    #[test]
    fn nonsense_is_no_delay() {
        for query in [
            "",
            "delay_ms",
            "delay_ms=",
            "delay_ms=-1",
            "delay_ms=60001",
            "x=1",
        ] {
            assert_eq!(delay(query), None, "{query}");
        }
    }
}
