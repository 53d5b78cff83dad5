//! Where a request goes, and the form it takes on the way.

use std::net::{IpAddr, SocketAddr};

use http::header::HOST;
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Uri};
use url::Url;

use crate::config::Config;
use crate::exchange_error::ExchangeError;

/// Host and port to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// A name or an address, without brackets.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
    /// Whether TLS is spoken there.
    pub(crate) tls: bool,
}

/// Decides where requests go.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    upstream: Option<Target>,
    forward: bool,
    own: SocketAddr,
}

impl Router {
    /// A router for a proxy that listens at `own`.
    pub(crate) fn new(config: &Config, own: SocketAddr) -> Self {
        Self {
            upstream: config.upstream.as_ref().and_then(target_of_url),
            forward: config.forward,
            own,
        }
    }

    /// The port of the fixed upstream.
    pub(crate) fn upstream_port(&self) -> Option<u16> {
        self.upstream.as_ref().map(|target| target.port)
    }

    /// Where the request goes: a plain path to `destination`, if there is one, else to the
    /// upstream. A request for a whole URL is given the form that servers
    /// expect: the path alone, with the URL's host in `Host`.
    ///
    /// # Errors
    /// The reason why the proxy does not serve it.
    pub(crate) fn route<B>(
        &self,
        request: &mut Request<B>,
        destination: Option<&Target>,
    ) -> Result<Target, ExchangeError> {
        if request.method() == Method::CONNECT {
            let target = tunnel_target(request.uri())?;
            return self.forwarded(target);
        }
        if request.uri().scheme().is_none() {
            let target = destination.or(self.upstream.as_ref());
            return target.cloned().ok_or(ExchangeError::NoUpstream);
        }
        let target = self.forwarded(forward_target(request.uri())?)?;
        to_origin_form(request);
        Ok(target)
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
        let same_host = |own: IpAddr, other: IpAddr| {
            own == other
                || (own.is_unspecified() && (other.is_loopback() || other.is_unspecified()))
        };
        address.port() == self.own.port()
            && same_host(self.own.ip().to_canonical(), address.ip().to_canonical())
    }
}

fn target_of_url(url: &Url) -> Option<Target> {
    Some(Target {
        host: bare(url.host_str()?).to_owned(),
        port: url.port_or_known_default()?,
        tls: url.scheme() == "https",
    })
}

fn forward_target(uri: &Uri) -> Result<Target, ExchangeError> {
    let (tls, port) = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => (false, 80),
        Some(scheme) if *scheme == Scheme::HTTPS => (true, 443),
        _ => return Err(ExchangeError::Scheme),
    };
    let host = uri.host().ok_or(ExchangeError::Scheme)?;
    Ok(Target {
        host: bare(host).to_owned(),
        port: uri.port_u16().unwrap_or(port),
        tls,
    })
}

fn tunnel_target(uri: &Uri) -> Result<Target, ExchangeError> {
    match (uri.host(), uri.port_u16()) {
        (Some(host), Some(port)) => Ok(Target {
            host: bare(host).to_owned(),
            port,
            tls: false,
        }),
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

fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(upstream: Option<&str>, forward: bool) -> Router {
        let config = Config {
            upstream: upstream.map(|url| url.parse().unwrap()),
            forward,
            ..Config::default()
        };
        Router::new(&config, "127.0.0.1:8080".parse().unwrap())
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
        let any = Router::new(&config, "[::]:8080".parse().unwrap());
        assert!(any.is_own("127.0.0.1:8080".parse().unwrap()));
        assert!(any.is_own("[::ffff:127.0.0.1]:8080".parse().unwrap()));
        assert!(!any.is_own("127.0.0.1:8081".parse().unwrap()));
        let one = router(None, true);
        assert!(one.is_own("[::ffff:127.0.0.1]:8080".parse().unwrap()));
        assert!(!one.is_own("127.0.0.2:8080".parse().unwrap()));
    }
}
