//! Attributes read as a record.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::keys::{self, LegKeys};
use super::{AttributeValue, ReadError, VERSION_KEY};
use crate::clock::{Source, Stamp};
use crate::exchange::{ExchangeRecord, Leg, Outcome, RECORD_VERSION};
use crate::ids::{SpanId, TraceId};
use crate::milestone::{Milestone, Milestones, STAMP_PREFIX};

/// Reads a span written by [`super::write`]; attributes it does not know are passed over.
///
/// # Errors
/// [`ReadError`] names the first attribute that is missing or malformed.
pub fn read(
    trace_id: TraceId,
    span_id: SpanId,
    parent_span_id: Option<SpanId>,
    attributes: &BTreeMap<String, AttributeValue>,
) -> Result<ExchangeRecord, ReadError> {
    let from = Reader(attributes);
    let version = from.int(VERSION_KEY)?;
    if version != RECORD_VERSION {
        return Err(ReadError::Version { found: version });
    }
    let has_up = attributes.contains_key(keys::UP.peer);
    Ok(ExchangeRecord {
        trace_id,
        span_id,
        parent_span_id,
        sampled: from.flag(keys::SAMPLED)?,
        method: from.text(keys::METHOD)?,
        scheme: from.text(keys::SCHEME)?,
        authority: from.text(keys::AUTHORITY)?,
        path: from.text(keys::PATH)?,
        status: from.status(keys::STATUS)?,
        outcome: from.outcome(keys::OUTCOME)?,
        request_bytes: from.optional_int(keys::REQUEST_BYTES)?,
        response_bytes: from.optional_int(keys::RESPONSE_BYTES)?,
        down: from.leg(&keys::DOWN)?,
        up: if has_up {
            Some(from.leg(&keys::UP)?)
        } else {
            None
        },
        down_stream: from.optional_json(keys::DOWN_STREAM)?,
        up_stream: from.optional_json(keys::UP_STREAM)?,
        milestones: from.milestones()?,
        client_queue: from.json(keys::CLIENT_QUEUE)?,
        client_process: from.optional_json(keys::CLIENT_PROCESS)?,
        server_queue: from.json(keys::SERVER_QUEUE)?,
        server_process: from.optional_json(keys::SERVER_PROCESS)?,
        sources: from.json(keys::SOURCES)?,
        clock_step_ns: from.int(keys::CLOCK_STEP)?,
    })
}

struct Reader<'a>(&'a BTreeMap<String, AttributeValue>);

impl Reader<'_> {
    fn get(&self, key: &str) -> Result<&AttributeValue, ReadError> {
        self.0.get(key).ok_or_else(|| ReadError::Missing {
            key: key.to_owned(),
        })
    }

    fn int(&self, key: &str) -> Result<i64, ReadError> {
        match self.get(key)? {
            AttributeValue::Int(value) => Ok(*value),
            other => Err(malformed(key, format!("{other:?} is not an integer"))),
        }
    }

    fn optional_int(&self, key: &str) -> Result<Option<i64>, ReadError> {
        if self.0.contains_key(key) {
            self.int(key).map(Some)
        } else {
            Ok(None)
        }
    }

    fn status(&self, key: &str) -> Result<Option<u16>, ReadError> {
        self.optional_int(key)?
            .map(|status| u16::try_from(status).map_err(|e| malformed(key, e.to_string())))
            .transpose()
    }

    fn flag(&self, key: &str) -> Result<bool, ReadError> {
        match self.get(key)? {
            AttributeValue::Bool(value) => Ok(*value),
            other => Err(malformed(key, format!("{other:?} is not a truth value"))),
        }
    }

    fn text(&self, key: &str) -> Result<String, ReadError> {
        match self.get(key)? {
            AttributeValue::Text(value) => Ok(value.clone()),
            other => Err(malformed(key, format!("{other:?} is not a text"))),
        }
    }

    fn json<T: DeserializeOwned>(&self, key: &str) -> Result<T, ReadError> {
        serde_json::from_str(&self.text(key)?).map_err(|e| malformed(key, e.to_string()))
    }

    fn optional_json<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ReadError> {
        if self.0.contains_key(key) {
            self.json(key).map(Some)
        } else {
            Ok(None)
        }
    }

    fn outcome(&self, key: &str) -> Result<Outcome, ReadError> {
        let name = self.text(key)?;
        Outcome::from_name(&name).ok_or_else(|| malformed(key, format!("no outcome {name}")))
    }

    fn leg(&self, keys: &LegKeys) -> Result<Leg, ReadError> {
        Ok(Leg {
            local: self.text(keys.local)?,
            peer: self.text(keys.peer)?,
            earlier_exchanges: self.int(keys.earlier_exchanges)?,
            tcp: self.optional_json(keys.tcp)?,
        })
    }

    /// Stamps of milestones or sources that a later version may add are passed over.
    fn milestones(&self) -> Result<Milestones, ReadError> {
        let mut milestones = Milestones::default();
        let from_prefix = self.0.range(STAMP_PREFIX.to_owned()..);
        for (key, value) in from_prefix.take_while(|(key, _)| key.starts_with(STAMP_PREFIX)) {
            let rest = key.strip_prefix(STAMP_PREFIX).unwrap_or_default();
            let Some((milestone, source)) = rest.rsplit_once('.') else {
                continue;
            };
            let (Some(milestone), Some(source)) =
                (Milestone::from_name(milestone), Source::from_name(source))
            else {
                continue;
            };
            match value {
                AttributeValue::Ints(bounds) => match bounds.as_slice() {
                    [lo, hi] if lo <= hi => {
                        milestones.note(milestone, Stamp::between(*lo, *hi, source));
                    }
                    other => return Err(malformed(key, format!("{other:?} is not [lo, hi]"))),
                },
                other => return Err(malformed(key, format!("{other:?} is not [lo, hi]"))),
            }
        }
        Ok(milestones)
    }
}

fn malformed(key: &str, why: String) -> ReadError {
    ReadError::Malformed {
        key: key.to_owned(),
        why,
    }
}
