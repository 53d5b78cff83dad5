//! Packets, live or from a file, turned into the wire times of an exchange.
//!
//! - [`http_boundary`]: at which byte of a TCP stream each HTTP/1 message
//!   starts and ends.
//! - [`pcap_file`]: the frames of a capture file.
//! - [`frame`], [`tcp_segment`]: a frame, and the TCP segment that it carries.
#![forbid(unsafe_code)]

pub mod frame;
pub mod http_boundary;
pub mod pcap_file;
pub mod tcp_segment;
