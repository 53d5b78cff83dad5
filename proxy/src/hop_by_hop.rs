//! The headers that are meant for the next hop only (RFC 9110, section 7.6.1).
//!
//! Both legs live and die together, so `close`, `keep-alive` and the
//! parameters in `Keep-Alive` are as true for the other leg, and the proxy gives
//! them as its own. So is an offer to switch protocols, as the proxy carries whatever
//! follows; but for `h2c`, which would hide every exchange after it. `TE: trailers` holds
//! too, because trailers are passed on.
//! Everything else that concerns a single hop is taken out.

use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    UPGRADE,
};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Takes out what concerns one hop only. A message without any such header is left exactly
/// as it is; otherwise the order of the remaining headers is kept.
pub(crate) fn strip(headers: &mut HeaderMap) {
    if !headers.keys().any(concerns_one_hop) {
        return;
    }
    let options = connection_options(headers);
    let switches = offers_to_switch(headers, &options);
    let is_own = |option: &str| is_own(option.as_bytes()) || (switches && option == "upgrade");
    let foreign_options = options.iter().any(|option| !is_own(option));
    let foreign = foreign_options
        || (!switches && headers.contains_key(UPGRADE))
        || headers.contains_key(PROXY_CONNECTION)
        || headers.contains_key(PROXY_AUTHORIZATION)
        || headers.contains_key(PROXY_AUTHENTICATE)
        || headers
            .get_all(TE)
            .iter()
            .any(|value| !asks_for_trailers(value));
    if !foreign {
        return;
    }
    let own: Vec<&str> = options
        .iter()
        .map(String::as_str)
        .filter(|option| is_own(option))
        .collect();
    let own = HeaderValue::from_str(&own.join(", ")).ok();
    let mut connection = own.filter(|value| !value.is_empty());
    let mut name = None;
    for (next, value) in std::mem::take(headers) {
        name = next.or(name);
        let Some(name) = &name else { continue };
        let value = match *name {
            CONNECTION => connection.take(),
            UPGRADE => Some(value).filter(|_| switches),
            PROXY_AUTHORIZATION | PROXY_AUTHENTICATE => None,
            TE => asks_for_trailers(&value).then_some(value),
            _ if *name == PROXY_CONNECTION => None,
            _ if *name == KEEP_ALIVE => Some(value),
            _ if options.iter().any(|option| option == name.as_str()) => None,
            _ => Some(value),
        };
        if let Some(value) = value {
            headers.append(name.clone(), value);
        }
    }
}

/// Whether a header has to be looked at; most messages have none of these.
fn concerns_one_hop(name: &HeaderName) -> bool {
    matches!(
        *name,
        CONNECTION | UPGRADE | PROXY_AUTHORIZATION | PROXY_AUTHENTICATE | TE
    ) || *name == PROXY_CONNECTION
}

/// The options of all `Connection` headers, in lower case.
fn connection_options(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(CONNECTION).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|option| option.trim().to_ascii_lowercase())
        .filter(|option| !option.is_empty())
        .collect()
}

/// Whether another protocol is offered, or chosen, that may be passed on.
fn offers_to_switch(headers: &HeaderMap, options: &[String]) -> bool {
    let h2c = |value: &HeaderValue| {
        let mut protocols = value.as_bytes().split(|byte| *byte == b',');
        protocols.any(|protocol| protocol.trim_ascii().eq_ignore_ascii_case(b"h2c"))
    };
    headers.contains_key(UPGRADE)
        && options.iter().any(|option| option == "upgrade")
        && !headers.get_all(UPGRADE).iter().any(h2c)
}

fn is_own(option: &[u8]) -> bool {
    matches!(option, b"close" | b"keep-alive" | b"te")
}

fn asks_for_trailers(value: &HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"trailers")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(lines: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        strip(&mut headers);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect()
    }

    fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn what_both_legs_share_stays_where_it_is() {
        let all = [
            ("host", "a"),
            ("connection", "keep-alive, TE"),
            ("te", "trailers"),
            ("keep-alive", "timeout=5"),
            ("x-last", "1"),
        ];
        assert_eq!(stripped(&all), lines(&all));
    }

    #[test]
    fn what_concerns_one_hop_goes_and_the_order_stays() {
        let all = [
            ("proxy-connection", "keep-alive"),
            ("host", "a"),
            ("connection", "Upgrade, X-One, close"),
            ("upgrade", "h2c"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("te", "gzip"),
            ("proxy-authorization", "Basic c2VjcmV0"),
            ("x-three", "3"),
        ];
        let left = [
            ("host", "a"),
            ("connection", "close"),
            ("x-two", "2"),
            ("x-three", "3"),
        ];
        assert_eq!(stripped(&all), lines(&left));
    }

    #[test]
    fn an_offer_to_switch_protocols_goes_on() {
        let all = [
            ("host", "a"),
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
        ];
        assert_eq!(stripped(&all), lines(&all));
        // Without the option it is meant for nobody.
        assert_eq!(stripped(&all[2..]), lines(&[]));
    }

    #[test]
    fn headers_of_one_name_stay_several() {
        let all = [("set-cookie", "a"), ("set-cookie", "b"), ("upgrade", "h2c")];
        assert_eq!(stripped(&all), lines(&all[..2]));
    }
}
