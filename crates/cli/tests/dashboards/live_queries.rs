//! Every query of every panel and every rule, asked of a real Prometheus that scrapes the real
//! system while it finds planted gaps.

use super::deadline::await_some;
use super::expressions::{self, series_in, text};
use super::prometheus::{Peers, Prometheus};
use super::speed_up;
use super::traffic::Traffic;

/// Series of which nothing is exposed because the fault that they count was not planted; each
/// appears with its first fault.
const NOT_PLANTED: [&str; 1] = ["skewtap_proxy_records_dropped_total"];

/// Alerts whose fault was planted. All others must find nothing.
const MUST_FIND: [&str; 3] = [
    "SkewtapKnownDefectSeen",
    "SkewtapSpansContradict",
    "SkewtapSpansRefused",
];

const HEALTHY_MS: [u32; 4] = [20, 40, 150, 300];
/// A client that sleeps every other second lies asleep when these are over.
const BLIND_MS: [u32; 2] = [1250, 1500];

#[test]
fn every_query_finds_what_a_running_system_exposes() {
    let traffic = Traffic::start();
    let peers = Peers {
        collector: traffic.collector.address("http"),
        proxy: traffic.proxy.address("admin"),
        alertmanager: None,
    };
    let prometheus = Prometheus::start(&peers, speed_up::more_often);
    // Twice, with a look in between: a rate needs two values that differ.
    for round in 1..=2 {
        traffic.send_what_is_wrong();
        traffic.send("healthy", &HEALTHY_MS);
        traffic.send("blind-sleep", &BLIND_MS);
        await_scraped(&prometheus, round);
    }
    let judged = judged_rules(&prometheus);

    let mut wrong = Vec::new();
    for expression in expressions::of_panels() {
        let finds = finds(&prometheus, &expression.query);
        let may_be_empty = names_only(&expression.query, &NOT_PLANTED);
        if !finds && !may_be_empty {
            wrong.push(format!(
                "{}: {}: no data",
                expression.place, expression.query
            ));
        }
    }
    for (expression, label) in expressions::of_variables() {
        if prometheus
            .label_values(&label, &expression.query)
            .is_empty()
        {
            wrong.push(format!(
                "{}: {}: no values",
                expression.place, expression.query
            ));
        }
    }
    for (name, query, must_find) in &judged {
        if finds(&prometheus, query) != *must_find {
            wrong.push(format!("{name}: {query}: data: {}", !must_find));
        }
    }
    wrong.extend(missing_series(&prometheus, &judged));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Waits until Prometheus has all verdicts of the first `rounds`, and has evaluated its rules since.
fn await_scraped(prometheus: &Prometheus, rounds: u32) {
    let exchanges = f64::from(rounds) * (HEALTHY_MS.len() + BLIND_MS.len()) as f64;
    let expected = [
        (
            "sum(skewtap_unexplained_seconds_count{server_service=\"demo-origin\"})",
            exchanges,
        ),
        (
            "sum(skewtap_findings_total)",
            f64::from(rounds) * BLIND_MS.len() as f64,
        ),
        ("sum(skewtap_negative_gaps_total)", f64::from(rounds)),
        ("sum(skewtap_proxy_records_shipped_total)", exchanges),
    ];
    for (query, value) in expected {
        await_some(query, || {
            prometheus.value(query).filter(|found| *found >= value)
        });
    }
    await_evaluated(prometheus);
}

/// Waits until every group of rules has been evaluated from the start once more. The first
/// evaluation that ends may have begun before what was scraped last.
fn await_evaluated(prometheus: &Prometheus) {
    for _ in 0..2 {
        let before = prometheus.last_evaluations();
        await_some("an evaluation of all rules", || {
            let now = prometheus.last_evaluations();
            let all = before.iter().zip(&now).all(|(then, now)| then != now);
            all.then_some(())
        });
    }
}

/// Name and query of each rule, and whether it must find something.
fn judged_rules(prometheus: &Prometheus) -> Vec<(String, String, bool)> {
    let rules = prometheus.rules();
    let judged = rules.iter().map(|rule| {
        assert_eq!(rule["health"], "ok", "{rule:#}");
        let name = text(&rule["name"]).to_owned();
        let must_find = rule["type"] == "recording" || MUST_FIND.contains(&&*name);
        (name, text(&rule["query"]).to_owned(), must_find)
    });
    judged.collect()
}

/// Whether a query yields a number.
fn finds(prometheus: &Prometheus, query: &str) -> bool {
    prometheus
        .query(query)
        .iter()
        .any(|(_, value)| value.is_finite())
}

/// The series named in any query that do not exist, though nothing excuses it. An expression that
/// rightly finds nothing is not told apart from a misspelt one otherwise.
fn missing_series(prometheus: &Prometheus, rules: &[(String, String, bool)]) -> Vec<String> {
    let mut names: Vec<String> = expressions::of_panels()
        .iter()
        .flat_map(|panel| series_in(&panel.query))
        .collect();
    names.extend(rules.iter().flat_map(|(_, query, _)| series_in(query)));
    names.sort();
    names.dedup();
    let exists = |name: &str| {
        !prometheus
            .query(&format!("{{__name__=\"{name}\"}}"))
            .is_empty()
    };
    let wrong = names.into_iter().filter(|name| {
        let excused = NOT_PLANTED.contains(&&**name);
        exists(name) == excused
    });
    wrong
        .map(|name| format!("{name}: neither expected nor excused"))
        .collect()
}

fn names_any(query: &str, names: &[&str]) -> bool {
    series_in(query).iter().any(|name| names.contains(&&**name))
}

fn names_only(query: &str, names: &[&str]) -> bool {
    let named = series_in(query);
    !named.is_empty() && named.iter().all(|name| names.contains(&&**name))
}

#[test]
fn every_list_above_is_about_something() {
    let queries: Vec<String> = expressions::of_panels()
        .into_iter()
        .map(|e| e.query)
        .collect();
    for name in &NOT_PLANTED {
        assert!(
            queries.iter().any(|query| names_any(query, &[name])),
            "{name} is in no panel"
        );
    }
    let rules = super::rule_files::alert_names();
    for name in MUST_FIND {
        assert!(rules.contains(&name.to_owned()), "there is no alert {name}");
    }
    assert_eq!(series_in("a{x=\"skewtap_b\"} / cause:c:d"), ["cause:c:d"]);
}
