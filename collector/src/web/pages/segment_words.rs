//! What each row of a ledger is called on a page.

use skewtap_core::ledger::Segment;

const ALL: [Segment; 13] = [
    Segment::ClientBeforeSend,
    Segment::RequestTransfer,
    Segment::ProxyRequest,
    Segment::ServerBeforeSpan,
    Segment::ServerSpan,
    Segment::ServerAfterSpan,
    Segment::ServerAndNetwork,
    Segment::ProxyResponse,
    Segment::ClientUnread,
    Segment::ClientAfterRead,
    Segment::ClientAfterArrival,
    Segment::BetweenExchanges,
    Segment::Unexplained,
];

/// The segment of that name; `None` for one that a newer version wrote.
pub(super) fn named(name: &str) -> Option<Segment> {
    ALL.into_iter().find(|segment| segment.name() == name)
}

/// A short title.
pub(super) const fn title(segment: Segment) -> &'static str {
    match segment {
        Segment::ClientBeforeSend => "Client, before sending",
        Segment::RequestTransfer => "Request arriving at the proxy",
        Segment::ProxyRequest => "Proxy, passing the request on",
        Segment::ServerBeforeSpan => "Server, before its span",
        Segment::ServerSpan => "Server span",
        Segment::ServerAfterSpan => "Server, after its span",
        Segment::ServerAndNetwork => "Server and network",
        Segment::ProxyResponse => "Proxy, passing the response on",
        Segment::ClientUnread => "Client, response unread",
        Segment::ClientAfterRead => "Client, after reading",
        Segment::ClientAfterArrival => "Client, after the response",
        Segment::BetweenExchanges => "Between two exchanges",
        Segment::Unexplained => "Unexplained",
    }
}

/// When its time passed, to stand after a length: "0.510 s after …".
pub(super) const fn phrase(segment: Segment) -> &'static str {
    match segment {
        Segment::ClientBeforeSend => {
            "after the client's span had started and before its request reached the proxy"
        }
        Segment::RequestTransfer => "from the first byte of the request to its last",
        Segment::ProxyRequest => "in the proxy, before the request was passed on",
        Segment::ServerBeforeSpan => {
            "after the request had been sent and before the server's span started"
        }
        Segment::ServerSpan => "in the server's span",
        Segment::ServerAfterSpan => {
            "after the server's span had ended and before its response was complete"
        }
        Segment::ServerAndNetwork => "between request and response, with no span to tell more",
        Segment::ProxyResponse => "in the proxy, before the response was passed on",
        Segment::ClientUnread => "after the response had arrived and before the client read it",
        Segment::ClientAfterRead => {
            "after the client had read the response and before its span ended"
        }
        Segment::ClientAfterArrival => {
            "after the response had been sent and before the client's span ended"
        }
        Segment::BetweenExchanges => "between two exchanges",
        Segment::Unexplained => "that the stamps do not place in any one segment",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_segment_is_found_by_its_name() {
        for segment in ALL {
            assert_eq!(named(segment.name()), Some(segment));
        }
        assert_eq!(named("of_a_later_version"), None);
    }
}
