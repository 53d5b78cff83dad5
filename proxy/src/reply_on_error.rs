//! The one place where an error becomes an HTTP answer.
//!
//! The answer says in `x-skewtap-reason` why the proxy gave it:
//!
//! | reason | status |
//! |---|---|
//! | `no-upstream`, `no-port`, `malformed-body` | 400 |
//! | `ambiguous-head` | 400, or 501 for an unknown coding |
//! | `forwarding-off`, `target-forbidden` | 403 |
//! | `no-route` | 404 |
//! | `scheme-unsupported`, `tunnel-in-stream` | 501 |
//! | `upstream-name`, `upstream-refused`, `upstream-unreachable` | 502 |
//! | `upstream-tls`, `upstream-tls-settings`, `interception` | 502 |
//! | `upstream-broken`, `upstream-closing`, `upstream-reset`, `upstream-malformed` | 502 |
//! | `upstream-switched`, `client-gone` | 502 |
//! | `upstream-connect-timeout` | 504 |
//! | `loop` | 508 |
//!
//! A request that is not HTTP never becomes an exchange; hyper answers it with 400, 414 or 431
//! and closes the connection, or the stream is reset. Where the server resets a stream, or leaves
//! one of a client's streams untouched, the client's stream is reset instead of answered.

use std::error::Error as _;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};

use crate::connection::Connection;
use crate::exchange_error::ExchangeError;
use crate::relayed_body::ResponseBody;

const REASON: HeaderName = HeaderName::from_static("x-skewtap-reason");

/// Gives the server's response, or the proxy's own in its place; never an error.
pub(crate) fn answer(
    connection: &Connection,
    result: Result<Response<ResponseBody>, ExchangeError>,
) -> Result<Response<ResponseBody>, ExchangeError> {
    Ok(result.unwrap_or_else(|error| {
        let mut journal = connection.journal.borrow_mut();
        let error = match error {
            ExchangeError::ClientGone(_) if journal.body_is_broken() => ExchangeError::Body,
            error => error,
        };
        if !matches!(error, ExchangeError::ClientGone(_)) {
            connection.forget_server();
        }
        journal.answered_here(error.outcome());
        let source = error.source().map(ToString::to_string);
        tracing::debug!(reason = error.reason(), source, "answered by the proxy");
        let mut response = own(&error);
        if journal.serves_connect() || matches!(error, ExchangeError::Head(_)) {
            // What follows may be meant for a tunnel that there is not, or for nobody.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }))
}

/// The proxy's own answer.
pub(crate) fn own(error: &ExchangeError) -> Response<ResponseBody> {
    let text = match error.source() {
        Some(source) => format!("skewtap: {error}: {source}\n"),
        None => format!("skewtap: {error}\n"),
    };
    let mut response = Response::new(ResponseBody::Own(Some(Bytes::from(text))));
    *response.status_mut() = error.status();
    let headers = response.headers_mut();
    headers.insert(REASON, HeaderValue::from_static(error.reason()));
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
