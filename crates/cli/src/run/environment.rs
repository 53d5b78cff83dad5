//! The variables that send a command's requests through the proxy and its spans to the collector.
//!
//! What the user has set for OpenTelemetry stays. What the user has set for proxies cannot: the
//! proxy connects to servers itself.

use std::net::SocketAddr;

use url::Url;

use super::no_proxy::NoProxy;
use super::trust::Trust;

/// Both spellings are read: curl and Python prefer the small one, and curl ignores the large
/// `HTTP_PROXY`.
const PROXY_VARIABLES: [&str; 6] = [
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
];
const NO_PROXY_VARIABLES: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// Where spans can be sent.
#[derive(Clone, Debug)]
pub(super) struct SpanReceivers {
    /// OTLP over gRPC.
    pub(super) grpc: Url,
    /// OTLP over HTTP.
    pub(super) http: Url,
}

/// What a command is started with beyond its own environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    /// Names and values.
    pub(super) variables: Vec<(&'static str, String)>,
    /// What of the user's own settings does not hold, in words.
    pub(super) notes: Vec<String>,
}

impl Environment {
    /// Points at `proxy`, if there is one, and at `receivers`, and has clients trust what `trust`
    /// holds. `user` tells what is set already; `no_proxy` is the list that the user gave for this
    /// run.
    pub(super) fn new(
        proxy: Option<SocketAddr>,
        receivers: &SpanReceivers,
        trust: Option<&Trust>,
        no_proxy: Option<&str>,
        user: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let set = |name: &str| user(name).filter(|value| !value.trim().is_empty());
        let mut environment = Self::default();
        if let Some(proxy) = proxy {
            let direct = hosts_without_proxy(receivers, no_proxy, set);
            environment.note_what_does_not_hold(&direct, set);
            let java = trust.and_then(|trust| trust.java.clone());
            environment.point_at_proxy(proxy, &direct, (no_proxy, java), set);
        }
        if let Some(trust) = trust {
            environment
                .variables
                .extend(trust.variables.iter().cloned());
            environment.notes.extend(trust.notes.iter().cloned());
        }
        environment.point_at_collector(receivers, set);
        environment
    }

    fn note_what_does_not_hold(&mut self, direct: &NoProxy, set: impl Fn(&str) -> Option<String>) {
        if let Some(name) = PROXY_VARIABLES.into_iter().find(|name| set(name).is_some()) {
            self.notes.push(format!(
                "{name} is set, but skewtap's proxy connects to servers directly"
            ));
        }
        if !direct.left_out().is_empty() {
            self.notes.push(format!(
                "NO_PROXY has {}, which is measured all the same; --no-proxy keeps hosts out",
                direct.left_out().join(", ")
            ));
        }
    }

    fn point_at_proxy(
        &mut self,
        proxy: SocketAddr,
        direct: &NoProxy,
        (no_proxy, trust_store): (Option<&str>, Option<String>),
        set: impl Fn(&str) -> Option<String>,
    ) {
        for name in PROXY_VARIABLES {
            self.set(name, format!("http://{proxy}"));
        }
        for name in NO_PROXY_VARIABLES {
            self.set(name, direct.list());
        }
        // Node reads the variables above only when this is set, and from 22.21 and 24.5 on.
        if set("NODE_USE_ENV_PROXY").is_none() {
            self.set("NODE_USE_ENV_PROXY", "1".to_owned());
        }
        let mut java: Vec<String> = set("JAVA_TOOL_OPTIONS").into_iter().collect();
        for scheme in ["http", "https"] {
            java.push(format!("-D{scheme}.proxyHost={}", proxy.ip()));
            java.push(format!("-D{scheme}.proxyPort={}", proxy.port()));
        }
        // Only an empty list lets Java send requests for this machine to a proxy: to any other it
        // adds this machine's names. What it then exports is recognised by its address.
        let given = no_proxy.map(NoProxy::given);
        let list = given.map(|given| given.java_list()).unwrap_or_default();
        java.push(format!("-Dhttp.nonProxyHosts={list}"));
        java.extend(trust_store);
        self.set("JAVA_TOOL_OPTIONS", java.join(" "));
    }

    fn point_at_collector(
        &mut self,
        receivers: &SpanReceivers,
        set: impl Fn(&str) -> Option<String>,
    ) {
        let either = |of_traces, of_all| set(of_traces).or_else(|| set(of_all));
        let endpoint = either(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        );
        let exporter = set("OTEL_TRACES_EXPORTER");
        let elsewhere = exporter.as_ref().is_some_and(|name| name != "otlp");
        if endpoint.is_some() || elsewhere {
            self.notes.push(
                "OTEL_* variables send the command's spans elsewhere: the breakdown goes without"
                    .to_owned(),
            );
            return;
        }
        let protocol = either(
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        );
        let grpc = protocol.as_deref() == Some("grpc");
        let receiver = if grpc {
            &receivers.grpc
        } else {
            &receivers.http
        };
        // Some exporters take a path of "/" for one of their own choosing.
        let endpoint = receiver.as_str().trim_end_matches('/').to_owned();
        self.set("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        if protocol.is_none() {
            self.set("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf".to_owned());
        }
        if exporter.is_none() {
            self.set("OTEL_TRACES_EXPORTER", "otlp".to_owned());
        }
    }

    fn set(&mut self, name: &'static str, value: String) {
        self.variables.push((name, value));
    }
}

fn hosts_without_proxy(
    receivers: &SpanReceivers,
    given: Option<&str>,
    set: impl Fn(&str) -> Option<String>,
) -> NoProxy {
    let inherited = || {
        NO_PROXY_VARIABLES
            .into_iter()
            .find_map(set)
            .unwrap_or_default()
    };
    let mut direct = match given {
        Some(list) => NoProxy::given(list),
        None => NoProxy::inherited(&inherited()),
    };
    // An exporter's requests are no part of what is measured.
    for receiver in [&receivers.http, &receivers.grpc] {
        if let Some(host) = receiver.host_str().filter(|host| !direct.has(host)) {
            direct.add(host);
        }
    }
    direct
}

#[cfg(test)]
mod tests;
