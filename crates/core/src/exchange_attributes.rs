//! An [`ExchangeRecord`] as the attributes of an OpenTelemetry span, and back.
//!
//! The attributes hold the whole record, so an exchange survives any collector,
//! queue or vendor on its way. `http.*`, `url.*` and `network.*` follow the
//! OpenTelemetry semantic conventions; everything else is `skewtap.*`.
//! No OTLP library is named here: proxy and collector bring their own.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::{Source, Stamp};
use crate::exchange::{ExchangeRecord, Leg, Outcome, RECORD_VERSION};
use crate::ids::{SpanId, TraceId};
use crate::milestone::{Milestone, Milestones};

/// The instrumentation scope under which an exchange travels.
pub const SCOPE: &str = "skewtap";

/// The attribute that marks a span as an exchange and gives the version of its form.
pub const VERSION_KEY: &str = "skewtap.record.version";

/// The attribute of the scope that tells how many records a proxy has dropped since it started.
pub const DROPPED_KEY: &str = "skewtap.records.dropped";

const STAMP_PREFIX: &str = "skewtap.stamp.";

/// The kinds of attribute value an exchange needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A truth value.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A text.
    Text(String),
    /// A list of 64-bit integers.
    Ints(Vec<i64>),
}

/// An exchange in the form of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeSpan {
    /// Trace the span belongs to.
    pub trace_id: TraceId,
    /// The span's own id.
    pub span_id: SpanId,
    /// The client's span, if the client sent a context.
    pub parent_span_id: Option<SpanId>,
    /// Name of the span, of low cardinality.
    pub name: String,
    /// Earliest stamp, in nanoseconds since the Unix epoch on the proxy's clock.
    pub start_ns: i64,
    /// Latest stamp, on the same clock.
    pub end_ns: i64,
    /// Everything else.
    pub attributes: BTreeMap<String, AttributeValue>,
}

/// Why a span's attributes are not an exchange that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A form this version does not know.
    #[error("record version {found}, this version reads {RECORD_VERSION}")]
    Version {
        /// The version found.
        found: i64,
    },
    /// An attribute that every exchange has is not there.
    #[error("{key} is missing")]
    Missing {
        /// The attribute.
        key: String,
    },
    /// An attribute holds something else than it should.
    #[error("{key} cannot be read: {why}")]
    Malformed {
        /// The attribute.
        key: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Writes a record as a span. [`read`] gives the same record back.
#[must_use]
pub fn write(record: &ExchangeRecord) -> ExchangeSpan {
    let mut out = Writer::default();
    out.int(VERSION_KEY, RECORD_VERSION);
    out.text("http.request.method", &record.method);
    out.text("url.scheme", &record.scheme);
    out.text("url.path", &record.path);
    out.text("skewtap.authority", &record.authority);
    out.optional_int("http.response.status_code", record.status.map(i64::from));
    out.text("skewtap.outcome", record.outcome.name());
    out.flag("skewtap.sampled", record.sampled);
    out.optional_int("skewtap.request.bytes", record.request_bytes);
    out.optional_int("skewtap.response.bytes", record.response_bytes);
    out.leg("down", &record.down);
    if let Some(up) = &record.up {
        out.leg("up", up);
    }
    out.optional_json("skewtap.down.stream", record.down_stream.as_ref());
    out.optional_json("skewtap.up.stream", record.up_stream.as_ref());
    out.json("skewtap.client.queue", &record.client_queue);
    out.json("skewtap.server.queue", &record.server_queue);
    out.optional_json("skewtap.client.process", record.client_process.as_ref());
    out.optional_json("skewtap.server.process", record.server_process.as_ref());
    out.json("skewtap.sources", &record.sources);
    out.int("skewtap.clock_step_ns", record.clock_step_ns);
    for (milestone, stamp) in record.milestones.iter() {
        let key = format!("{STAMP_PREFIX}{milestone}.{}", stamp.source());
        out.0
            .insert(key, AttributeValue::Ints(vec![stamp.lo(), stamp.hi()]));
    }
    ExchangeSpan {
        trace_id: record.trace_id,
        span_id: record.span_id,
        parent_span_id: record.parent_span_id,
        name: format!("skewtap {}", record.method),
        start_ns: record
            .milestones
            .iter()
            .map(|(_, s)| s.lo())
            .min()
            .unwrap_or(0),
        end_ns: record
            .milestones
            .iter()
            .map(|(_, s)| s.hi())
            .max()
            .unwrap_or(0),
        attributes: out.0,
    }
}

/// Reads a span written by [`write()`]; attributes it does not know are passed over.
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
    let has_up = attributes.contains_key("skewtap.up.peer");
    Ok(ExchangeRecord {
        trace_id,
        span_id,
        parent_span_id,
        sampled: from.flag("skewtap.sampled")?,
        method: from.text("http.request.method")?,
        scheme: from.text("url.scheme")?,
        authority: from.text("skewtap.authority")?,
        path: from.text("url.path")?,
        status: from.status("http.response.status_code")?,
        outcome: from.outcome("skewtap.outcome")?,
        request_bytes: from.optional_int("skewtap.request.bytes")?,
        response_bytes: from.optional_int("skewtap.response.bytes")?,
        down: from.leg("down")?,
        up: if has_up { Some(from.leg("up")?) } else { None },
        down_stream: from.optional_json("skewtap.down.stream")?,
        up_stream: from.optional_json("skewtap.up.stream")?,
        milestones: from.milestones()?,
        client_queue: from.json("skewtap.client.queue")?,
        client_process: from.optional_json("skewtap.client.process")?,
        server_queue: from.json("skewtap.server.queue")?,
        server_process: from.optional_json("skewtap.server.process")?,
        sources: from.json("skewtap.sources")?,
        clock_step_ns: from.int("skewtap.clock_step_ns")?,
    })
}

#[derive(Default)]
struct Writer(BTreeMap<String, AttributeValue>);

impl Writer {
    fn int(&mut self, key: &str, value: i64) {
        self.0.insert(key.to_owned(), AttributeValue::Int(value));
    }

    fn optional_int(&mut self, key: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.int(key, value);
        }
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.0.insert(key.to_owned(), AttributeValue::Bool(value));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.0
            .insert(key.to_owned(), AttributeValue::Text(value.to_owned()));
    }

    fn json<T: Serialize>(&mut self, key: &str, value: &T) {
        // The types given here have string keys and no floats, so this cannot fail.
        if let Ok(text) = serde_json::to_string(value) {
            self.0.insert(key.to_owned(), AttributeValue::Text(text));
        }
    }

    fn optional_json<T: Serialize>(&mut self, key: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.json(key, value);
        }
    }

    fn leg(&mut self, name: &str, leg: &Leg) {
        self.text(&format!("skewtap.{name}.local"), &leg.local);
        self.text(&format!("skewtap.{name}.peer"), &leg.peer);
        self.int(
            &format!("skewtap.{name}.earlier_exchanges"),
            leg.earlier_exchanges,
        );
        if let Some(tcp) = &leg.tcp {
            self.json(&format!("skewtap.{name}.tcp"), tcp);
        }
    }
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

    fn leg(&self, name: &str) -> Result<Leg, ReadError> {
        Ok(Leg {
            local: self.text(&format!("skewtap.{name}.local"))?,
            peer: self.text(&format!("skewtap.{name}.peer"))?,
            earlier_exchanges: self.int(&format!("skewtap.{name}.earlier_exchanges"))?,
            tcp: self.optional_json(&format!("skewtap.{name}.tcp"))?,
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
