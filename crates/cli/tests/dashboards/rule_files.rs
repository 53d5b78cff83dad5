//! The rules and the example configurations, by the tools of their programs.

use super::shipped::{self, must_pass, tool};

const RULES: &str = "dashboards/prometheus/rules";
const RUNBOOKS: &str = "docs/runbooks.md";

#[test]
fn promtool_accepts_the_configuration_and_its_rules() {
    let configuration = shipped::path("dashboards/prometheus/prometheus.yml");
    let mut check = tool("promtool", "prometheus");
    let words = must_pass(check.args(["check", "config"]).arg(configuration));
    for file in shipped::files(RULES, ".yml") {
        assert!(
            words.contains(file.rsplit('/').next().unwrap()),
            "{file} was not read: {words}"
        );
    }
    let rules = shipped::files(RULES, ".yml");
    let rules = rules.iter().map(|file| shipped::path(file));
    must_pass(
        tool("promtool", "prometheus")
            .args(["check", "rules"])
            .args(rules),
    );
}

#[test]
fn the_rules_say_what_their_own_tests_expect() {
    let tests = shipped::files("dashboards/prometheus/tests", ".yml");
    let tests = tests.iter().map(|file| shipped::path(file));
    must_pass(
        tool("promtool", "prometheus")
            .args(["test", "rules"])
            .args(tests),
    );
    for name in alert_names() {
        let tested = shipped::files("dashboards/prometheus/tests", ".yml");
        let tested = tested
            .iter()
            .any(|file| shipped::read(file).contains(&name));
        assert!(tested, "{name} is in no test");
    }
}

#[test]
fn amtool_accepts_the_example_for_alertmanager() {
    let configuration = shipped::path("dashboards/alertmanager/alertmanager.yml");
    let mut check = tool("amtool", "prometheus-alertmanager");
    must_pass(check.arg("check-config").arg(configuration));
}

#[test]
fn every_alert_leads_to_its_own_runbook() {
    let runbooks = shipped::read(RUNBOOKS);
    let headings: Vec<&str> = runbooks
        .lines()
        .filter_map(|l| l.strip_prefix("## "))
        .collect();
    let names = alert_names();
    let anchors: Vec<String> = values("runbook_url:");
    for (name, anchor) in names.iter().zip(&anchors) {
        assert_eq!(*anchor, format!("{RUNBOOKS}#{}", name.to_lowercase()));
        assert!(headings.contains(&&**name), "{name} is not in {RUNBOOKS}");
    }
    for key in [
        "runbook_url:",
        "summary:",
        "description:",
        "severity:",
        "dashboard:",
    ] {
        assert_eq!(values(key).len(), names.len(), "an alert lacks its {key}");
    }
    assert_eq!(
        headings.iter().filter(|h| h.starts_with("Skewtap")).count(),
        names.len()
    );
}

/// The names of all alerts.
pub(super) fn alert_names() -> Vec<String> {
    values("- alert:")
}

/// What stands behind `key` in the rules, in order.
fn values(key: &str) -> Vec<String> {
    let files = shipped::files(RULES, ".yml");
    let texts = files.iter().map(|file| shipped::read(file));
    let values = texts.flat_map(|text| {
        let lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix(key));
        lines
            .map(|value| value.trim().to_owned())
            .collect::<Vec<_>>()
    });
    values.collect()
}
