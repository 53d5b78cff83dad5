//! An OTLP request, binary or JSON, is decoded or rejected span by span.
#![no_main]

use libfuzzer_sys::fuzz_target;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use skewtap_collector::otlp_decode::decode;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = ExportTraceServiceRequest::decode(bytes) {
        let _decoded = decode(&request);
    }
    if let Ok(request) = serde_json::from_slice::<ExportTraceServiceRequest>(bytes) {
        let _decoded = decode(&request);
    }
});
