//! The shipped configuration with shorter times, so that a test need not wait as long as people do.
//!
//! Two kinds of times, each divided by sixty and at least a second:
//! - how often things are done: `scrape_interval`, `evaluation_interval`, the `interval` of a group
//!   of rules, `group_wait` and `group_interval` of Alertmanager;
//! - what things mean: the windows (`[10m]`), the `offset` and the `for` of rules.
//!
//! Nothing else changes. The names of recorded series keep their windows, `ratio_rate5m` say.

/// Times of both kinds are divided by this.
const FASTER: u64 = 60;

const HOW_OFTEN: [&str; 5] = [
    "scrape_interval:",
    "evaluation_interval:",
    "interval:",
    "group_wait:",
    "group_interval:",
];

/// Does things more often; every time keeps its meaning.
pub(super) fn more_often(configuration: &str) -> String {
    lines(configuration, |line| after_any(line, &HOW_OFTEN))
}

/// Lets rules take a minute for a second.
pub(super) fn shorter(rules: &str) -> String {
    lines(rules, |line| {
        let line = after_any(line, &["for:"]);
        within(&within(&line, "[", "]"), " offset ", ")")
    })
}

fn lines(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

/// Changes `KEY DURATION`.
fn after_any(line: &str, keys: &[&str]) -> String {
    let indent = line.len() - line.trim_start().len();
    let (space, rest) = line.split_at(indent);
    let found = keys
        .iter()
        .find_map(|key| Some((key, rest.strip_prefix(key)?)));
    match found.and_then(|(key, value)| Some((key, divided(value.trim())?))) {
        Some((key, value)) => format!("{space}{key} {value}"),
        None => line.to_owned(),
    }
}

/// Changes every duration between `open` and `close`, or the end of the line.
fn within(line: &str, open: &str, close: &str) -> String {
    let mut parts = line.split(open);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |changed, part| {
        let (inner, rest) = part.split_at(part.find(close).unwrap_or(part.len()));
        let inner = divided(inner).unwrap_or_else(|| inner.to_owned());
        format!("{changed}{open}{inner}{rest}")
    })
}

/// The duration in whole seconds after the division; `None` if it is none.
fn divided(duration: &str) -> Option<String> {
    let unit = duration.chars().last()?;
    let number: u64 = duration.strip_suffix(unit)?.parse().ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return None,
    };
    Some(format!("{}s", (number * seconds / FASTER).max(1)))
}

#[test]
fn what_is_done_is_done_more_often() {
    let text = "  scrape_interval: 15s\n  - interval: 5m\n    interval: 5m\n    for: 2m\n";
    let often = "  scrape_interval: 1s\n  - interval: 5m\n    interval: 5s\n    for: 2m\n";
    assert_eq!(more_often(text), often);
}

#[test]
fn windows_offsets_and_delays_become_short() {
    let text = "for: 2m\nrate(x[1h]) / (y offset 10m)\nratio_rate5m{a=\"b\"}[3d] offset 90s\n";
    let short = "for: 2s\nrate(x[60s]) / (y offset 10s)\nratio_rate5m{a=\"b\"}[4320s] offset 1s\n";
    assert_eq!(shorter(text), short);
}
