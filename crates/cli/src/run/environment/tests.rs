use super::*;

/// What a command gets whose user has set `user`.
fn environment(no_proxy: Option<&str>, user: &[(&str, &str)]) -> Environment {
    let receivers = SpanReceivers {
        grpc: "http://127.83.75.84:4317".parse().unwrap(),
        http: "http://127.83.75.84:4318".parse().unwrap(),
    };
    let proxy = "127.0.0.1:8080".parse().unwrap();
    Environment::new(Some(proxy), &receivers, None, no_proxy, |name| {
        let found = user.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn value<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    let mut found = environment
        .variables
        .iter()
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value.as_str());
    let value = found.next();
    assert!(found.next().is_none(), "{name} is set twice");
    value
}

#[test]
fn everything_points_here_where_nothing_is_set() {
    let bare = environment(None, &[]);
    for name in PROXY_VARIABLES {
        assert_eq!(value(&bare, name), Some("http://127.0.0.1:8080"), "{name}");
    }
    // The collector's own address and nothing else of this machine.
    for name in NO_PROXY_VARIABLES {
        assert_eq!(value(&bare, name), Some("127.83.75.84"), "{name}");
    }
    assert_eq!(value(&bare, "NODE_USE_ENV_PROXY"), Some("1"));
    assert_eq!(
        value(&bare, "JAVA_TOOL_OPTIONS"),
        Some(
            "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=8080 -Dhttps.proxyHost=127.0.0.1 \
             -Dhttps.proxyPort=8080 -Dhttp.nonProxyHosts="
        )
    );
    assert_eq!(
        value(&bare, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        Some("http://127.83.75.84:4318")
    );
    assert_eq!(
        value(&bare, "OTEL_EXPORTER_OTLP_PROTOCOL"),
        Some("http/protobuf")
    );
    assert_eq!(value(&bare, "OTEL_TRACES_EXPORTER"), Some("otlp"));
    assert!(bare.notes.is_empty(), "{:?}", bare.notes);
}

#[test]
fn what_the_user_chose_for_opentelemetry_stays() {
    for chosen in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://mine:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://mine:4318"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ] {
        let environment = environment(None, &[chosen]);
        let touched = environment
            .variables
            .iter()
            .any(|(name, _)| name.starts_with("OTEL_"));
        assert!(!touched, "{chosen:?}");
        assert_eq!(environment.notes.len(), 1, "{:?}", environment.notes);
    }
}

#[test]
fn the_endpoint_speaks_the_protocol_that_the_user_chose() {
    let environment = environment(None, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert_eq!(
        value(&environment, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        Some("http://127.83.75.84:4317")
    );
    assert_eq!(value(&environment, "OTEL_EXPORTER_OTLP_PROTOCOL"), None);
}

#[test]
fn the_users_own_no_proxy_holds_but_for_this_machine() {
    let user = [("no_proxy", "localhost,.corp"), ("NO_PROXY", "other")];
    let inherited = environment(None, &user);
    assert_eq!(value(&inherited, "NO_PROXY"), Some(".corp,127.83.75.84"));
    assert!(
        inherited.notes[0].contains("localhost"),
        "{:?}",
        inherited.notes
    );
    let given = environment(Some("localhost"), &user);
    assert_eq!(value(&given, "no_proxy"), Some("localhost,127.83.75.84"));
    assert!(given.notes.is_empty(), "{:?}", given.notes);
    // Java reads a list of its own only.
    let java = |environment| value(environment, "JAVA_TOOL_OPTIONS").unwrap().to_owned();
    assert!(java(&inherited).ends_with("nonProxyHosts="));
    assert!(java(&given).ends_with("nonProxyHosts=localhost|*.localhost"));
}

#[test]
fn a_proxy_of_the_users_is_replaced_and_that_is_said_without_its_secrets() {
    let user = [("HTTP_PROXY", "http://me:secret@proxy.corp:3128")];
    let environment = environment(None, &user);
    assert_eq!(
        value(&environment, "HTTP_PROXY"),
        Some("http://127.0.0.1:8080")
    );
    assert!(environment.notes[0].contains("HTTP_PROXY"));
    assert!(!environment.notes[0].contains("secret"));
}

#[test]
fn options_of_java_are_added_to() {
    let environment = environment(None, &[("JAVA_TOOL_OPTIONS", "-Xmx64m")]);
    let options = value(&environment, "JAVA_TOOL_OPTIONS").unwrap();
    assert!(
        options.starts_with("-Xmx64m -Dhttp.proxyHost="),
        "{options}"
    );
}

#[test]
fn where_ports_are_mapped_the_users_own_proxies_stay() {
    let receivers = SpanReceivers {
        grpc: "http://127.83.75.84:4317".parse().unwrap(),
        http: "http://127.83.75.84:4318".parse().unwrap(),
    };
    let user = |name: &str| (name == "http_proxy").then(|| "http://proxy.corp:3128".to_owned());
    let environment = Environment::new(None, &receivers, None, None, user);
    let names: Vec<_> = environment
        .variables
        .iter()
        .map(|(name, _)| *name)
        .collect();
    assert!(
        names.iter().all(|name| name.starts_with("OTEL_")),
        "{names:?}"
    );
    assert_eq!(names.len(), 3);
    assert!(environment.notes.is_empty(), "{:?}", environment.notes);
}
