use std::sync::Arc;

use http::{HeaderMap, Method, Uri, Version};
use skewtap_core::endpoint::QueueWatch;
use skewtap_host::WatchResult;

use super::*;
use crate::journal::{LegAddresses, RequestFacts, WatchSlot};

const MS: Duration = Duration::from_millis(1);

fn waits() -> Waits {
    Waits {
        watch: MS * 1_000,
        activity: MS * 100,
        packets: MS * 10,
    }
}

fn exchange(id: u64, watch: Option<&WatchSlot>) -> Box<OpenExchange> {
    let address = "127.0.0.1:1".parse().unwrap();
    let (uri, version) = (Uri::from_static("/"), Version::HTTP_11);
    let facts = RequestFacts::of(&Method::GET, &uri, version, &HeaderMap::new());
    let ends = LegAddresses::new(address, address);
    let mut exchange = OpenExchange::bare(id, facts, ends);
    exchange.client_watch = watch.cloned();
    Box::new(exchange)
}

fn ended(outcome: QueueOutcome) -> WatchResult {
    WatchResult {
        queue: QueueWatch {
            outcome,
            polls: 1,
            unread_polls: 0,
        },
        ..WatchResult::not_watched()
    }
}

fn activity() -> Option<Arrival> {
    Some(Arrival {
        kernel: Some((5, 5)),
        user_ns: 6,
        not_before_ns: 0,
    })
}

/// When the only exchange comes out, at a resolution of a millisecond.
fn comes_out_after(pending: &mut Pending, start: Instant) -> (u32, Complete) {
    (0..5_000)
        .find_map(|ms| pending.due(start + MS * ms).map(|complete| (ms, complete)))
        .unwrap()
}

#[test]
fn a_read_response_waits_for_packets_only() {
    let start = Instant::now();
    let slot = WatchSlot::default();
    slot.set(ended(QueueOutcome::Read)).unwrap();
    let mut pending = Pending::new(waits());
    assert!(pending.finished(exchange(1, Some(&slot)), start).is_none());
    let (after, complete) = comes_out_after(&mut pending, start);
    assert_eq!(after, 10);
    assert_eq!(complete.activity, None);
    assert_eq!(pending.next_due(), None);
}

#[test]
fn a_watch_is_waited_for_until_it_ends() {
    let start = Instant::now();
    let slot = WatchSlot::default();
    let mut pending = Pending::new(waits());
    pending.finished(exchange(1, Some(&slot)), start);
    assert!(pending.due(start + MS * 500).is_none());
    slot.set(ended(QueueOutcome::Read)).unwrap();
    pending.look_again(1, start + MS * 500);
    assert_eq!(comes_out_after(&mut pending, start).0, 510);
}

#[test]
fn a_watch_that_never_ends_is_not_waited_for_for_ever() {
    let start = Instant::now();
    let slot = WatchSlot::default();
    let mut pending = Pending::new(waits());
    pending.finished(exchange(1, Some(&slot)), start);
    assert_eq!(comes_out_after(&mut pending, start).0, 3_010);
}

#[test]
fn where_the_queue_tells_nothing_the_next_sign_of_life_is_waited_for() {
    let start = Instant::now();
    for (told, out) in [(Some(40), 50), (None, 110)] {
        let slot = WatchSlot::default();
        slot.set(ended(QueueOutcome::NotHere)).unwrap();
        let mut pending = Pending::new(waits());
        pending.finished(exchange(1, Some(&slot)), start);
        if let Some(ms) = told {
            pending.activity(1, activity(), None, start + MS * ms);
        }
        let (after, complete) = comes_out_after(&mut pending, start);
        assert_eq!(after, out);
        assert_eq!(complete.activity, told.and_then(|_| activity()));
    }
}

#[test]
fn that_no_sign_of_life_will_come_ends_the_wait() {
    let start = Instant::now();
    let mut pending = Pending::new(waits());
    pending.finished(exchange(1, None), start);
    pending.activity(1, None, None, start + MS * 3);
    assert_eq!(comes_out_after(&mut pending, start).0, 13);
}

#[test]
fn news_of_an_unknown_exchange_is_passed_over() {
    let start = Instant::now();
    let mut pending = Pending::new(waits());
    pending.activity(7, activity(), None, start);
    pending.look_again(7, start);
    assert_eq!(pending.next_due(), None);
}

#[test]
fn beyond_the_cap_an_exchange_comes_out_at_once() {
    let start = Instant::now();
    let mut pending = Pending::new(waits());
    let slot = Arc::default();
    let kept = (0..70_000)
        .map(|id| pending.finished(exchange(id, Some(&slot)), start))
        .filter(Option::is_none);
    assert_eq!(kept.count(), MOST_WAITING);
}
