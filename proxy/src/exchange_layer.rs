//! Opens the exchange of a request.

use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, Uri};
use hyper::body::Incoming;

use crate::connection::Connection;
use crate::journal::RequestFacts;

/// Opens the exchange. The journal closes it when both messages have gone by, or when the
/// connection ends, whichever is first.
pub(crate) fn open(connection: &Connection, request: Request<Incoming>) -> Request<Incoming> {
    let (method, uri) = (request.method(), request.uri());
    let facts = RequestFacts::of(method, uri, request.version(), request.headers());
    connection.journal.borrow_mut().begin(facts);
    request
}

/// Host and port asked for, where a request names them.
pub(crate) fn authority(uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
    match uri.authority() {
        Some(authority) => {
            let whole = authority.as_str();
            let host = whole.rsplit_once('@').map_or(whole, |(_, host)| host);
            HeaderValue::from_str(host).ok()
        }
        None => headers.get(HOST).cloned(),
    }
}
