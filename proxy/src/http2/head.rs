//! The heads of messages between HTTP/1 and HTTP/2 (RFC 9113, section 8.2 and 8.3).

use http::header::{
    CONNECTION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri, Version, request};

use crate::strict_head::HeadFault;
use crate::target::Target;

/// Headers that mean something between two neighbours of HTTP/1 only.
const OF_CONNECTION: [HeaderName; 5] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Makes the head of a request fit for a stream to `target`. What it is addressed to stays as
/// the client gave it.
pub(crate) fn request_to_stream<B>(head: request::Parts, body: B, target: &Target) -> Request<B> {
    let mut head = head;
    strip_connection(&mut head.headers);
    let authority = match head.uri.authority() {
        Some(authority) => Some(authority.clone()),
        None => host(&head.headers),
    };
    if let Some(authority) = authority {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(if target.tls {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        });
        let asks_for_all = head.method == http::Method::OPTIONS && head.uri.path() == "*";
        parts.path_and_query = if asks_for_all {
            Some(PathAndQuery::from_static("*"))
        } else {
            head.uri.path_and_query().cloned()
        };
        parts
            .path_and_query
            .get_or_insert(PathAndQuery::from_static("/"));
        parts.authority = Some(authority.clone());
        if let Ok(uri) = Uri::from_parts(parts) {
            head.uri = uri;
            let same = |host: &HeaderValue| host.as_bytes() == authority.as_str().as_bytes();
            if head.headers.get(HOST).is_some_and(same) {
                head.headers.remove(HOST);
            }
            head.version = Version::HTTP_2;
        }
    } else {
        // Only a head of HTTP/1 may name no authority at all.
        head.version = Version::HTTP_11;
    }
    Request::from_parts(head, body)
}

/// Makes the head of a request that came on a stream fit for HTTP/1.
pub(crate) fn request_to_message<B>(head: request::Parts, body: B) -> Request<B> {
    let mut head = head;
    let mut headers = HeaderMap::with_capacity(head.headers.len() + 1);
    let named = head.uri.authority().map(Authority::as_str);
    let named = named.and_then(|authority| HeaderValue::from_str(authority).ok());
    if let Some(host) = named.or_else(|| head.headers.get(HOST).cloned()) {
        headers.insert(HOST, host);
    }
    let cookies: Vec<&[u8]> = head
        .headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    // A client may cut it into several for better compression.
    let mut cookie = HeaderValue::from_bytes(&cookies.join(&b"; "[..])).ok();
    cookie = cookie.filter(|_| !cookies.is_empty());
    let mut name = None;
    for (next, value) in std::mem::take(&mut head.headers) {
        name = next.or(name);
        match &name {
            Some(name) if *name == HOST => {}
            Some(name) if *name == COOKIE => {
                if let Some(cookie) = cookie.take() {
                    headers.insert(COOKIE, cookie);
                }
            }
            Some(name) => {
                headers.append(name.clone(), value);
            }
            None => {}
        }
    }
    if headers.contains_key(TE) {
        headers.insert(CONNECTION, HeaderValue::from_static("TE"));
    }
    let root = || PathAndQuery::from_static("/");
    head.headers = headers;
    head.uri = Uri::from(head.uri.path_and_query().cloned().unwrap_or_else(root));
    head.version = Version::HTTP_11;
    Request::from_parts(head, body)
}

/// Makes the head of a response fit for a stream.
pub(crate) fn response_to_stream<B>(response: &mut Response<B>) {
    strip_connection(response.headers_mut());
    *response.version_mut() = Version::HTTP_2;
}

/// Makes the head of a response that came on a stream fit for HTTP/1.
pub(crate) fn response_to_message<B>(response: &mut Response<B>) {
    *response.version_mut() = Version::HTTP_11;
}

