//! For any world and any call, the verdict contains the truth.

use proptest::prelude::*;
use skewtap_core::audit::{KnownClocks, Observed, audit};
use skewtap_core::clock::Interval;
use skewtap_core::ledger::{Ledger, Segment};
use skewtap_core::policy::Policy;
use skewtap_core::verdict::{Lane, Verdict};
use skewtap_simulator::scenario::{Meanwhile, Scenario};
use skewtap_simulator::world::World;

const SECOND: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;

fn judge(observed: &Observed) -> Verdict {
    audit(observed, &KnownClocks::default(), &Policy::default()).unwrap()
}

fn row(ledger: &Ledger, segment: Segment) -> Interval {
    let row = ledger.rows.iter().find(|row| row.segment == segment);
    row.unwrap_or_else(|| panic!("no row {segment}")).within
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let short = 1_000..20 * MS;
    (
        (
            short.clone(),
            short.clone(),
            1_000..5 * MS,
            short.clone(),
            1_000..10 * SECOND,
        ),
        (short.clone(), 1_000..2 * SECOND, short),
        prop_oneof![
            Just(Meanwhile::SleepsBlind),
            Just(Meanwhile::WaitsForSocket),
            Just(Meanwhile::Computes)
        ],
    )
        .prop_map(
            |((before_send_ns, request_ns, proxy_ns, before, server_ns), rest, meanwhile)| {
                let (after_server_span_ns, unread_ns, after_read_ns) = rest;
                Scenario {
                    before_send_ns,
                    request_ns,
                    proxy_ns,
                    before_server_span_ns: before,
                    server_ns,
                    after_server_span_ns,
                    unread_ns,
                    after_read_ns,
                    meanwhile,
                }
            },
        )
}

fn any_world() -> impl Strategy<Value = World> {
    let ahead = prop_oneof![Just(0), -3600 * SECOND..3600 * SECOND];
    (
        ahead.clone(),
        ahead,
        any::<bool>(),
        any::<bool>(),
        20_000..2 * MS,
        any::<bool>(),
    )
        .prop_map(
            |(
                client_ahead_ns,
                server_ahead_ns,
                endpoints_here,
                packets,
                queue_doubt_ns,
                samples,
            )| {
                World {
                    client_ahead_ns,
                    server_ahead_ns,
                    endpoints_here,
                    packets,
                    queue_doubt_ns,
                    samples,
                }
            },
        )
}

