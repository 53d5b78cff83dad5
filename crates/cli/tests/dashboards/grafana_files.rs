//! The structure of the dashboards and of their provisioning: what Grafana and a reader rely on.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::expressions::{dashboards, text};
use super::shipped;

/// The data source that a reader picks in each dashboard.
fn picked() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    let all = dashboard["panels"].as_array().unwrap().iter();
    all.filter(|panel| panel["type"] != "row")
}

#[test]
fn dashboards_keep_their_addresses() {
    let uids: Vec<String> = dashboards()
        .iter()
        .map(|(_, board)| text(&board["uid"]).to_owned())
        .collect();
    assert_eq!(uids, ["skewtap-edge", "skewtap-health", "skewtap-overview"]);
    for (file, board) in dashboards() {
        // Grafana 12.0 and later read 41 as it is; 11 reads it and ignores what it does not know.
        assert_eq!(board["schemaVersion"], 41, "{file}");
        assert!(
            board.get("id").is_none(),
            "{file}: an id is of one Grafana only"
        );
        assert!(!text(&board["description"]).is_empty(), "{file}");
        assert!(
            board["tags"]
                .as_array()
                .unwrap()
                .contains(&json!("skewtap")),
            "{file}"
        );
    }
}

#[test]
fn links_between_dashboards_lead_somewhere() {
    let all: Vec<String> = dashboards()
        .iter()
        .map(|(_, board)| board.to_string())
        .collect();
    let rules = shipped::files("dashboards/prometheus/rules", ".yml");
    let mut texts: Vec<String> = rules.iter().map(|file| shipped::read(file)).collect();
    texts.extend(all);
    let mut links = 0;
    for link in texts.iter().flat_map(|text| text.split("/d/").skip(1)) {
        let end = link
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .unwrap();
        let uid = &link[..end];
        assert!(
            ["skewtap-edge", "skewtap-health", "skewtap-overview"].contains(&uid),
            "{uid}"
        );
        links += 1;
    }
    assert!(links > 10, "{links}");
}

#[test]
fn nothing_names_a_host_or_a_data_source_of_its_own() {
    for (file, board) in dashboards() {
        assert!(
            !shipped::read(&file).contains("://"),
            "{file} has an address"
        );
        let variables = board["templating"]["list"].as_array().unwrap();
        let source = &variables[0];
        assert_eq!(
            (&source["name"], &source["type"]),
            (&json!("datasource"), &json!("datasource"))
        );
        assert_eq!(source["query"], "prometheus", "{file}");
        for variable in &variables[1..] {
            assert_eq!(
                variable["datasource"],
                picked(),
                "{file}: {}",
                variable["name"]
            );
        }
        for panel in panels(&board) {
            assert_eq!(panel["datasource"], picked(), "{file}: {}", panel["title"]);
            for target in panel["targets"].as_array().unwrap() {
                assert_eq!(target["datasource"], picked(), "{file}: {}", panel["title"]);
            }
        }
    }
}

#[test]
fn every_panel_says_what_it_shows() {
    for (file, board) in dashboards() {
        let mut ids = HashSet::new();
        for panel in board["panels"].as_array().unwrap() {
            assert!(
                ids.insert(panel["id"].as_u64().unwrap()),
                "{file}: {} twice",
                panel["id"]
            );
            assert!(!text(&panel["title"]).is_empty(), "{file}: {}", panel["id"]);
        }
        for panel in panels(&board) {
            let place = format!("{file}: {}", panel["title"]);
            assert!(text(&panel["description"]).ends_with('.'), "{place}");
            assert!(
                !text(&panel["fieldConfig"]["defaults"]["unit"]).is_empty(),
                "{place}"
            );
            let mut targets = HashSet::new();
            for target in panel["targets"].as_array().unwrap() {
                assert!(targets.insert(text(&target["refId"]).to_owned()), "{place}");
            }
            assert!(!targets.is_empty(), "{place}");
        }
    }
}

#[test]
fn panels_stand_side_by_side() {
    for (file, board) in dashboards() {
        let mut taken = HashSet::new();
        for panel in board["panels"].as_array().unwrap() {
            let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            assert!(
                side("x") + side("w") <= 24,
                "{file}: {} is too wide",
                panel["title"]
            );
            for x in side("x")..side("x") + side("w") {
                for y in side("y")..side("y") + side("h") {
                    assert!(
                        taken.insert((x, y)),
                        "{file}: {} covers another",
                        panel["title"]
                    );
                }
            }
        }
    }
}

#[test]
fn times_are_seconds_and_lead_to_their_exemplars() {
    let mut with_exemplars = 0;
    for (file, board) in dashboards() {
        for panel in panels(&board) {
            let place = format!("{file}: {}", panel["title"]);
            for target in panel["targets"].as_array().unwrap() {
                let query = text(&target["expr"]);
                if !query.contains("_seconds_bucket") || query.contains("le=\"0.05\"") {
                    continue;
                }
                assert_eq!(panel["fieldConfig"]["defaults"]["unit"], "s", "{place}");
                if panel["type"] != "stat" {
                    assert_eq!(target["exemplar"], true, "{place}");
                    with_exemplars += 1;
                }
            }
        }
    }
    assert!(with_exemplars > 10, "{with_exemplars}");
}

#[test]
fn exemplars_lead_to_the_trace_and_to_the_exchange() {
    let sources = shipped::read("dashboards/grafana/provisioning/datasources/skewtap.yml");
    for wanted in [
        "- name: trace_id\n          datasourceUid: skewtap-jaeger\n",
        // Two dollars are one to Grafana, which would look for a variable of its environment.
        "${SKEWTAP_URL}/exchanges/$${__data.fields.trace_id}/$${__data.fields.span_id}\n",
        "uid: skewtap-prometheus\n",
        "uid: skewtap-jaeger\n",
    ] {
        assert!(sources.contains(wanted), "{wanted} is not in {sources}");
    }
}
