//! What can be set, with units and ranges, and the check of it.

mod route;

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use crate::tls::TlsSettings;

pub use route::Route;
pub(crate) use route::trimmed;

/// The settings of a proxy. [`Config::default`] gives every tunable its usual value.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients connect, at least one address. Port 0 lets the kernel choose. An unspecified
    /// IPv6 address takes IPv4 as well, unless an IPv4 address has the same port.
    pub listen: Vec<SocketAddr>,
    /// Where `/healthz` and `/metrics` are served; `None` serves neither.
    pub admin: Option<SocketAddr>,
    /// Where requests with a plain path go that no route fits, such as `http://127.0.0.1:9000`,
    /// `https://example.org` or `unix:/run/server.sock`; `None` serves none of them.
    pub upstream: Option<Url>,
    /// Where requests with a plain path go by their host and path.
    pub routes: Vec<Route>,
    /// Whether each connection goes on to where the client meant it to go, before the kernel
    /// redirected it here; all other ways of finding a server are then out of use.
    pub transparent: bool,
    /// Which version of HTTP is spoken to servers.
    pub upstream_http: UpstreamHttp,
    /// TLS towards clients and servers.
    pub tls: TlsSettings,
    /// Which tunnels are opened up to look inside; `None` opens none.
    pub intercept: Option<Intercept>,
    /// Whether requests for whole URLs are forwarded to the host they name, and tunnels opened.
    pub forward: bool,
    /// The OTLP endpoint (gRPC) that takes the records; `None` ships none.
    pub otlp: Option<Url>,
    /// Whether the kernel stamps what arrives, where it can.
    pub kernel_stamps: bool,
    /// Whether packets are captured, where permitted.
    pub capture: bool,
    /// Whether the endpoints' receive queues are looked up.
    pub queues: bool,
    /// Whether the endpoints' processes are sampled, where permitted; needs [`Config::queues`].
    pub processes: bool,
    /// Threads that forward, 1 to 256.
    pub workers: usize,
    /// Most client connections at once, 1 to 1,000,000; more wait to be accepted.
    pub max_connections: usize,
    /// Longest queue of connections that wait to be accepted, 1 to 65,535.
    pub backlog: u16,
    /// Longest head of a message, in bytes, 8,192 to 65,536; a longer request gets 431.
    pub max_head_bytes: usize,
    /// Most streams at once on one HTTP/2 connection of a client, 1 to 10,000; more are refused.
    pub max_streams: u32,
    /// Most streams that a client may take back within a second on one connection, 1 to
    /// 1,000,000; the connection is closed when there are more.
    pub max_resets: u64,
    /// Longest time from the first byte of a request's head to its last, 100 ms to 1 h; the
    /// connection is closed when it is over.
    pub head_timeout: Duration,
    /// How long a client's connection may lie idle between requests, 1 s to 1 day; it is closed
    /// by twice that.
    pub idle_timeout: Duration,
    /// Longest time to connect to a server, 100 ms to 10 min.
    pub connect_timeout: Duration,
    /// How long open exchanges may go on after the proxy was told to stop, and, after that,
    /// how long records may take to be shipped; 0 to 10 min each.
    pub drain_timeout: Duration,
    /// Longest watch over a receive queue, 10 ms to 10 min.
    pub longest_watch: Duration,
    /// How long a finished exchange waits for the client's next byte or its close where nothing
    /// better tells that the client has read the response; 0 to 1 min.
    pub activity_wait: Duration,
    /// How long a finished exchange waits for its packets, 0 to 10 s.
    pub packet_grace: Duration,
    /// Most records that wait to be shipped, 1 to 1,000,000; more are dropped and counted.
    pub ship_queue: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))],
            admin: None,
            upstream: None,
            routes: Vec::new(),
            transparent: false,
            upstream_http: UpstreamHttp::Auto,
            tls: TlsSettings::default(),
            intercept: None,
            forward: true,
            otlp: None,
            kernel_stamps: true,
            capture: true,
            queues: true,
            processes: true,
            workers: 1,
            max_connections: 10_000,
            backlog: 4_096,
            max_head_bytes: 65_536,
            max_streams: 100,
            max_resets: 1_000,
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(3_600),
            connect_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            longest_watch: Duration::from_secs(60),
            activity_wait: Duration::from_secs(2),
            packet_grace: Duration::from_millis(60),
            ship_queue: 16_384,
        }
    }
}

