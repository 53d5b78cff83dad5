//! What the shipped files ask Prometheus.

use serde_json::Value;

use super::shipped;

/// A query and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) place: String,
    pub(super) query: String,
}

/// The dashboards, parsed, by path.
pub(super) fn dashboards() -> Vec<(String, Value)> {
    let files = shipped::files("dashboards/grafana/dashboards", ".json");
    let parsed = files.into_iter().map(|file| {
        let json = serde_json::from_str(&shipped::read(&file));
        (
            file.clone(),
            json.unwrap_or_else(|error| panic!("{file}: {error}")),
        )
    });
    parsed.collect()
}

/// The queries of all panels, with Grafana's variables filled in as Grafana does it for
/// "everything in the last five minutes".
pub(super) fn of_panels() -> Vec<Expression> {
    let mut found = Vec::new();
    for (file, dashboard) in dashboards() {
        let own = variables(&dashboard);
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let place = format!(
                    "{file}: {}: {}",
                    text(&panel["title"]),
                    text(&target["refId"])
                );
                found.push(Expression {
                    place,
                    query: filled_in(text(&target["expr"]), &own),
                });
            }
        }
    }
    found
}

/// The lists of values that the variables of all dashboards offer: series and label.
pub(super) fn of_variables() -> Vec<(Expression, String)> {
    let mut found = Vec::new();
    for (file, dashboard) in dashboards() {
        let own = variables(&dashboard);
        for variable in dashboard["templating"]["list"].as_array().unwrap() {
            if variable["type"] != "query" {
                continue;
            }
            let query = text(&variable["query"]["query"]);
            let inner = query
                .strip_prefix("label_values(")
                .and_then(|q| q.strip_suffix(')'));
            let (series, label) = inner.and_then(|inner| inner.rsplit_once(", ")).unwrap();
            let place = format!("{file}: variable {}", text(&variable["name"]));
            let query = filled_in(series, &own);
            found.push((Expression { place, query }, label.to_owned()));
        }
    }
    found
}

/// The series that an expression names: ours, and those that Prometheus makes of our rules.
pub(super) fn series_in(query: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let outside_strings = query.split('"').step_by(2);
    let words = outside_strings.flat_map(|part| part.split(|c| !is_name(c)));
    let ours = ["skewtap_", "edge:", "cause:"];
    let mut names: Vec<String> = words
        .filter(|word| ours.iter().any(|start| word.starts_with(start)))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

fn variables(dashboard: &Value) -> Vec<String> {
    let list = dashboard["templating"]["list"].as_array().unwrap();
    list.iter()
        .map(|variable| text(&variable["name"]).to_owned())
        .collect()
}

fn filled_in(query: &str, variables: &[String]) -> String {
    let mut query = query
        .replace("$__rate_interval", "5m")
        .replace("$__range", "5m");
    for name in variables {
        query = query.replace(&format!("${name}"), ".*");
    }
    assert!(!query.contains('$'), "a variable that nobody sets: {query}");
    query
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
