//! What a record needs of a request's head.

use http::uri::Scheme;
use http::{HeaderMap, Method, Uri, Version};

use crate::exchange_layer;

/// Longest text taken from a request, in bytes; the rest is cut off.
const LONGEST_TEXT: usize = 2_048;

/// What a record needs of a request's head. The texts are copies: those of the HTTP library would keep
/// the buffer that the head was read into, which could then not be read into again.
#[derive(Clone, Debug)]
pub(crate) struct RequestFacts {
    pub(crate) method: Method,
    pub(crate) version: Version,
    scheme: Option<Scheme>,
    /// The authority, then the path.
    texts: Box<str>,
    /// Where the path begins.
    path: usize,
}

impl RequestFacts {
    /// Of a request with this head.
    pub(crate) fn of(method: &Method, uri: &Uri, version: Version, headers: &HeaderMap) -> Self {
        let authority = exchange_layer::authority(uri, headers);
        let authority = authority.as_ref().map_or(&[][..], |text| text.as_bytes());
        let authority = String::from_utf8_lossy(authority);
        let (authority, path) = (cut(&authority), cut(uri.path()));
        Self {
            method: method.clone(),
            version,
            scheme: uri.scheme().cloned(),
            texts: [authority, path].concat().into(),
            path: authority.len(),
        }
    }

    /// Of a tunnel to `authority` that no request asked for.
    pub(super) fn of_tunnel(authority: &str) -> Self {
        let authority = cut(authority);
        Self {
            // What OpenTelemetry has for a method that is not known.
            method: Method::from_bytes(b"_OTHER").unwrap_or(Method::CONNECT),
            version: Version::default(),
            scheme: None,
            texts: authority.into(),
            path: authority.len(),
        }
    }

    /// The scheme of a request whose URL was given whole.
    pub(crate) fn scheme(&self) -> Option<&str> {
        self.scheme.as_ref().map(Scheme::as_str)
    }

    /// Host and port asked for; empty where the request does not name them.
    pub(crate) fn authority(&self) -> &str {
        self.texts.get(..self.path).unwrap_or_default()
    }

    /// The path asked for, without a query.
    pub(crate) fn path(&self) -> &str {
        self.texts.get(self.path..).unwrap_or_default()
    }

    /// The method asked for.
    pub(crate) fn method(&self) -> &str {
        cut(self.method.as_str())
    }
}

fn cut(text: &str) -> &str {
    let end = text.floor_char_boundary(LONGEST_TEXT.min(text.len()));
    text.get(..end).unwrap_or_default()
}
