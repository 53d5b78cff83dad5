//! One exchange of a verdict in the form of JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Bounds, seconds};
use crate::exchange_detail::ExchangeDetail;
use crate::milestone::Milestone;

/// One exchange under the client span.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExchangeJson {
    /// The exchange's own span.
    pub span_id: String,
    /// Request method.
    pub method: String,
    /// `http` or `https`.
    pub scheme: String,
    /// Host and port asked for.
    pub authority: String,
    /// Request path without the query.
    pub path: String,
    /// Status of the final response.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: Cow<'static, str>,
    /// Bytes of the request message, head included.
    pub request_bytes: Option<i64>,
    /// Bytes of the final response message, head included.
    pub response_bytes: Option<i64>,
    /// The client's address.
    pub client: String,
    /// The address at which the proxy was asked.
    pub proxy: String,
    /// The server's address.
    pub server: Option<String>,
    /// When each milestone was met, after the first request byte of the verdict, as its most
    /// trustworthy source has it. The names are those of the attributes: `up.connected`.
    pub milestones: BTreeMap<Cow<'static, str>, Bounds>,
}

impl ExchangeJson {
    /// Writes `detail` with its instants relative to `started_ns`.
    pub(super) fn new(detail: &ExchangeDetail, started_ns: i64) -> Self {
        let best = |milestone: &Milestone| {
            let stamp = detail.milestones.best(*milestone)?;
            let bounds = Bounds {
                lo_seconds: seconds(stamp.lo().saturating_sub(started_ns)),
                hi_seconds: seconds(stamp.hi().saturating_sub(started_ns)),
            };
            Some((Cow::Borrowed(milestone.name()), bounds))
        };
        Self {
            span_id: detail.span_id.to_string(),
            method: detail.method.clone(),
            scheme: detail.scheme.clone(),
            authority: detail.authority.clone(),
            path: detail.path.clone(),
            status: detail.status,
            outcome: detail.outcome.name().into(),
            request_bytes: detail.request_bytes,
            response_bytes: detail.response_bytes,
            client: detail.down.peer.clone(),
            proxy: detail.down.local.clone(),
            server: detail.up.as_ref().map(|up| up.peer.clone()),
            milestones: Milestone::ALL.iter().filter_map(best).collect(),
        }
    }
}
