//! What one OTLP request says before its spans.

use bytes::Bytes;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use skewtap_core::exchange_attributes::{AttributeValue, DROPPED_KEY, SCOPE};

use super::key_value::key_value;
use super::protobuf::{bytes, message, opening};

/// The name of the proxy as a service.
pub(super) const SERVICE: &str = "skewtap-proxy";

/// What is the same in all requests of a process.
#[derive(Debug)]
pub(super) struct Envelope {
    /// A `Resource`, as a field of a `ResourceSpans`.
    resource: Vec<u8>,
}

impl Envelope {
    /// The envelope of this process.
    pub(super) fn new() -> Self {
        let instance = RandomIdGenerator::default().new_trace_id().to_string();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = host.as_deref().map(str::trim);
        let mut resource = Vec::new();
        message(&mut resource, 1, |out| {
            let text = |(key, value)| key_value(out, 1, key, AttributeValue::Text(value));
            let service = ("service.name", SERVICE);
            let instance = ("service.instance.id", instance.as_str());
            let host = host.map(|host| ("host.name", host));
            [service, instance].into_iter().chain(host).for_each(text);
        });
        Self { resource }
    }

    /// A gRPC message as far as `spans` bytes of spans: a byte that says it is not compressed,
    /// four that give its length, and an `ExportTraceServiceRequest` which tells that `dropped`
    /// records were dropped so far.
    pub(super) fn before(&self, spans: usize, dropped: u64) -> Bytes {
        let mut scope = Vec::with_capacity(128);
        message(&mut scope, 1, |out| {
            bytes(out, 1, SCOPE.as_bytes());
            bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
            let dropped = AttributeValue::Int(i64::try_from(dropped).unwrap_or(i64::MAX));
            key_value(out, 3, DROPPED_KEY, dropped);
        });
        let mut of_resource = self.resource.clone();
        opening(&mut of_resource, 2, scope.len().saturating_add(spans));
        of_resource.extend_from_slice(&scope);
        let mut request = Vec::with_capacity(of_resource.len().saturating_add(16));
        opening(&mut request, 1, of_resource.len().saturating_add(spans));
        request.extend_from_slice(&of_resource);
        let length = request.len().saturating_add(spans);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let mut message = Vec::with_capacity(request.len().saturating_add(5));
        message.push(0);
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(&request);
        message.into()
    }
}