/// Which version of HTTP is spoken to servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamHttp {
    /// The client's: to a server without TLS as it is, and to one with TLS as the most that is
    /// offered.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without asking first where there is no TLS.
    Http2,
}

/// Which tunnels are opened up, so that the HTTP inside their TLS is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intercept {
    /// Hosts, each a name or address, or `*.name` for all names below one.
    pub hosts: Vec<String>,
    /// The folder with the authority that vouches for the proxy; clients must trust it.
    pub authority: PathBuf,
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number or a time outside its range.
    #[error("{setting} is {value}; it must be {least} to {most}")]
    Range {
        /// Name of the field.
        setting: &'static str,
        /// What it was set to.
        value: String,
        /// Smallest value that can be used.
        least: String,
        /// Largest value that can be used.
        most: String,
    },
    /// A URL of another form than is needed.
    #[error("{setting} is {url}; {wanted}")]
    Url {
        /// Name of the field.
        setting: &'static str,
        /// What it was set to, without user name and password.
        url: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A route that cannot be used.
    #[error("route {number}: {what}{why}")]
    Route {
        /// Its number, from 1.
        number: usize,
        /// The field, with a colon; empty for the route as a whole.
        what: &'static str,
        /// What it must be.
        why: &'static str,
    },
    /// Nowhere to listen.
    #[error("no address to listen on")]
    NoListener,
    /// Without an upstream and without forwarding every request would be refused.
    #[error("no upstream is set and forwarding is off; nothing could be served")]
    Nothing,
    /// A transparent proxy knows where each connection goes, and stands in no server's place by itself.
    #[error("a transparent proxy has no upstream, no routes and no TLS of its own")]
    Transparent,
}

impl Config {
    /// Finds everything that is wrong with the settings.
    ///
    /// # Errors
    /// All faults, in the order of the fields.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let mut faults = Vec::new();
        if self.listen.is_empty() {
            faults.push(ConfigError::NoListener);
        }
        let upstream = self.upstream.as_ref();
        faults.extend(upstream.and_then(|url| upstream_fault("upstream", url)));
        faults.extend(route::faults(&self.routes));
        let has_server = upstream.is_some() || !self.routes.is_empty();
        if !has_server && !self.forward && !self.transparent {
            faults.push(ConfigError::Nothing);
        }
        if self.transparent && (has_server || self.tls.server.is_some()) {
            faults.push(ConfigError::Transparent);
        }
        faults.extend(self.otlp.as_ref().and_then(otlp_fault));
        let ms = Duration::from_millis;
        let s = Duration::from_secs;
        faults.extend(outside("workers", self.workers, 1..=256));
        faults.extend(outside(
            "max_connections",
            self.max_connections,
            1..=1_000_000,
        ));
        faults.extend(outside("backlog", self.backlog, 1..=u16::MAX));
        faults.extend(outside(
            "max_head_bytes",
            self.max_head_bytes,
            8_192..=65_536,
        ));
        faults.extend(outside("max_streams", self.max_streams, 1..=10_000));
        faults.extend(outside("max_resets", self.max_resets, 1..=1_000_000));
        faults.extend(outside(
            "head_timeout",
            self.head_timeout,
            ms(100)..=s(3_600),
        ));
        faults.extend(outside("idle_timeout", self.idle_timeout, s(1)..=s(86_400)));
        faults.extend(outside(
            "connect_timeout",
            self.connect_timeout,
            ms(100)..=s(600),
        ));
        faults.extend(outside("drain_timeout", self.drain_timeout, s(0)..=s(600)));
        faults.extend(outside(
            "longest_watch",
            self.longest_watch,
            ms(10)..=s(600),
        ));
        faults.extend(outside("activity_wait", self.activity_wait, s(0)..=s(60)));
        faults.extend(outside("packet_grace", self.packet_grace, s(0)..=s(10)));
        faults.extend(outside("ship_queue", self.ship_queue, 1..=1_000_000));
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }
}

