use opentelemetry_proto::tonic::common::v1::any_value;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family as Counters;
use prometheus_client::metrics::gauge::Gauge as TestGauge;
use prometheus_client::metrics::histogram::Histogram as TestHistogram;
use prometheus_client::registry::{Registry, Unit};

use super::*;

const PERIOD: Period = Period {
    from_ns: 10,
    to_ns: 20,
};

fn text_of(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

fn labels_of(attributes: &[KeyValue]) -> Vec<(String, String)> {
    let label = |attribute: &KeyValue| match attribute.value.clone().unwrap().value.unwrap() {
        any_value::Value::StringValue(value) => (attribute.key.clone(), value),
        other => panic!("no text: {other:?}"),
    };
    attributes.iter().map(label).collect()
}

#[test]
fn counters_keep_their_labels_whatever_is_in_them() {
    let mut registry = Registry::with_prefix("skewtap");
    let counters = Counters::<Vec<(String, String)>, Counter>::default();
    let odd = "a \"quoted\" \\ back,slash}\nline";
    let labels = vec![
        ("route".to_owned(), odd.to_owned()),
        ("empty".to_owned(), String::new()),
    ];
    counters.get_or_create(&labels).inc_by(7);
    registry.register("spans", "Spans that came", counters);
    let metrics = read(&text_of(&registry), PERIOD);
    assert_eq!(metrics.len(), 1);
    let metric = &metrics[0];
    assert_eq!(metric.name, "skewtap_spans");
    assert_eq!(metric.description, "Spans that came");
    let Some(Data::Sum(sum)) = &metric.data else {
        panic!("no sum: {metric:?}");
    };
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality, 2);
    let point = &sum.data_points[0];
    assert_eq!(point.value, Some(Value::AsDouble(7.0)));
    assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (10, 20));
    assert_eq!(labels_of(&point.attributes), labels);
}

#[test]
fn a_histogram_has_each_value_in_one_bucket() {
    let mut registry = Registry::default();
    let histogram = TestHistogram::new([0.1, 1.0, 10.0]);
    for value in [0.05, 0.5, 0.7, 100.0] {
        histogram.observe(value);
    }
    registry.register_with_unit("gap", "Gap", Unit::Seconds, histogram);
    let metrics = read(&text_of(&registry), PERIOD);
    let metric = &metrics[0];
    assert_eq!(
        (metric.name.as_str(), metric.unit.as_str()),
        ("gap_seconds", "s")
    );
    let Some(Data::Histogram(histogram)) = &metric.data else {
        panic!("no histogram: {metric:?}");
    };
    let point = &histogram.data_points[0];
    assert_eq!(point.bucket_counts, [1, 2, 0, 1]);
    assert_eq!(point.explicit_bounds, [0.1, 1.0, 10.0]);
    assert_eq!((point.count, point.sum), (4, Some(101.25)));
}

#[test]
fn a_gauge_may_be_negative_and_what_is_no_metric_is_passed_over() {
    let mut registry = Registry::default();
    let gauge = TestGauge::<i64>::default();
    gauge.set(-3);
    registry.register("offset", "Offset", gauge);
    registry.register(
        "never",
        "Never counted",
        Counters::<Vec<(String, String)>, Counter>::default(),
    );
    let text = format!("{}nonsense\n# \n{{\nx{{a=\"b\n", text_of(&registry));
    let metrics = read(&text, PERIOD);
    assert_eq!(metrics.len(), 1, "{metrics:?}");
    let Some(Data::Gauge(gauge)) = &metrics[0].data else {
        panic!("no gauge: {metrics:?}");
    };
    assert_eq!(gauge.data_points[0].value, Some(Value::AsDouble(-3.0)));
}
