//! Trace context: passed through, or added.

use std::io::Write as _;

use crate::harness::{CONTEXT, Running, config, origin};
use crate::wire::head;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn exchange(request: String) -> (String, crate::collector::Shipped) {
    let (address, server) = origin(1, |mut stream| {
        let request = head(&mut stream);
        stream.write_all(OK).unwrap();
        request
    });
    let proxy = Running::start(config(address));
    let mut client = proxy.connect();
    client.write_all(request.as_bytes()).unwrap();
    head(&mut client);
    (server.join().unwrap().remove(0), proxy.shipped())
}

#[test]
fn the_clients_context_passes_untouched_and_names_the_parent() {
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{CONTEXT}tracestate: a=b\r\n\r\n");
    let (got, shipped) = exchange(request.clone());
    assert_eq!(got, request);
    let record = shipped.record;
    assert_eq!(
        record.trace_id.to_string(),
        "4bf92f3577b34da6a3ce929d0e0e4736"
    );
    assert_eq!(
        record.parent_span_id.unwrap().to_string(),
        "00f067aa0ba902b7"
    );
    assert_ne!(Some(record.span_id), record.parent_span_id);
    assert!(record.sampled);
    assert_eq!(shipped.service, "skewtap-proxy");
    assert_eq!(shipped.span_name, "skewtap GET");
}

#[test]
fn without_a_valid_context_one_is_added_that_names_the_exchange() {
    for context in ["", "traceparent: 00-nonsense-01\r\n"] {
        let (got, shipped) = exchange(format!("GET / HTTP/1.1\r\nHost: a\r\n{context}\r\n"));
        let record = shipped.record;
        let added = format!(
            "traceparent: 00-{}-{}-01\r\n",
            record.trace_id, record.span_id
        );
        assert!(got.contains(&added), "{got}");
        assert_eq!(got.matches("traceparent").count(), 1, "{got}");
        assert_eq!(record.parent_span_id, None);
        assert_eq!(record.join_span_id(), record.span_id);
    }
}

#[test]
fn a_context_that_is_not_sampled_stays_so() {
    let context = CONTEXT.replace("-01\r\n", "-00\r\n");
    let (_, shipped) = exchange(format!("GET / HTTP/1.1\r\nHost: a\r\n{context}\r\n"));
    assert!(!shipped.record.sampled);
}
