//! Calls to make pages of.

use skewtap_core::audit::{KnownClocks, Observed, audit};
use skewtap_core::clock::Stamp;
use skewtap_core::milestone::Milestones;
use skewtap_core::policy::Policy;
use skewtap_core::verdict::Verdict;
use skewtap_core::verdict_json::VerdictJson;
use skewtap_simulator::scenario::{Meanwhile, Scenario};
use skewtap_simulator::world::World;

pub(super) const MS: i64 = 1_000_000;
pub(super) const S: i64 = 1_000 * MS;

/// The response lies unread for 0.51 s while the client sleeps.
pub(super) fn incident() -> Scenario {
    Scenario {
        unread_ns: 510 * MS,
        meanwhile: Meanwhile::SleepsBlind,
        ..Scenario::healthy(7_510 * MS)
    }
}

pub(super) fn observed(scenario: &Scenario) -> Observed {
    scenario.observe(&World::PLAIN)
}

pub(super) fn judged(observed: &Observed) -> Verdict {
    audit(observed, &KnownClocks::default(), &Policy::default()).unwrap()
}

pub(super) fn json(observed: &Observed) -> VerdictJson {
    VerdictJson::from(&judged(observed))
}

pub(super) fn json_of(scenario: &Scenario) -> VerdictJson {
    json(&observed(scenario))
}

pub(super) fn without_client_span(scenario: &Scenario) -> Observed {
    Observed {
        client: None,
        ..observed(scenario)
    }
}

pub(super) fn without_server_span(scenario: &Scenario) -> Observed {
    Observed {
        servers: vec![],
        ..observed(scenario)
    }
}

/// Both spans, and no proxy between them.
pub(super) fn spans_alone(scenario: &Scenario) -> Observed {
    Observed {
        exchanges: vec![],
        ..observed(scenario)
    }
}

/// The first attempt takes 200 ms, the second starts 300 ms later and lies unread for 400 ms; both
/// under one client span.
pub(super) fn retried() -> Observed {
    let mut first = observed(&Scenario::healthy(200 * MS));
    let later_ns = Scenario::healthy(200 * MS).client_ns() + 300 * MS;
    let lagging = Scenario {
        unread_ns: 400 * MS,
        meanwhile: Meanwhile::SleepsBlind,
        ..Scenario::healthy(1_000 * MS)
    };
    let second = observed(&lagging);
    let mut exchange = second.exchanges[0].clone();
    exchange.milestones = later(&exchange.milestones, later_ns);
    let mut server = second.servers[0].clone();
    server.start_ns += later_ns;
    server.end_ns += later_ns;
    let mut client = first.client.take().unwrap();
    client.end_ns = second.client.unwrap().end_ns + later_ns;
    Observed {
        exchanges: vec![first.exchanges[0].clone(), exchange],
        client: Some(client),
        servers: vec![first.servers[0].clone(), server],
    }
}

fn later(milestones: &Milestones, by_ns: i64) -> Milestones {
    let mut moved = Milestones::default();
    for (milestone, stamp) in milestones.iter() {
        let (lo, hi) = (stamp.lo() + by_ns, stamp.hi() + by_ns);
        moved.note(milestone, Stamp::between(lo, hi, stamp.source()));
    }
    moved
}
