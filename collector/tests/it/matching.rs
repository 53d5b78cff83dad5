//! What belongs together is brought together, in whatever order and number it comes.

use std::time::Duration;

use proptest::prelude::*;
use skewtap_collector::matcher::{Match, MatchKind, Matcher, MatcherLimits};
use skewtap_collector::observation::Observation;
use skewtap_core::audit::Observed;
use skewtap_core::ids::SpanId;
use skewtap_core::milestone::{Milestone, Milestones};
use skewtap_core::reported_span::SpanKind;

use super::samples;

const S: i64 = 1_000_000_000;

pub(super) fn observations(call: &Observed) -> Vec<Observation> {
    let exchanges = call.exchanges.iter().cloned();
    let spans = call.client.iter().chain(&call.servers).cloned();
    exchanges
        .map(|exchange| Observation::Exchange(Box::new(exchange)))
        .chain(spans.map(|span| Observation::Span(Box::new(span))))
        .collect()
}

fn matcher() -> Matcher {
    Matcher::new(MatcherLimits::default())
}

/// What is due where the store has nothing.
fn due(matcher: &mut Matcher, now_ns: i64) -> Vec<Match> {
    matcher.take_due(now_ns, |_| None)
}

/// The only match that is due.
pub(super) fn only(due: Vec<Match>) -> Match {
    match <[Match; 1]>::try_from(due) {
        Ok([one]) => one,
        Err(due) => panic!("{} matches are due", due.len()),
    }
}

fn span_id(n: u8) -> SpanId {
    SpanId::from_bytes(&[n; 8]).unwrap()
}

/// A client span with a first attempt that failed at once, and a second one a second later.
fn retried() -> Observed {
    let mut call = samples::healthy(1);
    let mut second = call.exchanges[0].clone();
    second.span_id = span_id(33);
    second.up.as_mut().unwrap().local = "127.0.0.1:42001".to_owned();
    let mut later = Milestones::default();
    for (milestone, stamp) in second.milestones.iter() {
        let (lo, hi) = (stamp.lo() + S, stamp.hi() + S);
        let later_stamp = skewtap_core::clock::Stamp::between(lo, hi, stamp.source());
        later.note(milestone, later_stamp);
    }
    second.milestones = later;
    call.exchanges[0].status = Some(503);
    let mut second_server = call.servers[0].clone();
    second_server.span_id = span_id(22);
    second_server.start_ns += S;
    second_server.end_ns += S;
    second_server.peer_port = Some(42_001);
    call.servers[0].peer_port = Some(42_000);
    call.servers[0].status = Some(503);
    call.exchanges.push(second);
    call.servers.push(second_server);
    let client = call.client.as_mut().unwrap();
    client.end_ns += S;
    call
}

#[test]
fn a_whole_call_is_judged_a_moment_after_its_last_part() {
    let call = samples::healthy(1);
    let mut matcher = matcher();
    for (n, observation) in (1..).zip(observations(&call)) {
        matcher.offer(observation, n, n * S);
    }
    assert!(due(&mut matcher, 3 * S + S / 3).is_empty());
    let found = only(due(&mut matcher, 4 * S));
    assert_eq!(found.kind, MatchKind::Complete);
    assert_eq!(found.observed.exchanges, call.exchanges);
    assert_eq!(found.observed.client, call.client);
    assert_eq!(found.observed.servers, call.servers);
    assert_eq!(matcher.needed_from(), Some(1));
    assert!(due(&mut matcher, 40 * S).is_empty());
    assert_eq!((matcher.open(), matcher.needed_from()), (0, None));
    assert_eq!(matcher.counts(), Default::default());
}

#[test]
fn what_is_missing_is_waited_for_and_then_said() {
    let call = samples::healthy(1);
    let parts = observations(&call);
    for (present, kind) in [
        (vec![0], MatchKind::ExchangeOnly),
        (vec![0, 1], MatchKind::NoServer),
        (vec![0, 2], MatchKind::NoClient),
        (vec![1, 2], MatchKind::NoExchange),
    ] {
        let mut matcher = matcher();
        for part in present {
            matcher.offer(parts[part].clone(), 1, 0);
        }
        assert!(
            due(&mut matcher, 14 * S).is_empty(),
            "{kind:?} was not waited for"
        );
        assert_eq!(only(due(&mut matcher, 15 * S)).kind, kind);
    }
}

#[test]
fn spans_without_a_counterpart_are_let_go_and_counted() {
    let call = samples::healthy(1);
    for part in [1, 2] {
        let mut matcher = matcher();
        matcher.offer(observations(&call)[part].clone(), 1, 0);
        assert!(due(&mut matcher, 149 * S).is_empty());
        assert_eq!(matcher.open(), 1);
        assert!(due(&mut matcher, 150 * S).is_empty());
        assert_eq!((matcher.open(), matcher.counts().unmatched), (0, 1));
    }
}

