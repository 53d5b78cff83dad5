//! The collector's counters and gauges, read from its own metrics text, so that none is left out.

use std::collections::HashMap;

/// Counters with one of these in their name count something lost, refused or tried again.
const DROPS: [&str; 10] = [
    "rejected",
    "refused",
    "unreadable",
    "retries",
    "unjoinable",
    "crowded_out",
    "evicted",
    "unmatched",
    "dropped",
    "failed",
];

/// A counter or a gauge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CounterView {
    /// Its name and labels, as scraped.
    pub(super) name: String,
    /// What it counts.
    pub(super) help: String,
    /// Its value, as scraped.
    pub(super) value: String,
    /// Whether it is above nought.
    pub(super) counted: bool,
}

/// Those that count something lost, and the others. Histograms are left to whoever scrapes.
pub(super) fn of(metrics: &str) -> (Vec<CounterView>, Vec<CounterView>) {
    let mut help: HashMap<&str, &str> = HashMap::new();
    let mut plain: HashMap<&str, bool> = HashMap::new();
    let mut all = Vec::new();
    for line in metrics.lines() {
        if let Some((name, text)) = described(line, "# HELP ") {
            help.insert(name, text);
        } else if let Some((name, kind)) = described(line, "# TYPE ") {
            plain.insert(name, matches!(kind, "counter" | "gauge"));
        } else if let Some((name, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))
        {
            let (bare, labels) = name.split_at(name.find('{').unwrap_or(name.len()));
            let family = bare.strip_suffix("_total").unwrap_or(bare);
            if plain.get(family) == Some(&true) {
                all.push(CounterView {
                    name: format!("{family}{labels}"),
                    help: help.get(family).copied().unwrap_or_default().to_owned(),
                    value: value.to_owned(),
                    counted: value.parse::<f64>().is_ok_and(|value| value > 0.0),
                });
            }
        }
    }
    all.into_iter()
        .partition(|counter| DROPS.iter().any(|word| counter.name.contains(word)))
}

fn described<'a>(line: &'a str, what: &str) -> Option<(&'a str, &'a str)> {
    line.strip_prefix(what)?.split_once(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use crate::receive::Refusal;

    #[test]
    fn every_counter_is_shown_with_its_value() {
        let metrics = Metrics::new(1);
        metrics.count_refusal(Refusal::TooLarge);
        metrics.count_refusal(Refusal::TooLarge);
        metrics.pipeline.open.set(7);
        let (drops, others) = of(&metrics.text().unwrap());
        let find = |from: &[CounterView], name: &str| {
            let found = from.iter().find(|counter| counter.name == name);
            found
                .unwrap_or_else(|| panic!("no {name} in {from:?}"))
                .clone()
        };
        let refused = find(
            &drops,
            "skewtap_otlp_requests_refused{reason=\"too_large\"}",
        );
        assert_eq!((refused.value.as_str(), refused.counted), ("2", true));
        assert!(refused.help.contains("answered with an error"));
        assert!(!find(&drops, "skewtap_evicted_client_spans").counted);
        assert_eq!(find(&others, "skewtap_open_client_spans").value, "7");
    }

    #[test]
    fn histograms_are_left_out() {
        let text = "# HELP gap Gap.\n# TYPE gap histogram\ngap_sum 1.0\ngap_bucket{le=\"1\"} 1\n";
        assert_eq!(of(text), (vec![], vec![]));
    }
}
