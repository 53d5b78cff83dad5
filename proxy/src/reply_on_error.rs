//! The one place where an error becomes an HTTP answer.
//!
//! The answer says in `x-skewtap-reason` why the proxy gave it:
//!
//! | reason | status |
//! |---|---|
//! | `no-upstream` | 400 |
//! | `forwarding-off` | 403 |
//! | `connect-unsupported`, `scheme-unsupported` | 501 |
//! | `upstream-name`, `upstream-refused`, `upstream-unreachable` | 502 |
//! | `upstream-broken`, `upstream-malformed`, `client-gone` | 502 |
//! | `upstream-connect-timeout` | 504 |
//! | `loop` | 508 |
//!
//! A request that is not HTTP/1 never becomes an exchange; hyper answers it
//! with 400, 414 or 431 and closes the connection.

use std::error::Error as _;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use hyper::body::Incoming;

use crate::connection::Connection;
use crate::exchange_error::ExchangeError;
use crate::relayed_body::ResponseBody;

const REASON: HeaderName = HeaderName::from_static("x-skewtap-reason");

/// Gives the server's response, or the proxy's own in its place; never an error.
pub(crate) fn answer(
    connection: &Connection,
    result: Result<Response<Incoming>, ExchangeError>,
) -> Result<Response<ResponseBody>, ExchangeError> {
    Ok(match result {
        Ok(response) => {
            let announced = response.headers().contains_key(CONTENT_LENGTH);
            response.map(|incoming| ResponseBody::Server {
                incoming,
                announced,
            })
        }
        Err(error) => {
            connection
                .journal
                .borrow_mut()
                .answered_here(error.outcome());
            let source = error.source().map(ToString::to_string);
            tracing::debug!(reason = error.reason(), source, "answered by the proxy");
            own(&error)
        }
    })
}

fn own(error: &ExchangeError) -> Response<ResponseBody> {
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
