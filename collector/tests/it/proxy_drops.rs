//! What proxies could not send is seen where somebody looks: on the health page.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use skewtap_core::exchange_attributes::{DROPPED_KEY, SCOPE};
use tempfile::tempdir;

use super::running::{Running, config, export, get};
use super::samples;

/// The record of call number `n`, by a proxy that says that it has dropped so many until then.
async fn ship(collector: &Running, n: u64, proxy: &str, dropped: i64) {
    let mut request = samples::request(&samples::healthy(n));
    let is_record = |name: &str| name == SCOPE;
    request
        .resource_spans
        .retain(|spans| is_record(&spans.scope_spans[0].scope.as_ref().unwrap().name));
    assert_eq!(request.resource_spans.len(), 1);
    let spans = &mut request.resource_spans[0];
    let instance = Value::StringValue(proxy.to_owned());
    spans.resource.get_or_insert_default().attributes =
        vec![samples::attribute("service.instance.id", instance)];
    let scope = spans.scope_spans[0].scope.as_mut().unwrap();
    scope.attributes = vec![samples::attribute(DROPPED_KEY, Value::IntValue(dropped))];
    export(collector.addresses.otlp_http, &request).await;
}

/// What the page counts, and whether it draws attention to it.
async fn shown(collector: &Running) -> (String, bool) {
    let html = get(collector.addresses.http, "/health").await.text();
    let named = "<code>skewtap_proxy_reported_dropped_records</code>";
    let row = html.lines().find(|line| line.contains(named)).unwrap();
    let (_, cell) = row.split_once("<td").unwrap();
    let (attributes, rest) = cell.split_once('>').unwrap();
    let (count, _) = rest.split_once('<').unwrap();
    (count.to_owned(), attributes.contains("alert"))
}

#[tokio::test]
async fn what_proxies_report_as_dropped_is_on_the_health_page() {
    let directory = tempdir().unwrap();
    let collector = Running::start(config(directory.path())).await;
    ship(&collector, 1, "one", 0).await;
    assert_eq!(shown(&collector).await, ("0".to_owned(), false));
    ship(&collector, 2, "one", 12).await;
    ship(&collector, 3, "other", 5).await;
    // Each says how many in all.
    ship(&collector, 4, "one", 14).await;
    assert_eq!(shown(&collector).await, ("19".to_owned(), true));
    collector.stop().await;
}