fn outside<T: PartialOrd + std::fmt::Debug>(
    setting: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Option<ConfigError> {
    (!range.contains(&value)).then(|| ConfigError::Range {
        setting,
        value: format!("{value:?}"),
        least: format!("{:?}", range.start()),
        most: format!("{:?}", range.end()),
    })
}

fn upstream_fault(setting: &'static str, url: &Url) -> Option<ConfigError> {
    let wanted = if url.scheme() == "unix" {
        let has_path = url.host_str().is_none() && url.path().len() > 1;
        if has_path
            && url.path().starts_with('/')
            && url.query().is_none()
            && url.fragment().is_none()
        {
            return None;
        }
        "it must be like unix:/run/server.sock, with the whole path and neither ? nor #"
    } else if !matches!(url.scheme(), "http" | "https") {
        "it must begin with http://, https:// or unix:/"
    } else if !url.username().is_empty() || url.password().is_some() {
        "it must not hold a user name or a password"
    } else if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        "it must end after the port, because paths are passed on unchanged"
    } else {
        return None;
    };
    Some(ConfigError::Url {
        setting,
        url: without_secrets(url),
        wanted,
    })
}

fn otlp_fault(url: &Url) -> Option<ConfigError> {
    (url.scheme() != "http" || url.host_str().is_none()).then(|| ConfigError::Url {
        setting: "otlp",
        url: without_secrets(url),
        wanted: "it must be like http://127.0.0.1:4317 (OTLP over gRPC, without TLS)",
    })
}

/// A URL as it may be shown: without user name, password and query.
pub(crate) fn without_secrets(url: &Url) -> String {
    let mut shown = url.clone();
    // Both fail only for URLs that cannot hold such parts.
    let (Ok(()) | Err(())) = shown.set_username("");
    let (Ok(()) | Err(())) = shown.set_password(None);
    shown.set_query(None);
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_values_are_within_their_ranges() {
        assert_eq!(Config::default().check(), Ok(()));
    }

    #[test]
    fn all_faults_are_found_together() {
        let config = Config {
            upstream: Some("ftp://user:secret@127.0.0.1/".parse().unwrap()),
            otlp: Some("grpc://127.0.0.1:4317".parse().unwrap()),
            workers: 0,
            packet_grace: Duration::from_secs(11),
            ..Config::default()
        };
        let faults = config.check().unwrap_err();
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "upstream is ftp://127.0.0.1/; it must begin with http://, https:// or unix:/",
                "otlp is grpc://127.0.0.1:4317; it must be like http://127.0.0.1:4317 (OTLP over gRPC, without TLS)",
                "workers is 0; it must be 1 to 256",
                "packet_grace is 11s; it must be 0ns to 10s",
            ]
        );
    }

    #[test]
    fn an_upstream_with_a_path_is_refused() {
        let config = Config {
            upstream: Some("http://127.0.0.1:9000/api".parse().unwrap()),
            ..Config::default()
        };
        assert_eq!(config.check().unwrap_err().len(), 1);
    }

    #[test]
    fn a_unix_socket_is_named_by_its_whole_path() {
        let faults = |url: &str| {
            let config = Config {
                upstream: Some(url.parse().unwrap()),
                ..Config::default()
            };
            config.check().err().unwrap_or_default().len()
        };
        for good in ["unix:/run/a.sock", "unix:///run/a.sock"] {
            assert_eq!(faults(good), 0, "{good}");
        }
        for bad in [
            "unix:run/a.sock",
            "unix://run/a.sock",
            "unix:/",
            "unix:/run/a.sock?b",
            "unix:/run/a.sock#b",
        ] {
            assert_eq!(faults(bad), 1, "{bad}");
        }
    }

    #[test]
    fn a_transparent_proxy_takes_no_upstream() {
        let transparent = Config {
            transparent: true,
            forward: false,
            ..Config::default()
        };
        assert_eq!(transparent.check(), Ok(()));
        let both = Config {
            upstream: Some("http://a".parse().unwrap()),
            ..transparent
        };
        assert_eq!(both.check(), Err(vec![ConfigError::Transparent]));
    }

    #[test]
    fn a_proxy_that_could_serve_nothing_is_refused() {
        let config = Config {
            forward: false,
            ..Config::default()
        };
        assert_eq!(config.check(), Err(vec![ConfigError::Nothing]));
    }
}
