//! What a verdict says of what it rests on.

use skewtap_core::audit::{KnownClocks, Observed, audit};
use skewtap_core::policy::Policy;
use skewtap_simulator::scenario::Scenario;
use skewtap_simulator::world::World;

fn tells_of_a_unix_socket(observed: &Observed) -> bool {
    let verdict = audit(observed, &KnownClocks::default(), &Policy::default()).unwrap();
    let mut notes = verdict.quality.notes.iter();
    notes.any(|note| note.contains("Unix socket"))
}

#[test]
fn a_leg_without_the_kernels_times_is_told_of() {
    let mut observed = Scenario::healthy(7_510_000_000).observe(&World::PLAIN);
    assert!(!tells_of_a_unix_socket(&observed));
    observed.exchanges[0].up.as_mut().unwrap().peer = "unix:/run/server.sock".to_owned();
    assert!(tells_of_a_unix_socket(&observed));
}
