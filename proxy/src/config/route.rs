//! Servers for certain hosts and paths.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use url::Url;

use super::{ConfigError, upstream_fault};
use crate::tls::Identity;

/// A server for requests to certain hosts and paths.
///
/// Of all routes that a request fits, the one with the most exact host is taken: a name before
/// `*.name`, a longer one of those before a shorter, and any of them before a route without a host.
/// Among routes with the same host the longest path is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The host asked for, without a port: a name or an address, or `*.name` for all names below
    /// one. `None` stands for all hosts.
    pub host: Option<String>,
    /// What the path begins with, in whole segments: `/api` fits `/api` and `/api/a`, not `/apis`.
    /// Paths are compared as the client sends them. `None` stands for all paths.
    pub path: Option<String>,
    /// Where such requests go, as for [`super::Config::upstream`].
    pub upstream: Url,
    /// Certificates (PEM) that this server may be signed with, besides those the system trusts;
    /// `None` for those that hold for all servers.
    pub upstream_ca: Option<PathBuf>,
    /// What the proxy shows to this server if it asks for a client certificate; `None` for what all
    /// servers are shown.
    pub upstream_identity: Option<Identity>,
}

impl Route {
    /// What is wrong with a host, in words; `None` if nothing is.
    #[must_use]
    pub fn host_fault(host: &str) -> Option<&'static str> {
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_address = name == host && name.parse::<Ipv6Addr>().is_ok();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = !name.is_empty() && name.bytes().all(plain);
        (!is_address && !is_name)
            .then_some("it must be a name or an address without a port, or *.name")
    }

    /// What is wrong with a path, in words; `None` if nothing is.
    #[must_use]
    pub fn path_fault(path: &str) -> Option<&'static str> {
        (!path.starts_with('/') || path.contains(['?', '#']))
            .then_some("it must begin with / and hold neither ? nor #")
    }

    /// Whether it is for exactly the requests that `other` is for.
    #[must_use]
    pub fn is_for_same_as(&self, other: &Self) -> bool {
        let hosts = [self, other].map(|route| route.host.as_deref().map(str::to_ascii_lowercase));
        let paths = [self, other].map(|route| trimmed(route.path.as_deref()));
        hosts[0] == hosts[1] && paths[0] == paths[1]
    }
}

/// All faults of the routes, in their order.
pub(super) fn faults(routes: &[Route]) -> Vec<ConfigError> {
    let mut faults = Vec::new();
    for (at, route) in routes.iter().enumerate() {
        let host = route.host.as_deref().and_then(Route::host_fault);
        let path = route.path.as_deref().and_then(Route::path_fault);
        let mut before = routes.iter().take(at);
        let doubled = before.any(|other| route.is_for_same_as(other));
        let doubled = doubled.then_some("another route before it has the same host and path");
        let number = at + 1;
        for (what, why) in [("host: ", host), ("path: ", path), ("", doubled)] {
            faults.extend(why.map(|why| ConfigError::Route { number, what, why }));
        }
        faults.extend(upstream_fault("upstream of a route", &route.upstream));
    }
    faults
}

/// A path as it is compared: without a slash at its end.
pub(crate) fn trimmed(path: Option<&str>) -> &str {
    path.unwrap_or_default().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(host: Option<&str>, path: Option<&str>, upstream: &str) -> Route {
        Route {
            host: host.map(str::to_owned),
            path: path.map(str::to_owned),
            upstream: upstream.parse().unwrap(),
            upstream_ca: None,
            upstream_identity: None,
        }
    }

    #[test]
    fn routes_that_can_be_told_apart_have_no_fault() {
        let routes = [
            route(None, None, "http://a"),
            route(None, Some("/api"), "http://a"),
            route(Some("a.example"), Some("/api"), "unix:/run/a.sock"),
            route(Some("*.a.example"), Some("/api"), "https://a"),
            route(Some("::1"), None, "http://a"),
        ];
        assert_eq!(faults(&routes), []);
    }

    #[test]
    fn each_fault_is_told_with_the_number_of_its_route() {
        let routes = [
            route(Some("a.example:80"), None, "http://a"),
            route(Some("a*.example"), None, "http://a"),
            route(None, Some("api"), "http://a"),
            route(Some("B"), Some("/x/"), "http://a"),
            route(Some("b"), Some("/x"), "http://a"),
            route(None, None, "ftp://a"),
        ];
        let told: Vec<_> = faults(&routes).iter().map(ToString::to_string).collect();
        let host = "host: it must be a name or an address without a port, or *.name";
        assert_eq!(
            told,
            [
                format!("route 1: {host}"),
                format!("route 2: {host}"),
                "route 3: path: it must begin with / and hold neither ? nor #".to_owned(),
                "route 5: another route before it has the same host and path".to_owned(),
                "upstream of a route is ftp://a/; it must begin with http://, https:// or unix:/"
                    .to_owned(),
            ]
        );
    }
}
