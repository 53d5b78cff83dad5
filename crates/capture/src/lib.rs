//! Packets, live or from a file, turned into the wire times of an exchange.
//!
//! - [`http_boundary`]: at which byte of a TCP stream each HTTP/1 message
//!   starts and ends.
//! - [`http2_boundary`]: the same of each HTTP/2 frame.
//! - [`live`], [`pcap_file`]: frames as they pass, or from a capture file.
//! - [`frame`], [`tcp_segment`]: a frame, and the TCP segment that it carries.
//! - [`tcp_stream`], [`tcp_connection`], [`packet_index`]: when each byte of
//!   each connection passed.
//! - [`wire_times`]: the join of the two: the times of a message.
//!
//! Only [`live`] touches the outside; everything else takes bytes and times
//! and gives values.
#![forbid(unsafe_code)]

pub mod frame;
pub mod http2_boundary;
pub mod http_boundary;
pub mod live;
pub mod packet_index;
pub mod pcap_file;
pub mod tcp_connection;
pub mod tcp_segment;
pub mod tcp_stream;
pub mod wire_times;
