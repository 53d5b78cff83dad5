//! The begin of an HTTP/2 connection to a server.

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use hyper_util::rt::TokioIo;

use crate::config::Config;
use crate::exchange_error::ExchangeError;
use crate::stamped_io::StampedIo;

/// What drives such a connection.
pub(crate) type StreamConnection = Connection<TokioIo<StampedIo>, Bytes>;

/// Begins to speak HTTP/2; the server's settings are not waited for.
///
/// # Errors
/// The connection broke already.
pub(crate) async fn handshake(
    config: &Config,
    io: StampedIo,
) -> Result<(SendRequest<Bytes>, StreamConnection), ExchangeError> {
    let builder = super::client_builder(config);
    let made = builder.handshake(TokioIo::new(io)).await;
    made.map_err(ExchangeError::from_h2)
}
