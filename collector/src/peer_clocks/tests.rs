use skewtap_core::audit::Observed;
use skewtap_core::clock::{Clock, ClockOffset, ProxyClock, Stamp};
use skewtap_core::milestone::Milestones;
use skewtap_simulator::scenario::Scenario;
use skewtap_simulator::world::World;

use super::{MOST_PEERS, PeerClocks};

const S: i64 = 1_000_000_000;
const CLIENT_AHEAD: i64 = 3 * S;
const SERVER_AHEAD: i64 = -7 * S;

/// A call that begins `later_ns` later, between machines whose clocks are seconds off.
fn call(later_ns: i64) -> Observed {
    let world = World {
        client_ahead_ns: CLIENT_AHEAD,
        server_ahead_ns: SERVER_AHEAD,
        endpoints_here: false,
        ..World::PLAIN
    };
    let mut observed = Scenario::healthy(20_000_000).observe(&world);
    for exchange in &mut observed.exchanges {
        let mut later = Milestones::default();
        for (milestone, stamp) in exchange.milestones.iter() {
            let (lo, hi) = (stamp.lo() + later_ns, stamp.hi() + later_ns);
            later.note(milestone, Stamp::between(lo, hi, stamp.source()));
        }
        exchange.milestones = later;
    }
    for span in observed.client.iter_mut().chain(&mut observed.servers) {
        span.start_ns += later_ns;
        span.end_ns += later_ns;
    }
    observed
}

fn learnt(calls: &[Observed]) -> PeerClocks {
    let mut clocks = PeerClocks::new(200);
    for call in calls {
        clocks.learn(call);
    }
    clocks
}

fn contains<C: Clock>(offset: Option<ClockOffset<C, ProxyClock>>, truth: i64) -> bool {
    offset.unwrap().bounds().contains(truth)
}

#[test]
fn the_bounds_of_a_few_calls_contain_the_truth_on_both_sides() {
    let calls: Vec<_> = (0..6).map(|n| call(n * S)).collect();
    let known = learnt(&calls).known(&call(6 * S));
    assert!(contains(known.client, CLIENT_AHEAD), "{known:?}");
    assert!(contains(known.server, SERVER_AHEAD), "{known:?}");
    assert!(
        known.client.unwrap().bounds().width() < 100_000_000,
        "{known:?}"
    );
}

#[test]
fn one_call_alone_is_no_consensus() {
    let known = learnt(&[call(0)]).known(&call(S));
    assert!(known.client.is_none() && known.server.is_none());
}

#[test]
fn another_instance_has_another_clock() {
    let calls: Vec<_> = (0..6).map(|n| call(n * S)).collect();
    let clocks = learnt(&calls);
    let mut other = call(6 * S);
    other.client.as_mut().unwrap().instance = "another".to_owned();
    other.servers[0].instance = String::new();
    let known = clocks.known(&other);
    assert!(known.client.is_none() && known.server.is_none());
}

#[test]
fn answers_of_something_in_between_teach_nothing() {
    let calls: Vec<_> = (0..6)
        .map(|n| {
            let mut call = call(n * S);
            call.exchanges[0].status = Some(503);
            call
        })
        .collect();
    let known = learnt(&calls).known(&call(6 * S));
    assert!(known.client.is_none() && known.server.is_none());
}

#[test]
fn the_peer_not_heard_of_for_longest_is_forgotten() {
    let mut clocks = PeerClocks::new(200);
    let from = |instance: usize, later_ns: i64| {
        let mut call = call(later_ns);
        call.client.as_mut().unwrap().instance = format!("client-{instance}");
        call.servers.clear();
        call
    };
    for n in 0..3 {
        clocks.learn(&from(0, n * S));
        clocks.learn(&from(1, 10 * S + n * S));
    }
    for instance in 2..=MOST_PEERS {
        clocks.learn(&from(instance, 20 * S));
    }
    assert_eq!(clocks.known.len(), MOST_PEERS);
    assert_eq!(clocks.by_age.len(), MOST_PEERS);
    assert!(clocks.known(&from(0, 4 * S)).client.is_none());
    assert!(clocks.known(&from(1, 14 * S)).client.is_some());
}
