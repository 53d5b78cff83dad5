//! What the store has of a client span that was judged before.

use std::io;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use rusqlite::{Connection, OptionalExtension};
use skewtap_core::ids::{SpanId, TraceId};

use super::packed;
use crate::matcher::{MatchKey, Past};
use crate::observation::Observation;
use crate::otlp_decode::decode;

/// A verdict, as far as it matters to a later one on the same client span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredBasis {
    /// How many observations and stamps it rests on.
    pub(crate) evidence: i64,
    /// What it was judged from: an `ExportTraceServiceRequest` in protobuf, packed. `None` where
    /// an earlier version judged, which did not keep it.
    pub(crate) observations: Option<Vec<u8>>,
}

/// What the verdict on one client span rests on, if there is one.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn basis(
    connection: &Connection,
    trace_id: TraceId,
    client_span_id: SpanId,
) -> Result<Option<StoredBasis>, rusqlite::Error> {
    connection
        .prepare_cached(
            "SELECT evidence, observations FROM verdict CROSS JOIN verdict_document USING (id)
             WHERE trace_id = ?1 AND client_span_id = ?2",
        )?
        .query_row((trace_id.bytes(), client_span_id.bytes()), |row| {
            Ok(StoredBasis {
                evidence: row.get(0)?,
                observations: row.get(1)?,
            })
        })
        .optional()
}

/// What is there to be joined with later observations of `key`. `None` where nothing is: no
/// verdict, or one of an earlier version, which did not keep what it rests on.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn recall(
    connection: &Connection,
    key: MatchKey,
) -> Result<Option<Past>, rusqlite::Error> {
    let Some(basis) = basis(connection, key.trace_id, key.span_id)? else {
        return Ok(None);
    };
    let evidence = basis.evidence;
    Ok(basis.observations.map(|packed| Past {
        evidence,
        observations: observations(&packed).unwrap_or_else(|error| {
            // What comes later then stands alone.
            tracing::error!(%error, trace = %key.trace_id, "what a verdict rests on is damaged");
            Vec::new()
        }),
    }))
}

fn observations(packed: &[u8]) -> io::Result<Vec<Observation>> {
    let bytes = packed::unpack(packed)?;
    let request = ExportTraceServiceRequest::decode(bytes.as_slice()).map_err(io::Error::other)?;
    Ok(decode(&request).observations)
}
