//! However many matches are due together, a bounded number is given to be judged at once, and the
//! log is needed until the last of them.

use std::time::Duration;

use skewtap_collector::matcher::{MOST_AT_ONCE, Match, Matcher, MatcherLimits};
use skewtap_collector::observation::Observation;

use super::samples;

const S: i64 = 1_000_000_000;

/// One more than fits in two parts.
const CALLS: u64 = 2 * MOST_AT_ONCE as u64 + 1;

/// Holds an exchange of each call, each from a batch of its own that has the call's number.
fn matcher() -> Matcher {
    let mut matcher = Matcher::new(MatcherLimits {
        keep_incomplete: Duration::from_secs(60),
        ..MatcherLimits::default()
    });
    let mut exchange = samples::healthy(1).exchanges.remove(0);
    for n in 1..=CALLS {
        exchange.trace_id = samples::trace_id(n);
        let observation = Observation::Exchange(Box::new(exchange.clone()));
        matcher.offer(observation, n.try_into().unwrap(), 0);
    }
    matcher
}

/// Takes all that is due at `now_ns`; with each part goes where the log was needed from then.
fn parts(matcher: &mut Matcher, now_ns: i64) -> Vec<(Vec<Match>, Option<i64>)> {
    let mut parts = Vec::new();
    while matcher.is_due(now_ns) {
        let part = matcher.take_due(now_ns, |_| None);
        parts.push((part, matcher.needed_from()));
    }
    parts
}

fn assert_each_once(parts: &[(Vec<Match>, Option<i64>)]) {
    let lengths: Vec<usize> = parts.iter().map(|(part, _)| part.len()).collect();
    assert_eq!(lengths, [MOST_AT_ONCE, MOST_AT_ONCE, 1]);
    let all = parts.iter().flat_map(|(part, _)| part);
    let mut traces: Vec<_> = all.map(|found| found.key.trace_id).collect();
    traces.sort_unstable();
    let expected: Vec<_> = (1..=CALLS).map(samples::trace_id).collect();
    assert_eq!(traces, expected);
}

#[test]
fn what_is_due_is_given_in_parts_and_each_once() {
    let mut matcher = matcher();
    let settled = 15 * S;
    assert!(!matcher.is_due(settled - 1));
    let parts = parts(&mut matcher, settled);
    assert_each_once(&parts);
    // They are still open for what comes late.
    assert_eq!(parts[2].1, Some(1));
}

#[test]
fn what_is_let_go_early_is_needed_until_it_was_given() {
    let mut matcher = matcher();
    matcher.give_up_before(i64::MAX);
    assert_eq!((matcher.open(), matcher.needed_from()), (0, Some(1)));
    let parts = parts(&mut matcher, 0);
    assert_each_once(&parts);
    let most = i64::try_from(MOST_AT_ONCE).unwrap();
    let needed: Vec<_> = parts.iter().map(|(_, needed)| *needed).collect();
    assert_eq!(needed, [Some(most + 1), Some(2 * most + 1), None]);
}