proptest! {
    #[test]
    fn the_ledger_closes_to_the_nanosecond(scenario in any_scenario(), world in any_world()) {
        let ledger = judge(&scenario.observe(&world)).ledger.unwrap();
        prop_assert_eq!(ledger.total_ns, scenario.client_ns());
        let sum: i64 = ledger.rows.iter().map(|row| row.counted_ns).sum();
        prop_assert_eq!(sum, ledger.total_ns);
        prop_assert_eq!(ledger.rows.last().unwrap().segment, Segment::Unexplained);
    }

    #[test]
    fn every_row_contains_the_truth(scenario in any_scenario(), world in any_world()) {
        let ledger = judge(&scenario.observe(&world)).ledger.unwrap();
        let mut truth = vec![
            (Segment::ClientBeforeSend, scenario.before_send_ns),
            (Segment::RequestTransfer, scenario.request_ns),
            (Segment::ProxyRequest, scenario.proxy_ns),
            (Segment::ServerBeforeSpan, scenario.before_server_span_ns),
            (Segment::ServerSpan, scenario.server_ns),
            (Segment::ServerAfterSpan, scenario.after_server_span_ns),
            (Segment::ProxyResponse, scenario.proxy_ns),
        ];
        if world.endpoints_here {
            truth.push((Segment::ClientUnread, scenario.unread_ns));
            truth.push((Segment::ClientAfterRead, scenario.after_read_ns));
        } else {
            let after = scenario.unread_ns + scenario.after_read_ns;
            truth.push((Segment::ClientAfterArrival, after));
        }
        for (segment, true_ns) in truth {
            let within = row(&ledger, segment);
            prop_assert!(within.contains(true_ns), "{} is {} of {:?}", segment, true_ns, within);
        }
    }

    #[test]
    fn no_clock_and_no_doubt_flags_a_healthy_call(
        server_ns in 1_000..100 * SECOND,
        world in any_world(),
    ) {
        let verdict = judge(&Scenario::healthy(server_ns).observe(&world));
        prop_assert!(!verdict.flagged, "{:?}", verdict.ledger);
        prop_assert!(verdict.findings.is_empty());
    }

    #[test]
    fn a_long_unread_response_is_flagged_wherever_the_clocks_stand(
        server_ns in 1_000..100 * SECOND,
        unread_ns in 60 * MS..SECOND,
        world in any_world(),
    ) {
        let world = World { endpoints_here: true, samples: true, ..world };
        let meanwhile = Meanwhile::SleepsBlind;
        let scenario = Scenario { unread_ns, meanwhile, ..Scenario::healthy(server_ns) };
        let verdict = judge(&scenario.observe(&world));
        prop_assert!(verdict.flagged);
        prop_assert_eq!(verdict.findings.len(), 1);
        prop_assert_eq!(verdict.findings[0].cause, "client_blind_sleep");
        prop_assert!(verdict.findings[0].within.contains(unread_ns));
        prop_assert!(verdict.findings[0].within.width() <= 5 * MS);
    }

    #[test]
    fn a_remote_client_that_lags_is_flagged_without_blame(
        unread_ns in 60 * MS..SECOND,
        client_ahead_ns in -3600 * SECOND..3600 * SECOND,
    ) {
        let world = World { endpoints_here: false, client_ahead_ns, ..World::PLAIN };
        let scenario = Scenario { unread_ns, ..Scenario::healthy(2 * SECOND) };
        let verdict = judge(&scenario.observe(&world));
        // Nothing tells before from after: the time is certain, its place is not.
        prop_assert!(verdict.flagged);
        prop_assert!(verdict.findings.is_empty());
        prop_assert!(verdict.ledger.unwrap().unexplained_ns() >= unread_ns);
    }

    #[test]
    fn without_a_client_span_the_pick_up_is_its_end(
        scenario in any_scenario(),
        packets in any::<bool>(),
    ) {
        let world = World { packets, ..World::PLAIN };
        let mut observed = scenario.observe(&world);
        let with_span = judge(&observed);
        observed.client = None;
        let verdict = judge(&observed);
        prop_assert_eq!(verdict.gap_ns(), None);
        prop_assert!(verdict.quality.missing.contains(&"client_span"));
        let ledger = verdict.ledger.unwrap();
        let sum: i64 = ledger.rows.iter().map(|row| row.counted_ns).sum();
        prop_assert_eq!(sum, ledger.total_ns);
        prop_assert!(row(&ledger, Segment::ClientUnread).contains(scenario.unread_ns));
        prop_assert_eq!(verdict.flagged, with_span.flagged);
        prop_assert_eq!(verdict.findings, with_span.findings);
    }
}

#[test]
fn a_remote_servers_span_is_drawn_within_the_wait_for_its_response() {
    let scenario = Scenario {
        before_server_span_ns: 40 * MS,
        after_server_span_ns: 10 * MS,
        ..Scenario::healthy(SECOND)
    };
    for server_ahead_ns in [0, -3_600 * SECOND, 3_600 * SECOND] {
        let world = World {
            endpoints_here: false,
            server_ahead_ns,
            ..World::PLAIN
        };
        let verdict = judge(&scenario.observe(&world));
        let bar = |lane: Lane, name: &str| {
            let mut bars = verdict.bars.iter();
            let found = bars.find(|bar| bar.lane == lane && bar.name == name);
            found.unwrap().clone()
        };
        let (wait, span) = (bar(Lane::Wire, "waiting"), bar(Lane::Server, "span"));
        assert!(span.start.lo() >= wait.start.lo() && span.end.hi() <= wait.end.hi() + MS);
        let truth = wait.start.middle() + 40 * MS;
        assert!(span.start.widened(MS).contains(truth), "{span:?}");
        assert!(span.end.widened(MS).contains(truth + SECOND), "{span:?}");
        // No wider than the two rows beside it leave room for.
        assert!(span.start.width() <= 51 * MS && span.end.width() <= 51 * MS);
    }
}

#[test]
fn a_clock_off_by_seconds_on_the_same_machine_is_said() {
    let world = World {
        client_ahead_ns: 5 * SECOND,
        ..World::PLAIN
    };
    let verdict = judge(&Scenario::healthy(SECOND).observe(&world));
    let kinds: Vec<_> = verdict.faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, ["clock_disagreement"]);
    let offset = verdict.quality.client_clock.unwrap().bounds();
    assert!(offset.contains(5 * SECOND), "{offset:?}");
    assert!(offset.width() < 5 * MS, "{offset:?}");
}

#[test]
fn a_server_that_goes_on_after_its_response_gives_a_negative_gap() {
    let mut observed = Scenario::healthy(SECOND).observe(&World::PLAIN);
    observed.servers[0].end_ns += 5 * SECOND;
    let verdict = judge(&observed);
    assert!(verdict.gap_ns().unwrap() < -4 * SECOND);
    let kinds: Vec<_> = verdict.faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, ["server_outlasts_wire"]);
    let statement = &verdict.faults[0].statement;
    assert!(statement.contains("at least 4.99"), "{statement}");
    assert!(statement.contains(" s longer"), "{statement}");
    assert!(!verdict.flagged);
}

