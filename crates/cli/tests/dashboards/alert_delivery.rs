//! From a client that sleeps blind to a message, and from its repair to the end of the alert, by way
//! of a real Prometheus and a real Alertmanager.

use super::alertmanager::Alertmanager;
use super::deadline::await_some;
use super::prometheus::{Peers, Prometheus};
use super::receiver::Receiver;
use super::speed_up;
use super::traffic::Traffic;

const ALERT: &str = "SkewtapKnownDefectSeen";
/// A client that sleeps every other second lies asleep when these are over.
const DELAYS_MS: [u32; 3] = [1250, 1500, 1750];

#[test]
fn a_blind_sleep_is_told_and_its_repair_ends_the_alert() {
    let receiver = Receiver::start();
    let alertmanager = Alertmanager::start(receiver.address);
    let traffic = Traffic::start();
    let peers = Peers {
        collector: traffic.collector.address("http"),
        proxy: traffic.proxy.address("admin"),
        alertmanager: Some(alertmanager.address()),
    };
    let prometheus = Prometheus::start(&peers, |text| {
        speed_up::shorter(&speed_up::more_often(text))
    });

    // Until the collector has been watched for longer than the alert looks back.
    await_some("the window to fill", || {
        traffic.send("healthy", &DELAYS_MS);
        prometheus.value("up{job=\"skewtap-collector\"} offset 10s")
    });
    assert!(
        receiver.alerts(ALERT).is_empty(),
        "{:#?}",
        receiver.alerts(ALERT)
    );

    traffic.send("blind-sleep", &DELAYS_MS);
    let told = await_some("the alert", || receiver.alerts(ALERT).first().cloned());
    assert_eq!(told["status"], "firing", "{told:#}");
    assert_eq!(told["labels"]["cause"], "client_blind_sleep", "{told:#}");
    let runbook = &told["annotations"]["runbook_url"];
    assert_eq!(
        runbook, "docs/runbooks.md#skewtapknowndefectseen",
        "{told:#}"
    );

    // The same requests by a client that watches its socket.
    let last = await_some("the end of the alert", || {
        traffic.send("healthy", &DELAYS_MS);
        let alerts = receiver.alerts(ALERT);
        alerts
            .last()
            .filter(|alert| alert["status"] == "resolved")
            .cloned()
    });
    assert_eq!(last["labels"], told["labels"]);
}
