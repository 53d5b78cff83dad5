//! HTTP/2 on either leg.
//!
//! Both legs are driven by `h2` itself, because it names the stream of every request and of
//! every response, which ties each exchange to the frames that the journal sees go by, and
//! because it leaves flow control to whoever takes the bodies: a piece is acknowledged to its
//! sender once it is on its way to its receiver, so a receiver that stalls is felt by the sender.
//!
//! - `serve`: a client's connection, from its first stream to its last;
//! - `stream`: one stream, from its request to the end of its response;
//! - `servers`: the connections to servers that belong to one client's connection;
//! - `asked`: a request on its way, until its response comes;
//! - `stream_body`, `pump`: bodies, with their flow control;
//! - `head`: heads between the versions.

mod asked;
mod head;
mod message_server;
mod pump;
mod serve;
mod servers;
mod stream;
mod stream_body;
mod stream_server;

use crate::config::Config;

pub(crate) use asked::{Answer, StreamAnswer};
pub(crate) use head::{interim_of_http1, request_to_stream, response_to_message};
pub(crate) use pump::{Pump, PumpError};
pub(crate) use serve::serve;
pub(crate) use stream_body::StreamBody;
pub(crate) use stream_server::{StreamConnection, handshake};

/// Bytes of a body that a peer may send on one stream before the other side has taken any.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Bytes of a body that wait in the proxy for the socket, on one stream.
const SEND_BUFFER: usize = 64 * 1024;

fn server_builder(config: &Config) -> h2::server::Builder {
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(connection_window(config))
        .max_concurrent_streams(config.max_streams)
        .max_pending_accept_reset_streams(config.max_streams as usize)
        .max_header_list_size(head_limit(config))
        .max_send_buffer_size(SEND_BUFFER);
    builder
}

fn client_builder(config: &Config) -> h2::client::Builder {
    let mut builder = h2::client::Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(connection_window(config))
        .max_header_list_size(head_limit(config))
        .max_send_buffer_size(SEND_BUFFER);
    builder
}

/// As much as all streams together may send ahead, so that one that stalls holds up no other.
fn connection_window(config: &Config) -> u32 {
    STREAM_WINDOW
        .saturating_mul(config.max_streams)
        .min(i32::MAX.unsigned_abs())
}

fn head_limit(config: &Config) -> u32 {
    u32::try_from(config.max_head_bytes).unwrap_or(u32::MAX)
}
