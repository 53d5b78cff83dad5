//! What proxies say they dropped before it could be sent, added up over all of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::otlp_decode::DroppedRecords;

/// Proxies told apart; what further ones say is not counted.
const MOST_PROXIES: usize = 1_000;

/// The sum over all proxies, each of which tells its own since it started.
#[derive(Debug, Default)]
pub(crate) struct ProxyDrops {
    told: Mutex<HashMap<String, u64>>,
    dropped: Counter,
}

impl ProxyDrops {
    /// Takes what a request says. Requests may come twice, and not in the order in which they
    /// were written.
    pub(crate) fn note(&self, dropped: &[DroppedRecords]) {
        if dropped.is_empty() {
            return;
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for DroppedRecords { proxy, records } in dropped {
            if told.len() >= MOST_PROXIES && !told.contains_key(proxy) {
                continue;
            }
            let before = told.entry(proxy.clone()).or_default();
            self.dropped.inc_by(records.saturating_sub(*before));
            *before = (*before).max(*records);
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "proxy_reported_dropped_records",
            "Exchanges that proxies forwarded and say they could not send a record of",
            self.dropped.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_drop_counts_once_whatever_order_requests_come_in() {
        let drops = ProxyDrops::default();
        let say = |proxy: &str, records| {
            drops.note(&[DroppedRecords {
                proxy: proxy.to_owned(),
                records,
            }]);
        };
        for (proxy, records) in [("a", 0), ("a", 5), ("b", 3), ("a", 2), ("a", 5), ("a", 7)] {
            say(proxy, records);
        }
        assert_eq!(drops.dropped.get(), 10);
    }

    #[test]
    fn proxies_beyond_the_cap_are_not_kept() {
        let drops = ProxyDrops::default();
        for n in 0..MOST_PROXIES + 5 {
            drops.note(&[DroppedRecords {
                proxy: n.to_string(),
                records: 1,
            }]);
        }
        assert_eq!(drops.dropped.get(), MOST_PROXIES as u64);
    }
}
