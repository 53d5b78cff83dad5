//! Packets, live or from a file, turned into the wire times of an exchange.
//!
//! - [`http_boundary`]: at which byte of a TCP stream each HTTP/1 message
//!   starts and ends.
#![forbid(unsafe_code)]

pub mod http_boundary;
