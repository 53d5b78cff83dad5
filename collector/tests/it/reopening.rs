//! What comes after a client span was settled is joined with what the store has of it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use skewtap_collector::Config;
use skewtap_collector::matcher::{Match, MatchKey, MatchKind, Matcher, MatcherLimits, Past};
use skewtap_collector::observation::Observation;
use skewtap_core::audit::Observed;
use tempfile::tempdir;

use super::matching::{observations, only};
use super::running::{Running, config, export_call, get, verdict, wait_for};
use super::samples;

const S: i64 = 1_000_000_000;

/// A store that keeps the last match of each key, as the real one does.
#[derive(Default)]
struct Kept(HashMap<MatchKey, Match>);

impl Kept {
    fn take(&mut self, due: &[Match]) {
        for found in due {
            let revised = self.0.insert(found.key, found.clone());
            let before = revised.map_or(0, |revised| revised.evidence);
            assert_eq!(found.revises, before, "it revises what is there");
        }
    }

    fn past(&self, key: MatchKey) -> Option<Past> {
        let found = self.0.get(&key)?;
        let mut past = observations(&found.observed);
        let others = found.others.iter().cloned();
        past.extend(others.map(|span| Observation::Span(Box::new(span))));
        Some(Past {
            evidence: found.evidence,
            observations: past,
        })
    }
}

/// Gives what is due to the store. Where a match turns out not to be the first one of its key,
/// that is put before it.
fn settle(matcher: &mut Matcher, kept: &mut Kept, now_ns: i64) -> Vec<Match> {
    let mut all = Vec::new();
    loop {
        let due = matcher.take_due(now_ns, |key| kept.past(key));
        if due.is_empty() {
            return all;
        }
        for found in due {
            let there = kept.0.get(&found.key).map_or(0, |there| there.evidence);
            if found.revises == there {
                kept.take(std::slice::from_ref(&found));
                all.push(found);
            } else {
                matcher.look_back(found.key, kept.past(found.key));
            }
        }
    }
}

#[test]
fn each_side_that_comes_after_all_was_let_go_completes_the_match() {
    let call = samples::asleep(1);
    let parts = observations(&call);
    for late in 0..3 {
        let mut matcher = Matcher::new(MatcherLimits::default());
        let mut kept = Kept::default();
        for (at, part) in parts.iter().enumerate() {
            if at != late {
                matcher.offer(part.clone(), 1, 0);
            }
        }
        let first = only(settle(&mut matcher, &mut kept, 15 * S));
        settle(&mut matcher, &mut kept, 200 * S);
        assert_eq!(matcher.open(), 0);
        matcher.offer(parts[late].clone(), 2, 300 * S);
        let second = settle(&mut matcher, &mut kept, 315 * S);
        let second = only(second);
        assert_eq!(second.kind, MatchKind::Complete, "{late}");
        assert_eq!(second.revises, first.evidence);
        assert_eq!(second.observed.exchanges, call.exchanges);
        assert_eq!(second.observed.client, call.client);
        assert_eq!(second.observed.servers, call.servers);
    }
}

#[test]
fn what_comes_again_after_all_was_let_go_changes_nothing() {
    let parts = observations(&samples::asleep(1));
    let mut matcher = Matcher::new(MatcherLimits::default());
    let mut kept = Kept::default();
    for part in &parts {
        matcher.offer(part.clone(), 1, 0);
    }
    assert_eq!(settle(&mut matcher, &mut kept, S).len(), 1);
    settle(&mut matcher, &mut kept, 10 * S);
    assert_eq!(matcher.open(), 0);
    for part in &parts {
        matcher.offer(part.clone(), 2, 20 * S);
        assert!(settle(&mut matcher, &mut kept, 200 * S).is_empty());
    }
    assert_eq!((matcher.open(), matcher.counts().unmatched), (0, 0));
}

#[test]
fn what_is_let_go_for_want_of_room_is_joined_as_well() {
    let call = samples::asleep(1);
    let [exchange, client, server] = <[_; 3]>::try_from(observations(&call)).unwrap();
    let mut matcher = Matcher::new(MatcherLimits {
        most_open: 1,
        ..MatcherLimits::default()
    });
    let mut kept = Kept::default();
    matcher.offer(exchange, 1, 0);
    matcher.offer(server, 1, 0);
    settle(&mut matcher, &mut kept, 15 * S);
    settle(&mut matcher, &mut kept, 200 * S);
    matcher.offer(client, 2, 300 * S);
    // Another client span takes its room before it was looked for in the store.
    let other = observations(&samples::asleep(2)).remove(0);
    matcher.offer(other, 3, 300 * S);
    let joined = only(settle(&mut matcher, &mut kept, 300 * S));
    assert_eq!(joined.kind, MatchKind::Complete);
    assert_eq!(joined.observed.client, call.client);
}

