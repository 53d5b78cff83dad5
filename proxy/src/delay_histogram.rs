//! How long something took, how often: counted by all workers without waiting for each other.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// The least upper bound of a bucket, in nanoseconds; each next is twice as large.
const LEAST_NS: u64 = 10_000;

/// Up to about 5 s; what takes longer is counted beyond the last.
const BUCKETS: usize = 20;

/// A histogram of times, 10 µs to 5 s, for Prometheus in seconds. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayHistogram(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    buckets: [AtomicU64; BUCKETS],
    beyond: AtomicU64,
    sum_ns: AtomicU64,
}

impl DelayHistogram {
    /// Counts a time in nanoseconds.
    pub(crate) fn observe(&self, ns: u64) {
        let mut bounds = bounds().zip(&self.0.buckets);
        let bucket = bounds.find(|(bound, _)| ns <= *bound);
        let bucket = bucket.map_or(&self.0.beyond, |(_, bucket)| bucket);
        bucket.fetch_add(1, Relaxed);
        self.0.sum_ns.fetch_add(ns, Relaxed);
    }
}

impl EncodeMetric for DelayHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counts = self.0.buckets.iter().map(|bucket| bucket.load(Relaxed));
        let beyond = (f64::INFINITY, self.0.beyond.load(Relaxed));
        let bounds = bounds().map(seconds);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).chain([beyond]).collect();
        // Not counted by itself, so that it never disagrees with the buckets.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = seconds(self.0.sum_ns.load(Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

fn bounds() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(LEAST_NS), |bound| bound.checked_mul(2)).take(BUCKETS)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a histogram needs no more than 53 bits"
)]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    #[test]
    fn each_time_is_counted_in_the_first_bucket_that_holds_it() {
        let histogram = DelayHistogram::default();
        for ns in [0, 10_000, 10_001, 3_000_000, 60_000_000_000] {
            histogram.observe(ns);
        }
        let mut registry = Registry::default();
        registry.register("delay", "Delay", histogram);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "delay_bucket{le=\"0.00001\"} 2",
            "delay_bucket{le=\"0.00002\"} 3",
            "delay_bucket{le=\"0.00256\"} 3",
            "delay_bucket{le=\"0.00512\"} 4",
            "delay_bucket{le=\"5.24288\"} 4",
            "delay_bucket{le=\"+Inf\"} 5",
            "delay_count 5",
            "delay_sum 60.003020001",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
