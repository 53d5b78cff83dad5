//! Every address of the API, with its description.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;
use skewtap_core::verdict_json::VerdictJson;
use utoipa::openapi::OpenApi;

use super::aggregate_api::{self, PLOT};
use super::aggregate_json::{
    CauseSeriesJson, ClocksJson, EdgesJson, GapHistogramJson, GapSeriesJson, ScatterJson,
};
use super::case_api::{self, Case};
use super::described::{Answer, Described, Description};
use super::events_api::{self, FindingEvent};
use super::health::{self, HealthJson};
use super::verdict_api::{self, ExchangeList, LIST};
use super::{WebState, prometheus};

/// When a request is refused for what it asks.
const BAD: (u16, &str) = (
    400,
    "A parameter is unknown, given twice or not understood.",
);

/// When there is no such verdict.
const NONE: (u16, &str) = (404, "There is no verdict on this span.");

/// When the store does not answer.
const BUSY: (u16, &str) = (
    503,
    "The store cannot be read, or the collector is stopping.",
);

/// The routes, and with them `/api/v1/openapi.json`.
pub(super) fn router() -> Router<WebState> {
    let (router, document) = described();
    // Written once. It has no part that JSON cannot hold.
    let text = document.to_pretty_json().unwrap_or_default();
    let text = Arc::new(Bytes::from(text));
    router
        .route(
            "/api/v1/openapi.json",
            get(|State(_): State<WebState>| async move { json(&text) }),
        )
        .route("/api/{*unknown}", get(verdict_api::no_such_path))
}

fn json(text: &Bytes) -> Response {
    ([(CONTENT_TYPE, "application/json")], text.clone()).into_response()
}

/// All routes but the one that serves the document, and that document.
pub(super) fn described() -> (Router<WebState>, OpenApi) {
    let routes = clocks_and_health(plots(exchanges(Described::new())));
    routes.finish()
}

fn exchanges(routes: Described) -> Described {
    routes
        .get(
            Description {
                path: "/api/v1/exchanges",
                summary: "Exchanges, newest first",
                parameters: &LIST,
                answer: Answer::json::<ExchangeList>("One page of the list."),
                errors: &[BAD, BUSY],
            },
            get(verdict_api::list),
        )
        .get(
            Description {
                path: "/api/v1/exchanges/{trace_id}/{span_id}",
                summary: "The verdict on one client span",
                parameters: &[],
                answer: Answer::json::<VerdictJson>("The verdict."),
                errors: &[BAD, NONE, BUSY],
            },
            get(verdict_api::one),
        )
        .get(
            Description {
                path: "/api/v1/exchanges/{trace_id}/{span_id}/case",
                summary: "One exchange with everything needed to judge it again elsewhere",
                parameters: &[],
                answer: Answer::json::<Case>("The verdict, and what it was judged from."),
                errors: &[BAD, NONE, BUSY],
            },
            get(case_api::case),
        )
        .get(
            Description {
                path: "/api/v1/events",
                summary: "New findings as server-sent events",
                parameters: &[],
                answer: Answer::events::<FindingEvent>(
                    "An event `ready`, then an event `finding` for each flagged verdict. A \
                     listener more than 256 findings behind gets an event `missed` with their \
                     number, and the end of the stream.",
                ),
                errors: &[(503, "As many listen as may.")],
            },
            get(events_api::events),
        )
}

fn plots(routes: Described) -> Described {
    routes
        .get(
            Description {
                path: "/api/v1/edges",
                summary: "Who called whom, for what, and how large the gaps were",
                parameters: &PLOT,
                answer: Answer::json::<EdgesJson>("A summary of each edge."),
                errors: &[BAD, BUSY],
            },
            get(aggregate_api::edges),
        )
        .get(
            Description {
                path: "/api/v1/gaps/series",
                summary: "Gaps over time",
                parameters: &PLOT,
                answer: Answer::json::<GapSeriesJson>("A summary of each period."),
                errors: &[BAD, BUSY],
            },
            get(aggregate_api::gap_series),
        )
        .get(
            Description {
                path: "/api/v1/gaps/histogram",
                summary: "How many exchanges had which gap",
                parameters: &PLOT,
                answer: Answer::json::<GapHistogramJson>("Exchanges by size of the gap."),
                errors: &[BAD, BUSY],
            },
            get(aggregate_api::gap_histogram),
        )
        .get(
            Description {
                path: "/api/v1/lags",
                summary: "How long the client lagged against how long the server took",
                parameters: &PLOT,
                answer: Answer::json::<ScatterJson>("Single exchanges as points."),
                errors: &[BAD, BUSY],
            },
            get(aggregate_api::lags),
        )
        .get(
            Description {
                path: "/api/v1/findings/series",
                summary: "Findings over time, by cause",
                parameters: &PLOT,
                answer: Answer::json::<CauseSeriesJson>("Findings of each period and cause."),
                errors: &[BAD, BUSY],
            },
            get(aggregate_api::cause_series),
        )
}

fn clocks_and_health(routes: Described) -> Described {
    routes
        .get(
            Description {
                path: "/api/v1/clocks",
                summary: "How far the clocks of clients and servers are from the proxy's",
                parameters: &[],
                answer: Answer::json::<ClocksJson>("Clients and servers."),
                errors: &[BUSY],
            },
            get(aggregate_api::clocks),
        )
        .get(
            Description {
                path: "/api/v1/health",
                summary: "Whether what is sent is kept, and how much is held",
                parameters: &[],
                answer: Answer::json::<HealthJson>("The state of the collector."),
                errors: &[BUSY],
            },
            get(health::details),
        )
        .get(
            Description {
                path: "/healthz",
                summary: "Whether what is sent can be acknowledged, for probes",
                parameters: &[],
                answer: Answer::text("text/plain", "`ok`."),
                errors: &[],
            },
            get(health::probe),
        )
        .get(
            Description {
                path: "/metrics",
                summary: "Metrics for Prometheus",
                parameters: &[],
                answer: Answer::text("application/openmetrics-text", "OpenMetrics 1.0."),
                errors: &[],
            },
            get(prometheus::metrics),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the document lies for those who read it without a collector.
    const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

    #[test]
    fn the_committed_document_is_the_one_that_is_served() {
        let mut served = described().1.to_pretty_json().unwrap();
        served.push('\n');
        if std::env::var_os("SKEWTAP_WRITE_DOCS").is_some() {
            std::fs::write(COMMITTED, &served).unwrap();
        }
        let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
        assert!(
            committed == served,
            "docs/openapi.json is out of date; write it anew with \
             SKEWTAP_WRITE_DOCS=1 cargo test -p skewtap-collector --lib the_committed_document"
        );
    }
}