#[test]
fn what_comes_late_makes_a_second_match_on_more_evidence() {
    let call = samples::healthy(1);
    let parts = observations(&call);
    let mut matcher = matcher();
    matcher.offer(parts[0].clone(), 1, 0);
    let first = only(due(&mut matcher, 15 * S));
    matcher.offer(parts[1].clone(), 2, 60 * S);
    matcher.offer(parts[2].clone(), 3, 60 * S);
    let second = only(due(&mut matcher, 61 * S));
    assert_eq!(second.kind, MatchKind::Complete);
    assert!(second.evidence > first.evidence);
    assert_eq!(matcher.needed_from(), Some(1));
}

#[test]
fn a_duplicate_changes_nothing() {
    let call = samples::healthy(1);
    let mut matcher = matcher();
    for part in observations(&call) {
        matcher.offer(part.clone(), 1, 0);
        matcher.offer(part, 2, 0);
    }
    let found = only(due(&mut matcher, S));
    assert_eq!(found.observed.exchanges.len(), 1);
    assert_eq!(matcher.counts().duplicates, 3);
    for part in observations(&call) {
        matcher.offer(part, 3, 2 * S);
    }
    assert!(due(&mut matcher, 20 * S).is_empty());
}

#[test]
fn an_exchange_sent_again_with_more_stamps_replaces_itself() {
    let call = samples::healthy(1);
    let mut poorer = call.clone();
    let mut fewer = Milestones::default();
    for (milestone, stamp) in call.exchanges[0].milestones.iter() {
        if milestone != Milestone::ClientPickedUp {
            fewer.note(milestone, stamp);
        }
    }
    poorer.exchanges[0].milestones = fewer;
    for order in [[&poorer, &call], [&call, &poorer]] {
        let mut matcher = matcher();
        for call in order {
            for part in observations(call) {
                matcher.offer(part, 1, 0);
            }
        }
        let found = only(due(&mut matcher, S));
        assert_eq!(found.observed.exchanges, call.exchanges);
    }
}

#[test]
fn a_trace_that_is_not_sampled_is_not_waited_for() {
    let mut call = samples::healthy(1);
    call.exchanges[0].sampled = false;
    let mut matcher = matcher();
    matcher.offer(observations(&call)[0].clone(), 1, 0);
    assert_eq!(only(due(&mut matcher, S)).kind, MatchKind::Complete);
}

#[test]
fn where_the_proxy_added_the_context_no_client_span_is_waited_for() {
    let mut call = samples::healthy(1);
    call.exchanges[0].parent_span_id = None;
    call.servers[0].parent_span_id = Some(call.exchanges[0].span_id);
    call.client = None;
    let mut matcher = matcher();
    for part in observations(&call) {
        matcher.offer(part, 1, 0);
    }
    let found = only(due(&mut matcher, S));
    assert_eq!(found.kind, MatchKind::Complete);
    assert_eq!(found.observed.servers, call.servers);
    assert_eq!(found.key.span_id, call.exchanges[0].span_id);
}

#[test]
fn each_attempt_gets_the_server_span_of_its_connection() {
    let call = retried();
    let mut matcher = matcher();
    for part in observations(&call).into_iter().rev() {
        matcher.offer(part, 1, 0);
    }
    let found = only(due(&mut matcher, S));
    assert_eq!(found.observed.exchanges, call.exchanges);
    assert_eq!(found.observed.servers, call.servers);
}

#[test]
fn an_attempt_without_a_connection_gets_no_server_span() {
    let mut call = retried();
    call.exchanges[0].up = None;
    call.servers.remove(0);
    call.servers[0].peer_port = None;
    let mut matcher = matcher();
    for part in observations(&call) {
        matcher.offer(part, 1, 0);
    }
    let found = only(due(&mut matcher, S));
    assert_eq!(found.kind, MatchKind::Complete);
    assert_eq!(found.observed.servers, call.servers);
}

#[test]
fn a_server_span_that_lasts_longer_than_an_attempt_belongs_to_the_other() {
    let mut call = retried();
    call.servers.remove(0);
    call.servers[0].peer_port = None;
    call.servers[0].status = None;
    // The second attempt takes three seconds, and only it can hold a span of two.
    let answered = call.exchanges[1]
        .milestones
        .best(Milestone::UpResponseLast)
        .unwrap();
    call.exchanges[1].milestones.note(
        Milestone::UpResponseLast,
        skewtap_core::clock::Stamp::at(answered.lo() + 3 * S, answered.source()),
    );
    call.servers[0].end_ns = call.servers[0].start_ns + 2 * S;
    call.exchanges[1].status = Some(500);
    call.exchanges[0].status = Some(500);
    let mut matcher = matcher();
    for part in observations(&call) {
        matcher.offer(part, 1, 0);
    }
    let found = only(due(&mut matcher, 15 * S));
    assert_eq!(found.kind, MatchKind::NoServer);
    assert_eq!(found.observed.servers, call.servers);
}

