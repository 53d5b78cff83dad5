//! A record written as attributes.

use serde::Serialize;

use super::keys::{self, LegKeys};
use super::{AttributeValue, BorrowedValue, VERSION_KEY};
use crate::endpoint::QueueWatch;
use crate::exchange::{ExchangeRecord, Leg, RECORD_VERSION, Sources};

/// Writes records as attributes, one after the other.
///
/// It keeps the texts that many records in a row have in common, and the memory of the others.
#[derive(Debug, Default)]
pub struct Writer {
    sources: Kept<Sources>,
    client_queue: Kept<QueueWatch>,
    server_queue: Kept<QueueWatch>,
    /// A text that is not kept.
    json: Vec<u8>,
}

impl Writer {
    /// Hands all attributes of `record` to `sink`, each once, in no order that means anything.
    pub fn write<T: AsRef<str>>(
        &mut self,
        record: &ExchangeRecord<T>,
        sink: &mut impl FnMut(&'static str, BorrowedValue<'_>),
    ) {
        sink(VERSION_KEY, AttributeValue::Int(RECORD_VERSION));
        for (key, text) in [
            (keys::METHOD, record.method.as_ref()),
            (keys::SCHEME, record.scheme.as_ref()),
            (keys::PATH, record.path.as_ref()),
            (keys::AUTHORITY, record.authority.as_ref()),
            (keys::OUTCOME, record.outcome.name()),
        ] {
            sink(key, AttributeValue::Text(text));
        }
        sink(keys::SAMPLED, AttributeValue::Bool(record.sampled));
        for (key, int) in [
            (keys::STATUS, record.status.map(i64::from)),
            (keys::REQUEST_BYTES, record.request_bytes),
            (keys::RESPONSE_BYTES, record.response_bytes),
            (keys::CLOCK_STEP, Some(record.clock_step_ns)),
        ] {
            if let Some(int) = int {
                sink(key, AttributeValue::Int(int));
            }
        }
        self.leg(&keys::DOWN, &record.down, sink);
        if let Some(up) = &record.up {
            self.leg(&keys::UP, up, sink);
        }
        self.json(keys::DOWN_STREAM, record.down_stream.as_ref(), sink);
        self.json(keys::UP_STREAM, record.up_stream.as_ref(), sink);
        self.json(keys::CLIENT_PROCESS, record.client_process.as_ref(), sink);
        self.json(keys::SERVER_PROCESS, record.server_process.as_ref(), sink);
        (self.client_queue).write(keys::CLIENT_QUEUE, &record.client_queue, sink);
        (self.server_queue).write(keys::SERVER_QUEUE, &record.server_queue, sink);
        self.sources.write(keys::SOURCES, &record.sources, sink);
        for (milestone, stamp) in record.milestones.iter() {
            let bounds = [stamp.lo(), stamp.hi()];
            sink(
                milestone.stamp_key(stamp.source()),
                AttributeValue::Ints(bounds),
            );
        }
    }

    fn leg<T: AsRef<str>>(
        &mut self,
        keys: &LegKeys,
        leg: &Leg<T>,
        sink: &mut impl FnMut(&'static str, BorrowedValue<'_>),
    ) {
        sink(keys.local, AttributeValue::Text(leg.local.as_ref()));
        sink(keys.peer, AttributeValue::Text(leg.peer.as_ref()));
        sink(
            keys.earlier_exchanges,
            AttributeValue::Int(leg.earlier_exchanges),
        );
        self.json(keys.tcp, leg.tcp.as_ref(), sink);
    }

    fn json<T: Serialize>(
        &mut self,
        key: &'static str,
        value: Option<&T>,
        sink: &mut impl FnMut(&'static str, BorrowedValue<'_>),
    ) {
        let Some(value) = value else { return };
        self.json.clear();
        // The types given here have string keys and no floats, so this cannot fail.
        if serde_json::to_writer(&mut self.json, value).is_ok()
            && let Ok(text) = str::from_utf8(&self.json)
        {
            sink(key, AttributeValue::Text(text));
        }
    }
}

/// The last value that was written, with its text.
#[derive(Debug)]
struct Kept<T>(Option<(T, String)>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Clone + PartialEq + Serialize> Kept<T> {
    fn write(
        &mut self,
        key: &'static str,
        value: &T,
        sink: &mut impl FnMut(&'static str, BorrowedValue<'_>),
    ) {
        if self.0.as_ref().is_none_or(|(kept, _)| kept != value) {
            // As above, this cannot fail.
            let text = serde_json::to_string(value).ok();
            self.0 = text.map(|text| (value.clone(), text));
        }
        if let Some((_, text)) = &self.0 {
            sink(key, AttributeValue::Text(text));
        }
    }
}
