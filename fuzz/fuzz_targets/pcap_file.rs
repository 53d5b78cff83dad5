//! A capture file, whatever is in it, gives frames or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skewtap_capture::pcap_file::PcapFile;
use skewtap_capture::tcp_segment::TcpSegment;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut file) = PcapFile::new(bytes) else { return };
    while let Ok(Some(frame)) = file.next_frame() {
        let _segment = TcpSegment::parse(&frame);
    }
});
