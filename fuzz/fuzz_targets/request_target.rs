//! A request for a whole URL goes to the host in it, and nobody is told a password.
#![no_main]

use http::{HeaderValue, Uri};
use libfuzzer_sys::fuzz_target;
use skewtap_proxy::fuzzing::forwarded;

fuzz_target!(|input: (&[u8], &[u8])| {
    let (target, host) = input;
    let (Ok(uri), Ok(host)) = (Uri::try_from(target), HeaderValue::from_bytes(host)) else {
        return;
    };
    let Some((to, port, sent, sent_host)) = forwarded(&uri, &host) else {
        return;
    };
    let authority = uri.authority().unwrap();
    assert_eq!(
        to,
        authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
    );
    let usual = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    assert_eq!(port, authority.port_u16().unwrap_or(usual));
    assert!(
        sent.authority().is_none() && sent.scheme().is_none(),
        "{sent}"
    );
    assert_eq!(sent.query(), uri.query());
    assert!(!sent_host.as_bytes().contains(&b'@'), "{sent_host:?}");
});
