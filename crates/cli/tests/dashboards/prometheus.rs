//! A real Prometheus on the shipped configuration.

use std::fs;
use std::net::SocketAddr;

use serde_json::Value;

use super::go_server::GoServer;
use super::{http, shipped};

/// A running Prometheus.
pub(super) struct Prometheus {
    server: GoServer,
    _home: tempfile::TempDir,
}

/// Whom the configuration is about, in place of the names in docker-compose.yml.
pub(super) struct Peers {
    pub(super) collector: SocketAddr,
    pub(super) proxy: SocketAddr,
    pub(super) alertmanager: Option<SocketAddr>,
}

impl Prometheus {
    /// Starts it on the shipped files, each changed by `change`.
    pub(super) fn start(peers: &Peers, change: impl Fn(&str) -> String) -> Self {
        let home = tempfile::tempdir().unwrap();
        let rules = home.path().join("rules");
        fs::create_dir(&rules).unwrap();
        for file in shipped::files("dashboards/prometheus/rules", ".yml") {
            let name = file.rsplit('/').next().unwrap();
            fs::write(rules.join(name), change(&shipped::read(&file))).unwrap();
        }
        let mut configuration = change(&shipped::read("dashboards/prometheus/prometheus.yml"));
        // Port 9 is the one where nobody answers.
        let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
        for (shipped, here) in [
            ("[collector:4390]", peers.collector),
            ("[proxy:4391]", peers.proxy),
            ("[alertmanager:9093]", peers.alertmanager.unwrap_or(nobody)),
        ] {
            assert!(
                configuration.contains(shipped),
                "no {shipped} in prometheus.yml"
            );
            configuration = configuration.replace(shipped, &format!("['{here}']"));
        }
        let file = home.path().join("prometheus.yml");
        fs::write(&file, configuration).unwrap();
        let mut command = shipped::tool("prometheus", "prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                home.path().join("data").display()
            ))
            .arg("--enable-feature=exemplar-storage");
        Self {
            server: GoServer::start(&mut command),
            _home: home,
        }
    }

    /// The samples of an instant query: labels and value.
    pub(super) fn query(&self, query: &str) -> Vec<(Value, f64)> {
        let body = format!("query={}", http::encode(query));
        let answer = self.ask("/api/v1/query", Some(&body));
        let answer = answer.unwrap_or_else(|why| panic!("{query}: {why}"));
        assert_eq!(answer["resultType"], "vector", "{query}");
        let samples = answer["result"].as_array().unwrap().iter();
        let samples = samples.map(|sample| {
            let value = sample["value"][1].as_str().unwrap().parse().unwrap();
            (sample["metric"].clone(), value)
        });
        samples.collect()
    }

    /// The value of a query of one sample; `None` while there is none.
    pub(super) fn value(&self, query: &str) -> Option<f64> {
        self.query(query).first().map(|(_, value)| *value)
    }

    /// The values that a label has in `series`.
    pub(super) fn label_values(&self, label: &str, series: &str) -> Vec<Value> {
        let target = format!(
            "/api/v1/label/{label}/values?match[]={}",
            http::encode(series)
        );
        self.ask(&target, None).unwrap().as_array().unwrap().clone()
    }

    /// Every rule it has loaded, as its API describes it.
    pub(super) fn rules(&self) -> Vec<Value> {
        let groups = self.rule_groups();
        groups
            .iter()
            .flat_map(|group| group["rules"].as_array().unwrap().clone())
            .collect()
    }

    /// When the last completed evaluation of each group of rules began, in the order of the groups.
    pub(super) fn last_evaluations(&self) -> Vec<Value> {
        let groups = self.rule_groups();
        groups
            .iter()
            .map(|group| group["lastEvaluation"].clone())
            .collect()
    }

    fn rule_groups(&self) -> Vec<Value> {
        let answer = self.ask("/api/v1/rules", None).unwrap();
        answer["groups"].as_array().unwrap().clone()
    }

    /// The data of an answer of the API, or what is wrong.
    fn ask(&self, target: &str, form: Option<&str>) -> Result<Value, String> {
        let address = self.server.address;
        let answer = match form {
            Some(form) => http::post(address, target, "application/x-www-form-urlencoded", form),
            None => http::get(address, target),
        };
        let document: Result<Value, _> = serde_json::from_str(&answer.body);
        match document {
            Ok(document) if document["status"] == "success" => Ok(document["data"].clone()),
            Ok(_) | Err(_) => Err(format!("{}: {}", answer.status, answer.body)),
        }
    }
}
