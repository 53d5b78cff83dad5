//! Where a request goes, and the form it takes on the way.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use http::header::HOST;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Uri};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::config::Config;
use crate::exchange_error::ExchangeError;
use crate::routes::Routes;

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// A name or an address, without brackets.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
    /// Whether TLS is spoken there.
    pub(crate) tls: bool,
    /// Where the host is, if that is known without asking.
    pub(crate) address: Option<IpAddr>,
    /// The Unix socket to connect to, in place of host and port.
    pub(crate) unix: Option<Arc<Path>>,
    /// The number of the route that leads there, from 0, if one does.
    pub(crate) route: Option<usize>,
}

impl Target {
    /// A port of a host, named by no route.
    pub(crate) fn tcp(host: &str, port: u16, tls: bool) -> Self {
        Self {
            host: bare(host).to_owned(),
            port,
            tls,
            address: None,
            unix: None,
            route: None,
        }
    }
}

/// Decides where requests go.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    upstream: Option<Target>,
    routes: Routes,
    forward: bool,
    transparent: bool,
    own: Vec<SocketAddr>,
}

impl Router {
    /// A router for a proxy that listens at `own`.
    pub(crate) fn new(config: &Config, own: &[SocketAddr]) -> Self {
        Self {
            upstream: config.upstream.as_ref().and_then(target_of_url),
            routes: Routes::new(&config.routes),
            forward: config.forward,
            transparent: config.transparent,
            own: own.to_vec(),
        }
    }

    /// The TCP ports of all servers that are known beforehand.
    pub(crate) fn upstream_ports(&self) -> impl Iterator<Item = u16> {
        let targets = self.upstream.iter().chain(self.routes.targets());
        let over_tcp = targets.filter(|target| target.unix.is_none());
        over_tcp.map(|target| target.port)
    }

    /// Where the request goes: a plain path to `destination`, if there is one, else where the most
    /// exact route leads, else to the upstream. A request for a whole URL is given the form that servers
    /// expect: the path alone, with the URL's host in `Host`.
    ///
    /// # Errors
    /// The reason why the proxy does not serve it.
    pub(crate) fn route<B>(
        &self,
        request: &mut Request<B>,
        destination: Option<&Target>,
    ) -> Result<Target, ExchangeError> {
        if self.transparent && request.method() != Method::CONNECT {
            // Also a whole URL is the server's business, which may be a proxy itself.
            return destination.cloned().ok_or(ExchangeError::NoUpstream);
        }
        if request.method() == Method::CONNECT {
            let target = tunnel_target(request.uri())?;
            return self.forwarded(target);
        }
        if request.uri().scheme().is_none() {
            let routed = || self.routed(request);
            let target = destination.or_else(routed).or(self.upstream.as_ref());
            return target.cloned().ok_or(if self.routes.is_empty() {
                ExchangeError::NoUpstream
            } else {
                ExchangeError::NoRoute
            });
        }
        let target = self.forwarded(forward_target(request.uri())?)?;
        to_origin_form(request);
        Ok(target)
    }

    /// Whether the target is one that the settings name.
    pub(crate) fn is_upstream(&self, target: &Target) -> bool {
        target.route.is_some() || self.upstream.as_ref() == Some(target)
    }

    fn routed<B>(&self, request: &Request<B>) -> Option<&Target> {
        if self.routes.is_empty() {
            return None;
        }
        let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
        let host = std::str::from_utf8(host.unwrap_or_default()).unwrap_or_default();
        self.routes.find(without_port(host), request.uri().path())
    }

    fn forwarded(&self, target: Target) -> Result<Target, ExchangeError> {
        let upstream = self.upstream.as_ref();
        let same =
            |upstream: &Target| (&upstream.host, upstream.port) == (&target.host, target.port);
        if self.forward || upstream.is_some_and(same) {
            Ok(target)
        } else {
            Err(ExchangeError::ForwardOff)
        }
    }

    /// Whether connecting to `address` would come back to this proxy.
    pub(crate) fn is_own(&self, address: SocketAddr) -> bool {
        let other = address.ip().to_canonical();
        self.own_at(address.port()).any(|own| {
            own == other
                || (own.is_unspecified() && (other.is_loopback() || other.is_unspecified()))
        })
    }

    /// Whether a connection between these two ends, once it stands, has come back to this proxy:
    /// both are of this machine, and at that port the proxy listens on all of its addresses.
    pub(crate) fn has_come_back(&self, local: SocketAddr, peer: SocketAddr) -> bool {
        let same_machine = local.ip().to_canonical() == peer.ip().to_canonical();
        same_machine && self.own_at(peer.port()).any(|own| own.is_unspecified())
    }

