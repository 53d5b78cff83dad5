//! An exchange that waits for what belongs to it.
//!
//! A record as the proxy ships it takes some kilobytes. While few wait they are held as they are;
//! beyond that they are packed to about an eighth, and unpacked when they are judged.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use skewtap_core::exchange::ExchangeRecord;
use skewtap_core::ids::SpanId;

use crate::observation::Observation;
use crate::otlp_decode::decode;
use crate::otlp_encode;
use crate::store::packed::{self, Packer};

/// An exchange, and what the matcher has to know of it at all times.
#[derive(Debug)]
pub(super) struct HeldExchange {
    span_id: SpanId,
    stamps: usize,
    client_expected: bool,
    server_expected: bool,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Plain(Box<ExchangeRecord>),
    Packed(Box<[u8]>),
}

impl HeldExchange {
    /// Holds `record`, packed where there is a `packer`.
    pub(super) fn new(record: Box<ExchangeRecord>, packer: Option<&mut Packer>) -> Self {
        Self {
            span_id: record.span_id,
            stamps: record.milestones.iter().count(),
            // Where the proxy had to add the context, the client has no span of this id.
            client_expected: record.sampled && record.parent_span_id.is_some(),
            server_expected: record.sampled && record.up.is_some(),
            form: match packer.and_then(|packer| pack(&record, packer)) {
                Some(packed) => Form::Packed(packed),
                None => Form::Plain(record),
            },
        }
    }

    /// The exchange's own span.
    pub(super) const fn span_id(&self) -> SpanId {
        self.span_id
    }

    /// How many stamps it has.
    pub(super) const fn stamps(&self) -> usize {
        self.stamps
    }

    /// Whether a client's span should come.
    pub(super) const fn client_expected(&self) -> bool {
        self.client_expected
    }

    /// Whether a server's span should come.
    pub(super) const fn server_expected(&self) -> bool {
        self.server_expected
    }

    /// The exchange. `None` if it was packed and does not come back, which is a defect.
    pub(super) fn record(&self) -> Option<ExchangeRecord> {
        match &self.form {
            Form::Plain(record) => Some((**record).clone()),
            Form::Packed(packed) => {
                let record = unpack(packed);
                if record.is_none() {
                    tracing::error!(span = %self.span_id, "a packed exchange does not come back");
                }
                record
            }
        }
    }
}

/// `None` where it cannot be packed, for want of memory.
fn pack(record: &ExchangeRecord, packer: &mut Packer) -> Option<Box<[u8]>> {
    let packed = packer.pack(&otlp_encode::encode_exchange(record)).ok()?;
    Some(packed.into_boxed_slice())
}

fn unpack(packed: &[u8]) -> Option<ExchangeRecord> {
    let bytes = packed::unpack(packed).ok()?;
    let request = ExportTraceServiceRequest::decode(bytes.as_slice()).ok()?;
    match decode(&request).observations.pop()? {
        Observation::Exchange(record) => Some(*record),
        Observation::Span(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skewtap_simulator::scenario::{Meanwhile, Scenario};
    use skewtap_simulator::world::World;

    #[test]
    fn what_is_held_packed_is_the_same_and_smaller() {
        let scenario = Scenario {
            unread_ns: 400_000_000,
            meanwhile: Meanwhile::SleepsBlind,
            ..Scenario::healthy(20_000_000)
        };
        let [record] = <[_; 1]>::try_from(scenario.observe(&World::PLAIN).exchanges).unwrap();
        let mut packer = Packer::new().unwrap();
        let held = HeldExchange::new(Box::new(record.clone()), Some(&mut packer));
        let Form::Packed(packed) = &held.form else {
            panic!("it is not packed")
        };
        let plain = otlp_encode::encode_exchange(&record).len();
        assert!(packed.len() * 3 < plain, "{} of {plain}", packed.len());
        assert_eq!(held.stamps(), record.milestones.iter().count());
        assert_eq!(held.record(), Some(record));
    }
}