#[test]
fn a_client_span_is_preferred_to_another_kind_with_its_id() {
    let call = samples::healthy(1);
    let mut inner = call.client.clone().unwrap();
    inner.kind = SpanKind::Internal;
    inner.start_ns -= S;
    let mut matcher = matcher();
    matcher.offer(Observation::Span(Box::new(inner)), 1, 0);
    for part in observations(&call) {
        matcher.offer(part, 1, 0);
    }
    assert_eq!(only(due(&mut matcher, S)).observed.client, call.client);
}

#[test]
fn consumers_join_nothing() {
    let mut consumer = samples::healthy(1).client.unwrap();
    consumer.kind = SpanKind::Consumer;
    let mut matcher = matcher();
    matcher.offer(Observation::Span(Box::new(consumer)), 1, 0);
    assert_eq!((matcher.open(), matcher.counts().unjoinable), (0, 1));
}

#[test]
fn room_is_made_by_letting_go_lone_spans_before_exchanges() {
    let mut matcher = Matcher::new(MatcherLimits {
        most_open: 2,
        ..MatcherLimits::default()
    });
    matcher.offer(observations(&samples::healthy(1))[0].clone(), 1, 0);
    matcher.offer(observations(&samples::healthy(2))[1].clone(), 2, 1);
    matcher.offer(observations(&samples::healthy(3))[0].clone(), 3, 2);
    assert_eq!((matcher.open(), matcher.counts().evicted), (2, 1));
    assert!(due(&mut matcher, 3).is_empty());
    matcher.offer(observations(&samples::healthy(4))[0].clone(), 4, 3);
    assert_eq!((matcher.open(), matcher.counts().evicted), (2, 2));
    let let_go = only(due(&mut matcher, 4));
    assert_eq!(let_go.key.trace_id, samples::trace_id(1));
    assert_eq!(let_go.kind, MatchKind::ExchangeOnly);
}

#[test]
fn one_client_span_cannot_hoard_spans() {
    let call = samples::healthy(1);
    let mut matcher = matcher();
    for n in 0..1000 {
        let mut server = call.servers[0].clone();
        server.start_ns += n;
        matcher.offer(Observation::Span(Box::new(server)), 1, 0);
    }
    assert_eq!(matcher.counts().crowded_out, 1000 - 64);
}

#[test]
fn giving_up_frees_the_log_and_judges_what_is_there() {
    let mut matcher = matcher();
    for n in 1..=4 {
        let exchange = observations(&samples::healthy(n))[0].clone();
        matcher.offer(exchange, n.try_into().unwrap(), 0);
    }
    matcher.give_up_before(3);
    assert_eq!(due(&mut matcher, 0).len(), 2);
    assert_eq!((matcher.open(), matcher.needed_from()), (2, Some(3)));
}

proptest! {
    /// Any order and number of the same observations ends in the same matches.
    #[test]
    fn order_and_repetition_do_not_matter(
        order in Just((0..8_usize).flat_map(|part| [part, part]).collect::<Vec<_>>()).prop_shuffle(),
        gaps in prop::collection::vec(0..3 * S, 16),
    ) {
        let mut parts = observations(&retried());
        parts.extend(observations(&samples::asleep(2)));
        let mut in_order = matcher();
        for part in &parts {
            in_order.offer(part.clone(), 1, 0);
        }
        let mut expected = due(&mut in_order, S);
        expected.sort_by_key(|found| found.key);

        let mut shuffled = Matcher::new(MatcherLimits {
            keep_complete: Duration::from_secs(60),
            ..MatcherLimits::default()
        });
        let mut now = 0;
        let mut last = std::collections::BTreeMap::new();
        for (part, gap) in order.into_iter().zip(gaps) {
            now += gap;
            shuffled.offer(parts[part].clone(), 1, now);
            last.extend(due(&mut shuffled, now).into_iter().map(|found| (found.key, found)));
        }
        last.extend(due(&mut shuffled, now + S).into_iter().map(|found| (found.key, found)));
        prop_assert_eq!(last.len(), 2);
        for (found, expected) in last.values().zip(&expected) {
            prop_assert_eq!(found.key, expected.key);
            prop_assert_eq!(found.evidence, expected.evidence);
            prop_assert_eq!(found.kind, MatchKind::Complete);
            prop_assert_eq!(&found.observed.exchanges, &expected.observed.exchanges);
            prop_assert_eq!(&found.observed.client, &expected.observed.client);
            prop_assert_eq!(&found.observed.servers, &expected.observed.servers);
        }
    }

    /// Whatever comes, the number of client spans held stays within the limit.
    #[test]
    fn the_limit_holds(calls in prop::collection::vec((0..40_u64, 0..3_usize), 0..200)) {
        let limits = MatcherLimits { most_open: 5, linger: Duration::ZERO, ..MatcherLimits::default() };
        let mut matcher = Matcher::new(limits);
        for (n, part) in calls {
            matcher.offer(observations(&samples::healthy(n))[part].clone(), 1, 0);
            prop_assert!(matcher.open() <= 5);
        }
    }
}
