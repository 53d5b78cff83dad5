//! Where room is short, what was judged goes before what waits for its other side.

use skewtap_collector::matcher::{MatchKind, Matcher, MatcherLimits};
use skewtap_collector::observation::Observation;

use super::samples;

const S: i64 = 1_000_000_000;

/// The spans of both sides of call number `n`, which no proxy saw.
fn sides(n: u64) -> [Observation; 2] {
    let call = samples::healthy(n);
    let [server] = <[_; 1]>::try_from(call.servers).unwrap();
    [call.client.unwrap(), server].map(|span| Observation::Span(Box::new(span)))
}

#[test]
fn calls_are_matched_at_any_rate_when_all_room_is_taken_by_judged_ones() {
    let mut matcher = Matcher::new(MatcherLimits {
        most_open: 10,
        ..MatcherLimits::default()
    });
    let mut matched = 0;
    for round in 0..20 {
        let now_ns = i64::try_from(round).unwrap() * 16 * S;
        // All clients' spans of a round before the first of the servers'.
        let (clients, servers): (Vec<_>, Vec<_>) = (0..10)
            .map(|n| sides(round * 10 + n + 1))
            .map(|[client, server]| (client, server))
            .unzip();
        for span in clients.into_iter().chain(servers) {
            matcher.offer(span, 1, now_ns);
            assert!(matcher.open() <= 10);
        }
        let due = matcher.take_due(now_ns + 15 * S, |_| None);
        assert!(due.iter().all(|found| found.kind == MatchKind::NoExchange));
        matched += due.len();
    }
    assert_eq!(matched, 200);
    // Nothing was lost by it.
    assert_eq!(matcher.counts().evicted, 0);
    assert_eq!(matcher.counts().unmatched, 0);
}
