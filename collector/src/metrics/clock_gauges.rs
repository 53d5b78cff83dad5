//! How far the clocks of services are from the proxy's, as far as it is certain.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use skewtap_core::clock::Interval;
use skewtap_core::verdict::Verdict;

use super::verdict_metrics::seconds;

/// How long the largest offset of a service's instances stands, in nanoseconds: a service whose
/// one bad instance is busy now and then is to stay in sight.
const STANDS_NS: i64 = 300_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BoundOfService {
    side: &'static str,
    service: String,
    bound: &'static str,
}

/// One pair of gauges for each side and service.
#[derive(Debug)]
pub(super) struct ClockGauges {
    most_services: usize,
    shown: Mutex<BTreeMap<(&'static str, String), Shown>>,
    offset: Family<BoundOfService, Gauge<f64, AtomicU64>>,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    bounds: Interval,
    at_ns: i64,
}

impl ClockGauges {
    /// No service yet, and at most `most_services` ever; further ones are not shown.
    pub(super) fn new(most_services: usize) -> Self {
        Self {
            most_services,
            shown: Mutex::default(),
            offset: Family::default(),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "clock_offset",
            "Bounds on a service's clock minus the proxy's, of the instance that is furthest off",
            Unit::Seconds,
            self.offset.clone(),
        );
    }

    /// Takes what a verdict knows of the clocks of its two sides.
    pub(super) fn note(&self, verdict: &Verdict) {
        let at_ns = verdict.started_ns.unwrap_or_default();
        let quality = &verdict.quality;
        if let (Some(service), Some(clock)) = (&verdict.client_service, quality.client_clock) {
            self.show(
                "client",
                service,
                Shown {
                    bounds: clock.bounds(),
                    at_ns,
                },
            );
        }
        if let (Some(service), Some(clock)) = (&verdict.server_service, quality.server_clock) {
            self.show(
                "server",
                service,
                Shown {
                    bounds: clock.bounds(),
                    at_ns,
                },
            );
        }
    }

    fn show(&self, side: &'static str, service: &str, new: Shown) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (side, service.to_owned());
        let stands = shown.get(&key).is_some_and(|old| {
            proven_ns(old.bounds) > proven_ns(new.bounds)
                && new.at_ns.saturating_sub(old.at_ns) < STANDS_NS
        });
        if stands || (shown.len() >= self.most_services && !shown.contains_key(&key)) {
            return;
        }
        shown.insert(key, new);
        for (bound, ns) in [("lower", new.bounds.lo()), ("upper", new.bounds.hi())] {
            let labels = BoundOfService {
                side,
                service: service.to_owned(),
                bound,
            };
            self.offset.get_or_create(&labels).set(seconds(ns));
        }
    }
}

/// How far off a clock is at least, in nanoseconds.
fn proven_ns(bounds: Interval) -> i64 {
    bounds.lo().max(bounds.hi().saturating_neg()).max(0)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use skewtap_core::audit::{KnownClocks, audit};
    use skewtap_core::policy::Policy;
    use skewtap_simulator::scenario::Scenario;
    use skewtap_simulator::world::World;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn verdict(client_ahead_ns: i64, later_ns: i64) -> Verdict {
        let world = World {
            client_ahead_ns,
            ..World::PLAIN
        };
        let observed = Scenario::healthy(SECOND).observe(&world);
        let mut verdict = audit(&observed, &KnownClocks::default(), &Policy::default()).unwrap();
        verdict.started_ns = verdict.started_ns.map(|ns| ns + later_ns);
        verdict
    }

    /// The lower and upper bound shown for the client.
    fn shown(gauges: &ClockGauges) -> (f64, f64) {
        let bound = |bound| {
            let service = "shop-client".to_owned();
            gauges
                .offset
                .get_or_create(&BoundOfService {
                    side: "client",
                    service,
                    bound,
                })
                .get()
        };
        (bound("lower"), bound("upper"))
    }

    #[test]
    fn the_instance_furthest_off_stays_in_sight_for_a_while() {
        let gauges = ClockGauges::new(10);
        gauges.note(&verdict(-7 * SECOND, 0));
        gauges.note(&verdict(0, SECOND));
        let (lower, upper) = shown(&gauges);
        assert!(
            lower <= -7.0 && (-7.0..-6.9).contains(&upper),
            "{lower} {upper}"
        );
        gauges.note(&verdict(0, STANDS_NS + SECOND));
        let (lower, upper) = shown(&gauges);
        assert!(
            (-0.01..=0.0).contains(&lower) && (0.0..0.01).contains(&upper),
            "{lower} {upper}"
        );
    }

    #[test]
    fn a_service_too_many_is_not_shown() {
        let gauges = ClockGauges::new(1);
        gauges.note(&verdict(SECOND, 0));
        let mut registry = Registry::default();
        gauges.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains(r#"clock_offset_seconds{side="client",service="shop-client""#));
        assert!(!text.contains(r#"side="server""#), "{text}");
    }
}
