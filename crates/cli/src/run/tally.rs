//! How many exchanges there were, by the proxies' own counters.

/// The sum of some proxies' counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Exchanges that ended.
    pub(super) exchanges: u64,
    /// Records that the collector took.
    pub(super) shipped: u64,
    /// Records that it never will.
    pub(super) dropped: u64,
    /// Client connections open now.
    pub(super) open_connections: u64,
}

impl Tally {
    /// Adds what one proxy shows at `/metrics`.
    pub(super) fn add(&mut self, metrics: &str) {
        for line in metrics.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse::<u64>() else {
                continue;
            };
            let family = name.split_once('{').map_or(name, |(family, _)| family);
            let counter = match family {
                "skewtap_proxy_exchanges_total" => &mut self.exchanges,
                "skewtap_proxy_records_shipped_total" => &mut self.shipped,
                "skewtap_proxy_records_dropped_total" => &mut self.dropped,
                "skewtap_proxy_open_connections" => &mut self.open_connections,
                _ => continue,
            };
            *counter = counter.saturating_add(value);
        }
    }

    /// Whether every exchange that ended has been shipped or given up.
    pub(super) const fn is_shipped(&self) -> bool {
        self.shipped.saturating_add(self.dropped) >= self.exchanges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_all_proxies_and_labels_are_added_up() {
        let metrics = "# TYPE skewtap_proxy_exchanges counter\n\
            skewtap_proxy_exchanges_total{outcome=\"complete\"} 3\n\
            skewtap_proxy_exchanges_total{outcome=\"refused\"} 1\n\
            skewtap_proxy_records_shipped_total 3\n\
            skewtap_proxy_open_connections 2\n\
            skewtap_proxy_watching_cpu_seconds_total 0.5\n# EOF\n";
        let mut tally = Tally::default();
        tally.add(metrics);
        let expected = Tally {
            exchanges: 4,
            shipped: 3,
            dropped: 0,
            open_connections: 2,
        };
        assert_eq!(tally, expected);
        assert!(!tally.is_shipped());
        tally.add("skewtap_proxy_records_dropped_total{reason=\"stopped\"} 1\n");
        assert!(tally.is_shipped());
    }
}
