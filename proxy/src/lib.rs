//! Forwards HTTP between a client and a server and stamps each exchange.
//!
//! Every exchange ends in exactly one [`skewtap_core::exchange::ExchangeRecord`],
//! sent on as an OpenTelemetry span. In reading order:
//!
//! - [`config`]: what can be set;
//! - [`proxy`]: starting, serving and stopping;
//! - `worker`, `downstream`, `service_stack`, `upstream`: the path of a request;
//! - `target`, `routes`, `reach`: which server that is, and the connection to it;
//! - `serving`, `reload`: settings in use, and new ones while connections are served;
//! - `preface`, `http2`: which version a client speaks, and the path of a request on a stream;
//! - `strict_head`: which requests are refused because they can be read in two ways;
//! - [`tls`], [`authority`]: TLS on either leg, and in a server's place;
//! - `tunnel`: what follows when a connection leaves HTTP; `farewell`: how it ends;
//! - `transport`, `stamped_io`, `journal`, `message_log`, `stream_log`: the stamps, taken below HTTP on both legs;
//! - `records_thread`, `finisher`, `record`, `ship`: from stamps to a record, and on its way.
//!
//! What must hold, in this order:
//!
//! - The traffic comes first. Nothing on the path of a request waits for
//!   measurement: what is measured goes into bounded queues without waiting,
//!   and what they refuse is counted.
//! - One connection to the server for each connection from the client, made
//!   when first needed; where streams of HTTP/2 meet a server of HTTP/1, one for each stream
//!   that is open. When one side closes, or closes one half, so does the other.
//! - Nothing is invented: no `100 Continue` of the proxy's own, no `Date`, no
//!   `Via`, no `X-Forwarded-For`. A `traceparent` is added only where the client
//!   sent none that is valid. (RFC 9110 asks for `Via`; it is left out on
//!   purpose, because servers answer differently when they see one.)
//! - Header values and bodies are never recorded, nor is the query of a path.
//!
//! Where the HTTP library does not let bytes through as they came: lines with
//! the same header name are put together at the place of the first; the cuts
//! between chunks may move, and chunk extensions are dropped; a response that
//! lasts until the server closes reaches an HTTP/1.1 client in chunks; trailers
//! are passed on if the head announces them with `Trailer` and, in a response,
//! if the client sent `TE: trailers`. An offer to switch to `h2c` is
//! taken out, so that a connection stays HTTP/1.
#![forbid(unsafe_code)]

pub mod authority;
pub mod config;
#[doc(hidden)]
pub mod fuzzing;
pub mod proxy;
pub mod tls;

mod admin;
mod capture_thread;
mod client_http;
mod connection;
mod delay_histogram;
mod downstream;
mod exchange_error;
mod exchange_layer;
mod farewell;
mod finisher;
mod hop_by_hop;
mod host_pattern;
mod http2;
mod idle_clock;
mod journal;
mod listen;
mod message_log;
mod metrics;
mod moment;
mod note;
mod own_connections;
mod patience;
mod pending;
mod preface;
mod reach;
mod record;
mod records_thread;
mod relayed_body;
mod reload;
mod reply_on_error;
mod routes;
mod service_stack;
mod serving;
mod ship;
mod socket;
mod stamped_io;
mod stream_log;
mod strict_head;
mod target;
mod trace_context;
mod transport;
mod tunnel;
mod upstream;
mod wire_join;
mod worker;

pub use config::Config;
pub use proxy::{Addresses, Proxy, ServeError, StartError};
pub use reload::Reloader;
