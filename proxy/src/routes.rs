//! Which of several servers a request goes to, by its host and path.

use std::cmp::Reverse;

use crate::config::{Route, trimmed};
use crate::host_pattern::HostPattern;
use crate::target::{Target, target_of_url};

/// The routes, the most exact first.
#[derive(Clone, Debug)]
pub(crate) struct Routes(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    /// `None` stands for all hosts.
    host: Option<HostPattern>,
    /// Without a slash at its end, so empty for all paths.
    path: String,
    target: Target,
}

impl Routes {
    /// Those of the settings. Their targets bear the number that each has there, from 0.
    pub(crate) fn new(routes: &[Route]) -> Self {
        let rules = routes.iter().enumerate().filter_map(|(number, route)| {
            let target = target_of_url(&route.upstream)?;
            Some(Rule {
                host: route.host.as_deref().map(HostPattern::new),
                path: trimmed(route.path.as_deref()).to_owned(),
                target: Target {
                    route: Some(number),
                    ..target
                },
            })
        });
        let mut rules: Vec<Rule> = rules.collect();
        rules.sort_by_key(|rule| Reverse((rank(rule.host.as_ref()), rule.path.len())));
        Self(rules)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where all of them lead.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.0.iter().map(|rule| &rule.target)
    }

    /// Where a request for `host`, without its port, and `path` goes; `None` if no route fits.
    pub(crate) fn find(&self, host: &str, path: &str) -> Option<&Target> {
        let fits = |rule: &&Rule| {
            let hosts = rule.host.as_ref();
            hosts.is_none_or(|hosts| hosts.matches(host)) && is_below(path, &rule.path)
        };
        self.0.iter().find(fits).map(|rule| &rule.target)
    }
}

/// How exact a host is.
fn rank(host: Option<&HostPattern>) -> (u8, usize) {
    match host {
        None => (0, 0),
        Some(HostPattern::Below(suffix)) => (1, suffix.len()),
        Some(HostPattern::Exact(_)) => (2, 0),
    }
}

/// Whether `path` is `prefix`, or lies below it.
fn is_below(path: &str, prefix: &str) -> bool {
    let rest = path.strip_prefix(prefix);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(all: &[(Option<&str>, Option<&str>)]) -> Routes {
        let routes: Vec<_> = all
            .iter()
            .map(|(host, path)| Route {
                host: host.map(str::to_owned),
                path: path.map(str::to_owned),
                upstream: "http://127.0.0.1:1".parse().unwrap(),
                upstream_ca: None,
                upstream_identity: None,
            })
            .collect();
        Routes::new(&routes)
    }

    #[test]
    fn the_most_exact_host_and_then_the_longest_path_is_taken() {
        let routes = routes(&[
            (None, None),
            (None, Some("/api")),
            (Some("*.example"), None),
            (Some("*.b.example"), None),
            (Some("a.example"), None),
            (Some("a.example"), Some("/api/")),
            (Some("only.example"), Some("/api")),
        ]);
        for (host, path, number) in [
            ("other", "/", 0),
            ("other", "/apis", 0),
            ("other", "/api", 1),
            ("other", "/api/x", 1),
            ("x.example", "/api", 2),
            ("x.b.example", "/", 3),
            ("b.example", "/", 2),
            ("A.Example", "/", 4),
            ("a.example", "/api", 5),
            ("a.example", "/api/x", 5),
            ("a.example", "/apix", 4),
            ("only.example", "/api", 6),
            // Fits no route of its own host, so it is like any other below example.
            ("only.example", "/", 2),
            ("other", "*", 0),
        ] {
            let found = routes.find(host, path).unwrap();
            assert_eq!(found.route, Some(number), "{host} {path}");
        }
    }

    #[test]
    fn what_fits_no_route_has_none() {
        let routes = routes(&[(Some("a.example"), Some("/api"))]);
        for (host, path) in [("a.example", "/"), ("b.example", "/api"), ("", "/api")] {
            assert!(routes.find(host, path).is_none(), "{host} {path}");
        }
    }
}
