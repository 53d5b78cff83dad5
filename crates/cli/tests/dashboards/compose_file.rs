//! docker-compose.yml and the manifests in docs/deployment.md: what they promise of safety.

use serde_json::Value;

use super::expressions::text;
use super::shipped::{self, must_pass, tool};

fn yaml(document: &str) -> Value {
    serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}: {document}"))
}

/// Services by name, with everything that was referred to filled in.
fn services() -> Vec<(String, Value)> {
    let compose = yaml(&shipped::read("docker-compose.yml"));
    compose["services"]
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .collect()
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(text).collect()
}

#[test]
fn docker_compose_accepts_the_file() {
    let file = shipped::path("docker-compose.yml");
    must_pass(
        tool("docker-compose", "docker-compose")
            .arg("-f")
            .arg(file)
            .args(["config", "-q"]),
    );
}

#[test]
fn images_are_pinned_and_services_watched() {
    for (name, service) in services() {
        let image = text(&service["image"]);
        let (_, tag) = image.rsplit_once(':').unwrap();
        assert!(
            tag.starts_with(|c: char| c.is_ascii_digit() || c == 'v'),
            "{name}: {image}"
        );
        assert!(
            tag.matches('.').count() == 2,
            "{name}: {image} is not one version"
        );
        assert!(
            !strings(&service["healthcheck"]["test"]).is_empty(),
            "{name} is not watched"
        );
    }
    let dockerfile = shipped::read("Dockerfile");
    let froms: Vec<&str> = dockerfile
        .lines()
        .filter_map(|l| l.strip_prefix("FROM "))
        .collect();
    let outside = froms.iter().filter(|from| from.contains(':'));
    assert_eq!(outside.clone().count(), 2, "{froms:?}");
    assert!(
        outside.clone().all(|from| from.matches('.').count() >= 1),
        "{froms:?}"
    );
    assert!(dockerfile.contains("\nUSER 10001:10001\n"));
    assert!(dockerfile.contains("\nHEALTHCHECK "));
}

#[test]
fn services_reach_no_further_than_they_need() {
    for (name, service) in services() {
        for port in strings(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name} publishes {port}");
        }
        assert_eq!(strings(&service["cap_drop"]), ["ALL"], "{name}");
        assert!(
            service["privileged"].is_null() && service["user"].is_null(),
            "{name}"
        );
        if name == "proxy" {
            assert_eq!(strings(&service["cap_add"]), ["NET_RAW", "SYS_PTRACE"]);
            let of_file = text(&service["build"]["args"]["CAPABILITIES"]);
            assert_eq!(
                of_file, "cap_net_raw,cap_sys_ptrace",
                "the file and the container differ"
            );
        } else {
            assert!(service["cap_add"].is_null(), "{name}");
            assert_eq!(
                strings(&service["security_opt"]),
                ["no-new-privileges:true"],
                "{name}"
            );
        }
    }
}

#[test]
fn mounted_files_are_there_and_cannot_be_changed() {
    let mut mounted = 0;
    for (name, service) in services() {
        for volume in strings(&service["volumes"])
            .iter()
            .filter(|v| v.starts_with('.'))
        {
            let (source, _) = volume.split_once(':').unwrap();
            assert!(
                shipped::path(source).exists(),
                "{name}: there is no {source}"
            );
            assert!(volume.ends_with(":ro"), "{name}: {volume}");
            mounted += 1;
        }
    }
    assert_eq!(mounted, 4);
}

/// The collector takes the spans of all the others and hands them to the trace backend, so what
/// is sent to it must be a service, and what it sends to as well.
#[test]
fn spans_go_to_services_that_are_there() {
    let services = services();
    let is_there = |url: &str| {
        let host = url.strip_prefix("http://").unwrap();
        let (host, port) = host.rsplit_once(':').unwrap();
        port == "4317" && services.iter().any(|(name, _)| name == host)
    };
    for (name, service) in &services {
        let environment = &service["environment"];
        for url in [
            &environment["SKEWTAP_OTLP"],
            &environment["SKEWTAP_EXPORT_OTLP"],
        ] {
            assert!(url.is_null() || is_there(text(url)), "{name}: {url}");
        }
        let command = strings(&service["command"]).join(" ");
        let mut words = command.split_whitespace();
        if words.any(|word| word == "--otlp") {
            assert!(words.next().is_some_and(is_there), "{name}: {command}");
        }
    }
    let (_, collector) = services
        .iter()
        .find(|(name, _)| name == "collector")
        .unwrap();
    let backend = text(&collector["environment"]["SKEWTAP_EXPORT_OTLP"]);
    assert_eq!(backend, "http://jaeger:4317");
}

#[test]
fn the_variables_of_the_data_sources_are_set() {
    let sources = shipped::read("dashboards/grafana/provisioning/datasources/skewtap.yml");
    let services = services();
    let (_, grafana) = services.iter().find(|(name, _)| name == "grafana").unwrap();
    for value in sources
        .split("${")
        .skip(1)
        .filter(|rest| !rest.starts_with("__"))
    {
        let (variable, _) = value.split_once('}').unwrap();
        assert!(
            grafana["environment"][variable].is_string(),
            "{variable} is not set"
        );
    }
}

#[test]
fn all_yaml_that_is_shipped_or_shown_can_be_read() {
    let deployment = shipped::read("docs/deployment.md");
    let shown = deployment
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let documents: Vec<&str> = shown.flat_map(|block| block.split("\n---\n")).collect();
    assert!(documents.len() >= 4, "{}", documents.len());
    for document in &documents {
        assert!(yaml(document).is_object(), "{document}");
    }
    let kinds = documents
        .iter()
        .map(|document| yaml(document)["kind"].clone());
    let kinds: Vec<Value> = kinds.filter(|kind| !kind.is_null()).collect();
    assert_eq!(kinds, ["Deployment", "Service"]);
    for file in [
        "dashboards/grafana/provisioning/dashboards/skewtap.yml",
        "dashboards/grafana/provisioning/datasources/skewtap.yml",
    ] {
        assert!(yaml(&shipped::read(file)).is_object(), "{file}");
    }
}

#[test]
fn the_variants_of_the_compose_file_are_accepted() {
    let deployment = shipped::read("docs/deployment.md");
    let shown = deployment
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let variants: Vec<&str> = shown
        .filter(|block| block.contains("services:\n"))
        .collect();
    assert!(variants.len() >= 2, "{}", variants.len());
    let folder = tempfile::tempdir().unwrap();
    for variant in variants {
        let file = folder.path().join("docker-compose.yml");
        std::fs::write(&file, variant).unwrap();
        let mut check = tool("docker-compose", "docker-compose");
        must_pass(check.arg("-f").arg(&file).args(["config", "-q"]));
    }
}