#[test]
fn a_client_span_that_ends_with_the_head_is_a_fault_not_a_gap() {
    let mut observed = Scenario::healthy(SECOND).observe(&World::PLAIN);
    observed.exchanges[0].response_bytes = Some(1 << 20);
    let span = observed.client.as_mut().unwrap();
    span.end_ns -= 30 * MS;
    observed.exchanges[0].milestones.note(
        skewtap_core::milestone::Milestone::DownResponseHead,
        skewtap_core::clock::Stamp::at(span.end_ns - MS, skewtap_core::clock::Source::Packet),
    );
    let verdict = judge(&observed);
    let kinds: Vec<_> = verdict.faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, ["client_span_ends_early"]);
    assert!(!verdict.flagged);
    let ledger = verdict.ledger.unwrap();
    assert_eq!(
        ledger.rows.iter().map(|row| row.counted_ns).sum::<i64>(),
        ledger.total_ns
    );
}

#[test]
fn two_spans_without_an_exchange_give_an_unexplained_gap() {
    let mut observed = Scenario::healthy(7 * SECOND).observe(&World::PLAIN);
    observed.exchanges.clear();
    let span = observed.client.as_mut().unwrap();
    span.end_ns += SECOND / 2;
    let verdict = judge(&observed);
    assert!(verdict.flagged);
    assert!(verdict.gap_ns().unwrap() >= SECOND / 2);
    assert!(verdict.quality.missing.contains(&"exchange"));
    assert_eq!(
        verdict.ledger.unwrap().unexplained_ns(),
        verdict.client.unwrap().lo() - 7 * SECOND
    );
}

#[test]
fn a_lone_span_gives_no_verdict() {
    let mut observed = Scenario::healthy(SECOND).observe(&World::PLAIN);
    observed.exchanges.clear();
    observed.servers.clear();
    assert_eq!(
        audit(&observed, &KnownClocks::default(), &Policy::default()),
        None
    );
}

#[test]
fn three_attempts_under_one_span_leave_exact_pauses_between_them() {
    let mut observed = Scenario::healthy(200 * MS).observe(&World::PLAIN);
    let (attempt, server) = (observed.exchanges[0].clone(), observed.servers[0].clone());
    for after_ns in [1_200 * MS, 3_400 * MS] {
        let mut again = attempt.clone();
        again.milestones = Default::default();
        for (milestone, stamp) in attempt.milestones.iter() {
            let (lo, hi) = (stamp.lo() + after_ns, stamp.hi() + after_ns);
            let stamp = skewtap_core::clock::Stamp::between(lo, hi, stamp.source());
            again.milestones.note(milestone, stamp);
        }
        observed.exchanges.push(again);
        let (start_ns, end_ns) = (server.start_ns + after_ns, server.end_ns + after_ns);
        observed
            .servers
            .push(skewtap_core::reported_span::ReportedSpan {
                start_ns,
                end_ns,
                ..server.clone()
            });
    }
    observed.client.as_mut().unwrap().end_ns += 3_400 * MS;
    let verdict = judge(&observed);
    let ledger = verdict.ledger.unwrap();
    assert_eq!(
        ledger.rows.iter().map(|row| row.counted_ns).sum::<i64>(),
        ledger.total_ns
    );
    let pauses: Vec<_> = ledger
        .rows
        .iter()
        .filter(|row| row.segment == Segment::BetweenExchanges)
        .collect();
    // Each attempt lasts from its first byte to its pick-up.
    let attempt_ns = 200 * MS + 100_000 + 2 * 60_000 + 150_000 + 120_000 + 80_000;
    assert_eq!(pauses.len(), 2);
    assert!(
        pauses[0].within.contains(1_200 * MS - attempt_ns),
        "{:?}",
        pauses[0]
    );
    assert!(
        pauses[1].within.contains(2_200 * MS - attempt_ns),
        "{:?}",
        pauses[1]
    );
    assert!(!verdict.flagged);
    assert!(verdict.faults.is_empty(), "{:?}", verdict.faults);
    let bars_named = |name| verdict.bars.iter().filter(move |bar| bar.name == name);
    let whose: Vec<_> = bars_named("waiting").map(|bar| bar.exchange).collect();
    assert_eq!(whose, [Some(0), Some(1), Some(2)]);
    let whose: Vec<_> = bars_named("span").map(|bar| bar.exchange).collect();
    assert_eq!(whose, [None, Some(0), Some(1), Some(2)]);
}
