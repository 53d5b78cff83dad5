//! The parsers of what clients send, for the fuzz targets alone; nothing else may rely on it.

use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use skewtap_core::ids::{SpanId, TraceId};

use crate::config::Config;
use crate::target::Router;
use crate::{strict_head, trace_context};

/// Whether a well-formed head can be read in one way only.
#[must_use]
pub fn is_unambiguous(head: &[u8]) -> bool {
    strict_head::check(head).is_ok()
}

/// The trace, the parent span and the sampled flag in a `traceparent`.
#[must_use]
pub fn trace_context(value: &[u8]) -> Option<(TraceId, SpanId, bool)> {
    let found = trace_context::parse(value)?;
    Some((found.trace_id, found.span_id, found.sampled))
}

/// Where a forward proxy sends a request, host and port, and the target and the `Host` that it
/// sends there.
#[must_use]
pub fn forwarded(uri: &Uri, host: &HeaderValue) -> Option<(String, u16, Uri, HeaderValue)> {
    let config = Config::default();
    let router = Router::new(&config, &config.listen);
    let mut request = Request::new(());
    *request.uri_mut() = uri.clone();
    request.headers_mut().insert(HOST, host.clone());
    let target = router.route(&mut request, None).ok()?;
    let host = request.headers().get(HOST)?.clone();
    Some((target.host, target.port, request.uri().clone(), host))
}
