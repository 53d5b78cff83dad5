//! One exchange as a case of its own: the verdict, and what it was judged from.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_DISPOSITION;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde::Serialize;
use serde_json::value::RawValue;
use skewtap_core::verdict_json::VerdictJson;
use utoipa::ToSchema;

use super::WebState;
use super::api_error::ApiError;
use super::verdict_api::{document, ids};

/// The form of a case; it counts up when what a reader has to know changes.
const CASE_VERSION: u32 = 1;

/// An exchange with everything needed to judge it again elsewhere.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Case {
    /// The form of the case; 1.
    skewtap_case: u32,
    /// The version of the collector that exported it.
    collector_version: &'static str,
    /// How often the verdict was revised, counted from 1.
    revision: i64,
    /// The verdict.
    #[schema(value_type = VerdictJson)]
    verdict: Box<RawValue>,
    /// What it was judged from: an OTLP trace request in JSON, with the exchanges as the proxy
    /// sent them and, of each span, what the verdict can rest on. Any collector takes it at
    /// `/v1/traces`. Null where an earlier version judged, which did not keep it.
    #[schema(value_type = Option<Object>)]
    observations: Option<ExportTraceServiceRequest>,
}

/// `GET /api/v1/exchanges/{trace_id}/{span_id}/case`
pub(super) async fn case(
    State(state): State<WebState>,
    Path((trace, span)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let (trace_id, span_id) = ids(trace, span)?;
    let verdict = state.queries.exchange(trace_id, span_id).await?;
    let verdict = verdict.ok_or(ApiError::NoVerdict { trace_id, span_id })?;
    let observations = state.queries.observations(trace_id, span_id).await?;
    let decode = |bytes: Vec<u8>| ExportTraceServiceRequest::decode(bytes.as_slice());
    let case = Case {
        skewtap_case: CASE_VERSION,
        collector_version: env!("CARGO_PKG_VERSION"),
        revision: verdict.revision,
        verdict: document(verdict)?,
        observations: observations.map(decode).transpose()?,
    };
    let name = format!("attachment; filename=\"skewtap-{trace_id}-{span_id}.json\"");
    Ok(([(CONTENT_DISPOSITION, name)], Json(case)).into_response())
}
