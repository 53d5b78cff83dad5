//! Logs and metrics: taken off the sender's hands, so that an exporter that sends all signals to
//! one address is not troubled, and told that they are not kept.

use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request of a signal that is not kept.
pub(super) trait NotKept: Message + Default + DeserializeOwned {
    /// What the protocol answers it with.
    type Answer: Message + Serialize;

    /// The name of the signal.
    const SIGNAL: &'static str;

    /// The answer that says that nothing of it was kept. OTLP forbids the sender to try again.
    fn answer(&self) -> Self::Answer;
}

impl NotKept for ExportLogsServiceRequest {
    type Answer = ExportLogsServiceResponse;

    const SIGNAL: &'static str = "logs";

    fn answer(&self) -> Self::Answer {
        let records = self
            .resource_logs
            .iter()
            .flat_map(|resource| &resource.scope_logs)
            .map(|scope| scope.log_records.len());
        Self::Answer {
            partial_success: rejected(records).map(|rejected_log_records| {
                ExportLogsPartialSuccess {
                    rejected_log_records,
                    error_message: message(Self::SIGNAL),
                }
            }),
        }
    }
}

impl NotKept for ExportMetricsServiceRequest {
    type Answer = ExportMetricsServiceResponse;

    const SIGNAL: &'static str = "metrics";

    fn answer(&self) -> Self::Answer {
        let points = self
            .resource_metrics
            .iter()
            .flat_map(|resource| &resource.scope_metrics)
            .flat_map(|scope| &scope.metrics)
            .map(data_points);
        Self::Answer {
            partial_success: rejected(points).map(|rejected_data_points| {
                ExportMetricsPartialSuccess {
                    rejected_data_points,
                    error_message: message(Self::SIGNAL),
                }
            }),
        }
    }
}

fn data_points(metric: &Metric) -> usize {
    match &metric.data {
        None => 0,
        Some(Data::Gauge(data)) => data.data_points.len(),
        Some(Data::Sum(data)) => data.data_points.len(),
        Some(Data::Histogram(data)) => data.data_points.len(),
        Some(Data::ExponentialHistogram(data)) => data.data_points.len(),
        Some(Data::Summary(data)) => data.data_points.len(),
    }
}

/// How many were rejected; `None` when there was nothing to reject.
fn rejected(counts: impl Iterator<Item = usize>) -> Option<i64> {
    let sum = i64::try_from(counts.sum::<usize>()).unwrap_or(i64::MAX);
    (sum > 0).then_some(sum)
}

fn message(signal: &str) -> String {
    format!(
        "skewtap keeps traces only and does not support {signal}: export them elsewhere, or not at all"
    )
}
