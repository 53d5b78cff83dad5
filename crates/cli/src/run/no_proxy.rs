//! Which hosts a command reaches without the proxy.

use std::net::IpAddr;

/// The hosts that are to be reached directly, in the form of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoProxy {
    hosts: Vec<String>,
    /// What was left out of the user's list, because nothing there would be measured.
    left_out: Vec<String>,
}

impl NoProxy {
    /// The list that the user gave for this very run, as it is.
    pub(super) fn given(list: &str) -> Self {
        Self {
            hosts: entries(list).collect(),
            left_out: Vec::new(),
        }
    }

    /// The list that the user's environment has for all programs, less the names of this machine:
    /// what listens here is what most runs are to measure.
    pub(super) fn inherited(list: &str) -> Self {
        let (left_out, hosts) = entries(list).partition(|entry| covers_loopback(entry));
        Self { hosts, left_out }
    }

    /// Whether a host is in the list by just this name.
    pub(super) fn has(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known == host)
    }

    /// Adds a host.
    pub(super) fn add(&mut self, host: &str) {
        self.hosts.push(host.to_owned());
    }

    /// What was left out of the user's list.
    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The value of `NO_PROXY`.
    pub(super) fn list(&self) -> String {
        self.hosts.join(",")
    }

    /// The same for Java's `http.nonProxyHosts`, whose names stand for themselves only. Ranges of
    /// addresses are left out: Java has no form for them. To any list but an empty one Java adds
    /// the names of this machine.
    pub(super) fn java_list(&self) -> String {
        let mut patterns = Vec::new();
        for host in self.hosts.iter().filter(|host| !host.contains('/')) {
            let suffix = host.trim_start_matches("*.").trim_start_matches('.');
            patterns.push(suffix.to_owned());
            if suffix.parse::<IpAddr>().is_err() && suffix != "*" {
                patterns.push(format!("*.{suffix}"));
            }
        }
        patterns.join("|")
    }
}

fn entries(list: &str) -> impl Iterator<Item = String> {
    list.split([',', ' ', '\t'])
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(str::to_owned)
}

/// Whether an entry keeps this machine's own addresses from the proxy.
fn covers_loopback(entry: &str) -> bool {
    let entry = entry.to_ascii_lowercase();
    let name = without_port(&entry);
    let suffix = name.trim_start_matches("*.").trim_start_matches('.');
    let address = suffix
        .split_once('/')
        .map_or(suffix, |(address, _)| address);
    let is_loopback = |text: &str| {
        let ip = text.parse::<IpAddr>();
        ip.is_ok_and(|ip| ip.to_canonical().is_loopback() || ip.is_unspecified())
    };
    name == "*"
        || suffix == "localhost"
        || suffix == "localhost.localdomain"
        || name.starts_with("127.")
        || is_loopback(address)
}

/// The entry without its port and without an IPv6 address's brackets.
fn without_port(entry: &str) -> &str {
    if let Some(inner) = entry.strip_prefix('[') {
        return inner.split_once(']').map_or(inner, |(address, _)| address);
    }
    match entry.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => entry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_goes_through_the_proxy_and_the_rest_stays() {
        let list = "localhost, 127.0.0.1,.corp,[::1]:80 ::1,10.0.0.0/8,127.0.0.0/8,*.localhost,\
                    0.0.0.0,localhost:8080,db";
        let no_proxy = NoProxy::inherited(list);
        assert_eq!(no_proxy.list(), ".corp,10.0.0.0/8,db");
        assert_eq!(no_proxy.left_out().len(), 8);
    }

    #[test]
    fn a_list_for_everything_would_leave_nothing_to_measure() {
        let no_proxy = NoProxy::inherited("*");
        assert_eq!(
            (no_proxy.list().as_str(), no_proxy.left_out().len()),
            ("", 1)
        );
    }

    #[test]
    fn what_is_given_for_this_run_is_taken_as_it_is() {
        let mut no_proxy = NoProxy::given("localhost,.corp");
        no_proxy.add("127.83.75.84");
        assert_eq!(no_proxy.list(), "localhost,.corp,127.83.75.84");
        assert!(no_proxy.left_out().is_empty());
    }

    #[test]
    fn java_needs_patterns() {
        let mut no_proxy = NoProxy::given(".corp,10.0.0.0/8,db,*.lan");
        no_proxy.add("127.83.75.84");
        assert_eq!(
            no_proxy.java_list(),
            "corp|*.corp|db|*.db|lan|*.lan|127.83.75.84"
        );
        assert_eq!(NoProxy::inherited("").java_list(), "");
    }
}
