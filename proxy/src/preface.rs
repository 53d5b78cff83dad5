//! Which version of HTTP a client begins with.

use std::io;
use std::task::{Poll, ready};

use skewtap_capture::http2_boundary::PREFACE;
use tokio::time::timeout;

use crate::config::Config;
use crate::journal::HttpVersion;
use crate::transport::Transport;

/// Waits for a client's first bytes, without taking them; `None` if it sent none for as long as
/// it may be idle. Under TLS the handshake has told already.
pub(crate) async fn version_of(transport: &Transport, config: &Config) -> Option<HttpVersion> {
    if let Some(version) = transport.agreed_on() {
        return Some(version);
    }
    let first = timeout(config.idle_timeout, begins_as_preface(transport, 1));
    match first.await {
        Err(_) => return None,
        Ok(Ok(true)) => {}
        Ok(Ok(false) | Err(_)) => return Some(HttpVersion::Http1),
    }
    let whole = timeout(
        config.head_timeout,
        begins_as_preface(transport, PREFACE.len()),
    );
    match whole.await {
        Ok(Ok(true)) => Some(HttpVersion::Http2),
        // HTTP/1 says what is wrong with it.
        Err(_) | Ok(Ok(false) | Err(_)) => Some(HttpVersion::Http1),
    }
}

/// Whether what has come begins as the preface does, as soon as `enough` bytes of it have.
async fn begins_as_preface(transport: &Transport, enough: usize) -> io::Result<bool> {
    std::future::poll_fn(|cx| {
        loop {
            let mut space = [0; PREFACE.len()];
            let seen = ready!(transport.poll_peek(cx, &mut space))?;
            if seen.is_empty() || !PREFACE.starts_with(seen) {
                return Poll::Ready(Ok(false));
            }
            if seen.len() >= enough {
                return Poll::Ready(Ok(true));
            }
            transport.wait_for_more();
        }
    })
    .await
}