    fn own_at(&self, port: u16) -> impl Iterator<Item = IpAddr> {
        let own = self.own.iter().filter(move |own| own.port() == port);
        own.map(|own| own.ip().to_canonical())
    }
}

/// The server that a setting names.
pub(crate) fn target_of_url(url: &Url) -> Option<Target> {
    if url.scheme() == "unix" {
        let path: Vec<u8> = percent_decode_str(url.path()).collect();
        let path = Path::new(OsStr::from_bytes(&path));
        return Some(Target {
            unix: Some(Arc::from(path)),
            ..Target::tcp("localhost", 0, false)
        });
    }
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    Some(Target::tcp(host, port, url.scheme() == "https"))
}

fn forward_target(uri: &Uri) -> Result<Target, ExchangeError> {
    let (tls, port) = match uri.scheme() {
        // `ws` is HTTP that asks to be upgraded; some clients name it to proxies.
        Some(scheme) if *scheme == Scheme::HTTP || scheme == "ws" => (false, 80),
        Some(scheme) if *scheme == Scheme::HTTPS => (true, 443),
        _ => return Err(ExchangeError::Scheme),
    };
    let host = uri.host().ok_or(ExchangeError::Scheme)?;
    Ok(Target::tcp(host, uri.port_u16().unwrap_or(port), tls))
}

fn tunnel_target(uri: &Uri) -> Result<Target, ExchangeError> {
    match (uri.host(), uri.port_u16()) {
        (Some(host), Some(port)) => Ok(Target::tcp(host, port, false)),
        _ => Err(ExchangeError::NoPort),
    }
}

fn to_origin_form<B>(request: &mut Request<B>) {
    let root = || PathAndQuery::from_static("/");
    let path = request.uri().path_and_query().cloned().unwrap_or_else(root);
    let authority = request.uri().authority().map(|authority| {
        // User name and password are not the server's business.
        let whole = authority.as_str();
        whole
            .rsplit_once('@')
            .map_or(whole, |(_, host)| host)
            .to_owned()
    });
    *request.uri_mut() = Uri::from(path);
    let Some(authority) = authority.and_then(|host| HeaderValue::from_str(&host).ok()) else {
        return;
    };
    let host = request.headers().get(HOST);
    if host.is_none_or(|host| !host.as_bytes().eq_ignore_ascii_case(authority.as_bytes())) {
        request.headers_mut().insert(HOST, authority);
    }
}

