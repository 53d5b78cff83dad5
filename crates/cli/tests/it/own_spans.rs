//! The proxy's spans about itself, as OpenTelemetry's variables have them.

use super::finished::end;
use super::otlp_sink::OtlpSink;
use super::program::Running;

/// Runs a proxy from start to end, and gives the names of the spans that `service` sent.
fn own_spans(variables: &[(&str, &str)], service: &str) -> Vec<String> {
    let sink = OtlpSink::start();
    let url = sink.url();
    let arguments = [
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--no-capture",
        "--otlp",
        &url,
    ];
    let proxy = Running::start_with(&arguments, variables);
    assert_eq!(end(proxy), Some(0));
    let spans = sink.spans_of(service);
    spans.into_iter().map(|span| span.name).collect()
}

#[test]
fn they_go_where_the_exchanges_go() {
    assert_eq!(own_spans(&[], "skewtap-proxy"), ["start"]);
}

#[test]
fn the_service_can_be_given_another_name() {
    let variables = [("OTEL_SERVICE_NAME", "edge")];
    assert_eq!(own_spans(&variables, "edge"), ["start"]);
}

#[test]
fn they_can_be_switched_off() {
    for variable in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_TRACES_SAMPLER", "always_off"),
        ("SKEWTAP_LOG", "warn"),
    ] {
        assert!(
            own_spans(&[variable], "skewtap-proxy").is_empty(),
            "{variable:?}"
        );
    }
}