/// An interim response that came on a stream, in the form of HTTP/1.
pub(crate) fn interim_of_http1(response: &Response<()>) -> Vec<u8> {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in response.headers() {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Finds what two parties could read differently in a request that came on a stream. The HTTP
/// library has refused what HTTP/2 forbids already.
pub(crate) fn check(head: &request::Parts) -> Result<(), HeadFault> {
    let mut hosts = head.headers.get_all(HOST).iter();
    match (head.uri.authority(), hosts.next(), hosts.next()) {
        (_, _, Some(_)) | (None, None, None) => Err(HeadFault::Host),
        (Some(authority), Some(host), None) => {
            let same = host
                .as_bytes()
                .eq_ignore_ascii_case(authority.as_str().as_bytes());
            if same { Ok(()) } else { Err(HeadFault::Host) }
        }
        (Some(authority), None, None) if authority.as_str().contains('@') => Err(HeadFault::Host),
        (Some(_), None, None) => Ok(()),
        (None, Some(host), None) => HeadFault::of_host(host.as_bytes()),
    }
}

fn strip_connection(headers: &mut HeaderMap) {
    for name in &OF_CONNECTION {
        headers.remove(name);
    }
}

fn host(headers: &HeaderMap) -> Option<Authority> {
    let host = headers.get(HOST)?;
    Authority::from_maybe_shared(bytes::Bytes::copy_from_slice(host.as_bytes())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(tls: bool) -> Target {
        Target::tcp("server.example", 1, tls)
    }

    fn head(request: Request<()>) -> request::Parts {
        request.into_parts().0
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", text(value)))
            .collect()
    }

    #[test]
    fn a_request_of_http_1_becomes_a_stream_with_its_host_as_authority() {
        let request = Request::get("/a?b=c")
            .header("host", "one.example:8")
            .header("connection", "keep-alive, x")
            .header("keep-alive", "timeout=5")
            .header("transfer-encoding", "chunked")
            .header("x", "1")
            .body(())
            .unwrap();
        let made = request_to_stream(head(request), (), &target(true));
        assert_eq!(made.uri(), "https://one.example:8/a?b=c");
        assert_eq!(made.version(), Version::HTTP_2);
        assert_eq!(lines(made.headers()), ["x: 1"]);
    }

    #[test]
    fn a_request_on_a_stream_becomes_a_message_with_one_host_and_one_cookie() {
        let request = Request::post("http://one.example/a")
            .header("cookie", "a=1")
            .header("te", "trailers")
            .header("cookie", "b=2")
            .header("x", "1")
            .header("x", "2")
            .body(())
            .unwrap();
        let made = request_to_message(head(request), ());
        assert_eq!(made.uri(), "/a");
        let expected = [
            "host: one.example",
            "cookie: a=1; b=2",
            "te: trailers",
            "x: 1",
            "x: 2",
            "connection: TE",
        ];
        assert_eq!(lines(made.headers()), expected);
    }

    #[test]
    fn an_authority_that_could_be_taken_for_two_is_refused() {
        let with = |uri: &str, hosts: &[&str]| {
            let mut request = Request::get(uri);
            for host in hosts {
                request = request.header("host", *host);
            }
            check(&head(request.body(()).unwrap()))
        };
        assert_eq!(with("http://a/", &[]), Ok(()));
        assert_eq!(with("http://a/", &["A"]), Ok(()));
        assert_eq!(with("/", &["a"]), Ok(()));
        for (uri, hosts) in [
            ("http://a/", &["b"][..]),
            ("http://a/", &["a", "a"]),
            ("http://u@a/", &[]),
            ("/", &[]),
            ("/", &["a/b"]),
        ] {
            assert_eq!(with(uri, hosts), Err(HeadFault::Host), "{uri} {hosts:?}");
        }
    }

    #[test]
    fn an_interim_response_is_written_as_http_1_has_it() {
        let hints = Response::builder()
            .status(103)
            .header("link", "</a>")
            .body(())
            .unwrap();
        let text = String::from_utf8(interim_of_http1(&hints)).unwrap();
        assert_eq!(text, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
    }
}