/// A host as `Host` has it, without its port and brackets.
fn without_port(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    bare(name.strip_suffix('.').unwrap_or(name))
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Route;

    fn router(upstream: Option<&str>, forward: bool) -> Router {
        let config = Config {
            upstream: upstream.map(|url| url.parse().unwrap()),
            forward,
            ..Config::default()
        };
        Router::new(&config, &["127.0.0.1:8080".parse().unwrap()])
    }

    fn request(uri: &str, host: Option<&str>) -> Request<()> {
        let mut request = Request::new(());
        *request.uri_mut() = uri.parse().unwrap();
        if let Some(host) = host {
            request.headers_mut().insert(HOST, host.parse().unwrap());
        }
        request
    }

    #[test]
    fn a_plain_path_goes_to_the_upstream_unchanged() {
        let mut plain = request("/a/../b?c=d", Some("example.org"));
        let target = router(Some("http://[::1]:9000"), true)
            .route(&mut plain, None)
            .unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 9000));
        assert_eq!(plain.uri(), "/a/../b?c=d");
        assert_eq!(plain.headers()[HOST], "example.org");
    }

    #[test]
    fn a_whole_url_goes_to_its_host_as_a_path() {
        let mut whole = request("http://user:pw@example.org/a?b=c", Some("example.org"));
        let target = router(None, true).route(&mut whole, None).unwrap();
        assert_eq!((target.host.as_str(), target.port), ("example.org", 80));
        assert_eq!(whole.uri(), "/a?b=c");
        assert_eq!(whole.headers()[HOST], "example.org");
    }

    #[test]
    fn a_whole_url_of_a_websocket_is_one_of_http() {
        let mut whole = request("ws://example.org/a", Some("example.org"));
        let target = router(None, true).route(&mut whole, None).unwrap();
        assert_eq!((target.tls, target.port), (false, 80));
        assert_eq!(whole.uri(), "/a");
    }

    #[test]
    fn an_https_url_goes_to_its_host_under_tls() {
        let mut whole = request("https://example.org/a", None);
        let target = router(None, true).route(&mut whole, None).unwrap();
        assert_eq!((target.tls, target.port), (true, 443));
    }

    #[test]
    fn the_url_overrides_another_host_header() {
        let mut whole = request("http://example.org:81/", Some("example.net"));
        router(None, true).route(&mut whole, None).unwrap();
        assert_eq!(whole.headers()[HOST], "example.org:81");
    }

    #[test]
    fn what_is_not_served_is_refused_with_its_reason() {
        let reason = |router: Router, mut request: Request<()>| {
            router
                .route(&mut request, None)
                .map_err(|error| error.reason())
        };
        let upstream = Some("http://127.0.0.1:9000");
        assert_eq!(
            reason(router(None, true), request("/", None)),
            Err("no-upstream")
        );
        assert_eq!(
            reason(
                router(upstream, false),
                request("http://example.org/", None)
            ),
            Err("forwarding-off")
        );
        assert_eq!(
            reason(router(None, true), request("ftp://example.org/", None)),
            Err("scheme-unsupported")
        );
        let mut connect = request("example.org:443", None);
        *connect.method_mut() = Method::CONNECT;
        assert_eq!(
            reason(router(upstream, false), connect),
            Err("forwarding-off")
        );
    }

    #[test]
    fn without_forwarding_the_upstream_can_still_be_named_in_full() {
        let mut whole = request("http://127.0.0.1:9000/a", None);
        assert!(
            router(Some("http://127.0.0.1:9000"), false)
                .route(&mut whole, None)
                .is_ok()
        );
    }

    #[test]
    fn its_own_address_is_recognised_in_every_form() {
        let config = Config {
            upstream: None,
            ..Config::default()
        };
        let any = Router::new(&config, &["[::]:8080".parse().unwrap()]);
        assert!(any.is_own("127.0.0.1:8080".parse().unwrap()));
        assert!(any.is_own("[::ffff:127.0.0.1]:8080".parse().unwrap()));
        assert!(!any.is_own("127.0.0.1:8081".parse().unwrap()));
        let one = router(None, true);
        assert!(one.is_own("[::ffff:127.0.0.1]:8080".parse().unwrap()));
        assert!(!one.is_own("127.0.0.2:8080".parse().unwrap()));
        let mine = "192.0.2.1:8080".parse().unwrap();
        assert!(any.has_come_back("192.0.2.1:4000".parse().unwrap(), mine));
        assert!(!any.has_come_back("192.0.2.2:4000".parse().unwrap(), mine));
        assert!(!one.has_come_back("192.0.2.1:4000".parse().unwrap(), mine));
    }

    #[test]
    fn a_unix_socket_is_found_under_its_name() {
        let url = "unix:/run/a%20b.sock".parse().unwrap();
        let target = target_of_url(&url).unwrap();
        assert_eq!(target.unix.as_deref(), Some(Path::new("/run/a b.sock")));
    }

    #[test]
    fn a_host_is_compared_without_its_port() {
        for (text, host) in [
            ("a.example:80", "a.example"),
            ("a.example", "a.example"),
            ("a.example.:80", "a.example"),
            ("[::1]:80", "::1"),
            ("[::1]", "::1"),
            ("", ""),
        ] {
            assert_eq!(without_port(text), host, "{text}");
        }
    }

    #[test]
    fn a_route_goes_before_the_upstream_and_where_none_fits_that_is_said() {
        let route = Route {
            host: Some("a.example".to_owned()),
            path: None,
            upstream: "http://127.0.0.1:1".parse().unwrap(),
            upstream_ca: None,
            upstream_identity: None,
        };
        let mut config = Config {
            upstream: Some("http://127.0.0.1:2".parse().unwrap()),
            routes: vec![route],
            ..Config::default()
        };
        let port = |config: &Config, host| {
            let routed = Router::new(config, &[]).route(&mut request("/x", Some(host)), None);
            routed
                .map(|target| target.port)
                .map_err(|error| error.reason())
        };
        assert_eq!(port(&config, "a.example:8080"), Ok(1));
        assert_eq!(port(&config, "b.example"), Ok(2));
        config.upstream = None;
        assert_eq!(port(&config, "b.example"), Err("no-route"));
    }

    #[test]
    fn a_transparent_proxy_leaves_whole_urls_to_the_server() {
        let config = Config {
            transparent: true,
            ..Config::default()
        };
        let router = Router::new(&config, &[]);
        let there = Target::tcp("192.0.2.1", 3128, false);
        let mut whole = request("http://example.org/a", Some("example.org"));
        assert_eq!(router.route(&mut whole, Some(&there)).unwrap(), there);
        assert_eq!(whole.uri(), "http://example.org/a");
    }
}
