//! A `traceparent` that is read says what was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skewtap_proxy::fuzzing::trace_context;

fuzz_target!(|value: &[u8]| {
    let Some((trace, span, sampled)) = trace_context(value) else {
        return;
    };
    let text = std::str::from_utf8(&value[..55]).unwrap();
    assert_eq!(text[2..53], format!("-{trace}-{span}-"));
    let flags = u8::from_str_radix(&text[53..], 16).unwrap();
    assert_eq!(sampled, flags % 2 == 1);
    assert!(
        text[3..35].bytes().any(|byte| byte != b'0'),
        "a trace id of zeros is none"
    );
    assert!(
        text[36..52].bytes().any(|byte| byte != b'0'),
        "a span id of zeros is none"
    );
    assert!(value.len() == 55 || (&value[..2] != b"00" && value[55] == b'-'));
});
