//! A head that is taken for unambiguous is so for a reader of its own, and the other way round.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skewtap_proxy::fuzzing::is_unambiguous;

fuzz_target!(|head: &[u8]| {
    let verdict = is_unambiguous(head);
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    // Only what is well-formed is asked about.
    let Ok(httparse::Status::Complete(length)) = request.parse(head) else {
        return;
    };
    if length != head.len() || head.starts_with(b"\r") || head.starts_with(b"\n") {
        return;
    }
    let values = |name: &str| -> Vec<&[u8]> {
        let named = request
            .headers
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value).collect()
    };
    let (lengths, codings, hosts) = (
        values("content-length"),
        values("transfer-encoding"),
        values("host"),
    );
    let is_chunked = |value: &&[u8]| value.trim_ascii().eq_ignore_ascii_case(b"chunked");
    let line_feeds = head.iter().filter(|byte| **byte == b'\n').count();
    let line_ends = head.windows(2).filter(|two| two == b"\r\n").count();
    let needs_host = request.version == Some(1);
    let foreign = |value: &[u8]| value.iter().any(|byte| b" \t/\\@?#,".contains(byte));
    let expected = line_feeds == line_ends
        && lengths.len() + codings.len() <= 1
        && codings.iter().all(is_chunked)
        && hosts.len() <= 1
        && (hosts.len() == 1 || !needs_host)
        && !hosts.iter().any(|host| foreign(host.trim_ascii()));
    assert_eq!(verdict, expected, "{:?}", String::from_utf8_lossy(head));
});