proptest! {
    /// Once there is a verdict, it may take however long until the rest comes, once or again.
    #[test]
    fn pauses_do_not_matter(
        first in Just(vec![0, 1, 2]).prop_shuffle(),
        again in prop::collection::vec(0..3_usize, 0..4),
        pauses in prop::collection::vec(prop_oneof![0..S, 200 * S..400 * S], 8),
    ) {
        let call = samples::asleep(1);
        let parts = observations(&call);
        let mut matcher = Matcher::new(MatcherLimits::default());
        let mut kept = Kept::default();
        let mut now = 0;
        // Any two parts make a verdict.
        for part in &first[..2] {
            matcher.offer(parts[*part].clone(), 1, now);
        }
        for (batch, (part, pause)) in (2..).zip(first[2..].iter().chain(&again).zip(pauses)) {
            now += pause;
            settle(&mut matcher, &mut kept, now);
            matcher.offer(parts[*part].clone(), batch, now);
        }
        settle(&mut matcher, &mut kept, now + 500 * S);
        settle(&mut matcher, &mut kept, now + 500 * S);
        prop_assert_eq!(matcher.open(), 0);
        prop_assert_eq!(kept.0.len(), 1);
        let last = kept.0.values().next().unwrap();
        prop_assert_eq!(last.kind, MatchKind::Complete);
        prop_assert_eq!(&last.observed.exchanges, &call.exchanges);
        prop_assert_eq!(&last.observed.client, &call.client);
        prop_assert_eq!(&last.observed.servers, &call.servers);
    }
}

/// A collector that soon lets go of everything.
pub(super) fn forgetful(store: &std::path::Path) -> Config {
    let mut config = config(store);
    config.matcher.keep_complete = Duration::ZERO;
    config.matcher.keep_incomplete = Duration::from_millis(250);
    config
}

/// Waits until nothing is open and nothing is left in the log.
pub(super) async fn settled(http: SocketAddr) {
    wait_for(http, "/metrics", |answer| {
        let text = answer.text();
        text.contains("skewtap_open_client_spans 0\n")
            && text.contains("skewtap_observation_log_bytes 0\n")
    })
    .await;
}

fn without(call: &Observed, late: usize) -> (Observed, Observed) {
    let (mut early, mut rest) = (call.clone(), Observed::default());
    match late {
        0 => rest.exchanges = std::mem::take(&mut early.exchanges),
        1 => rest.client = early.client.take(),
        _ => rest.servers = std::mem::take(&mut early.servers),
    }
    (early, rest)
}

pub(super) async fn revision(http: SocketAddr, n: u64) -> i64 {
    let (trace, span) = (samples::trace_id(n), samples::client_span_id());
    let path = format!("/api/v1/exchanges/{trace}/{span}/case");
    let case = get(http, &path).await.json();
    case["revision"].as_i64().unwrap()
}

#[tokio::test]
async fn late_data_revises_the_verdict_and_is_counted_once() {
    let directory = tempdir().unwrap();
    let collector = Running::start(forgetful(directory.path())).await;
    let (otlp, http) = (collector.addresses.otlp_http, collector.addresses.http);
    for (n, late) in [(1, 0), (2, 1), (3, 2)] {
        let call = samples::asleep(n);
        let (early, late) = without(&call, late);
        export_call(otlp, &early).await;
        verdict(http, n, |_| true).await;
        settled(http).await;
        export_call(otlp, &late).await;
        let whole = verdict(http, n, |v| {
            v.client_seconds.is_some() && v.server_seconds.is_some() && v.wire_seconds.is_some()
        })
        .await;
        assert_eq!(whole.findings.len(), 1, "{whole:?}");
        settled(http).await;
        assert_eq!(revision(http, n).await, 2);
        // A sender that did not see the acknowledgement sends again.
        export_call(otlp, &late).await;
        export_call(otlp, &call).await;
        // Batches are taken in turn, so what is judged of a later one comes after those.
        export_call(otlp, &samples::healthy(10 + n)).await;
        verdict(http, 10 + n, |_| true).await;
        settled(http).await;
        assert_eq!(revision(http, n).await, 2);
    }
    let text = get(http, "/metrics").await.text();
    let sum = |name: &str| -> f64 {
        let lines = text.lines().filter(|line| line.starts_with(name));
        let values = lines.map(|line| line.rsplit_once(' ').unwrap().1);
        values.map(|value| value.parse::<f64>().unwrap()).sum()
    };
    assert_eq!(sum("skewtap_exchanges_total{"), 6.0, "{text}");
    assert_eq!(sum("skewtap_matches_total{"), 6.0, "{text}");
    // One of them had its cause found only when the late exchange came.
    assert_eq!(sum("skewtap_findings_total{"), 3.0, "{text}");
    assert_eq!(sum("skewtap_verdicts_total{outcome=\"new\"}"), 6.0);
    assert_eq!(sum("skewtap_verdicts_total{outcome=\"revised\"}"), 3.0);
    assert_eq!(sum("skewtap_unmatched_client_spans_total"), 0.0);
    collector.stop().await;
}
