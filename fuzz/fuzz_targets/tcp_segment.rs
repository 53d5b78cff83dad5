//! A frame of any link type gives a segment or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skewtap_capture::frame::{Frame, LinkType};
use skewtap_capture::tcp_segment::TcpSegment;

fuzz_target!(|input: (u16, u32, &[u8])| {
    let (link, wire_length, bytes) = input;
    let link = LinkType::from_number(i32::from(link));
    let _segment = TcpSegment::parse(&Frame { time_ns: 0, link, wire_length, bytes });
});
