//! From the text that Prometheus scrapes to OTLP: one list of metrics, two ways out.
//!
//! Reads what this collector writes, which is a part of OpenMetrics: counters, gauges and
//! histograms. A line of any other kind is passed over.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

use crate::otlp_encode::{attribute, string};

/// When values were counted from and to, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// When everything was nought.
    pub(super) from_ns: u64,
    /// When the values were read.
    pub(super) to_ns: u64,
}

/// The metrics in `text`, in its order.
pub(super) fn read(text: &str, period: Period) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let mut family = Family::default();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("# ") {
            family.describe(words, period, &mut metrics);
        } else if let Some(sample) = Sample::read(line) {
            family.samples.push(sample);
        }
    }
    metrics.extend(family.metric(period));
    metrics
}

/// Samples under one name, with what is said of it.
#[derive(Default)]
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: &'a str,
    unit: &'a str,
    samples: Vec<Sample<'a>>,
}

impl<'a> Family<'a> {
    /// Takes in a comment; one about another name finishes this family.
    fn describe(&mut self, words: &'a str, period: Period, metrics: &mut Vec<Metric>) {
        let mut words = words.splitn(3, ' ');
        let (what, name) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if name != self.name {
            let next = Family {
                name,
                ..Family::default()
            };
            metrics.extend(std::mem::replace(self, next).metric(period));
        }
        let said = words.next().unwrap_or("");
        match what {
            "HELP" => self.help = said,
            "TYPE" => self.kind = said,
            "UNIT" => self.unit = said,
            _ => {}
        }
    }

    /// `None` for a kind that is not written here, and for a family without samples.
    fn metric(self, period: Period) -> Option<Metric> {
        if self.samples.is_empty() {
            return None;
        }
        let data = match self.kind {
            "counter" => Data::Sum(Sum {
                data_points: self.points(period),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
                is_monotonic: true,
            }),
            "gauge" => Data::Gauge(Gauge {
                data_points: self.points(period),
            }),
            "histogram" => Data::Histogram(Histogram {
                data_points: self.histograms(period),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
            }),
            _ => return None,
        };
        Some(Metric {
            name: self.name.to_owned(),
            description: self.help.trim_end_matches('.').to_owned(),
            unit: unit(self.unit).to_owned(),
            data: Some(data),
            ..Metric::default()
        })
    }

    fn points(&self, period: Period) -> Vec<NumberDataPoint> {
        let samples = self.samples.iter();
        samples
            .map(|sample| NumberDataPoint {
                attributes: attributes(&sample.labels),
                start_time_unix_nano: period.from_ns,
                time_unix_nano: period.to_ns,
                value: Some(Value::AsDouble(sample.value)),
                ..NumberDataPoint::default()
            })
            .collect()
    }

    fn histograms(&self, period: Period) -> Vec<HistogramDataPoint> {
        let mut points: BTreeMap<Vec<(&str, String)>, HistogramDataPoint> = BTreeMap::new();
        for sample in &self.samples {
            let mut labels = sample.labels.clone();
            let bound = labels.iter().position(|(name, _)| *name == "le");
            let bound = bound.map(|at| labels.remove(at).1);
            let point = points
                .entry(labels)
                .or_insert_with_key(|labels| HistogramDataPoint {
                    attributes: attributes(labels),
                    start_time_unix_nano: period.from_ns,
                    time_unix_nano: period.to_ns,
                    ..HistogramDataPoint::default()
                });
            if sample.name.ends_with("_sum") {
                point.sum = Some(sample.value);
            } else if sample.name.ends_with("_count") {
                point.count = whole(sample.value);
            } else if let Some(bound) = bound {
                // Prometheus counts in each bucket what is in all smaller ones too.
                let smaller: u64 = point.bucket_counts.iter().sum();
                point
                    .bucket_counts
                    .push(whole(sample.value).saturating_sub(smaller));
                let finite = bound.parse().ok().filter(|bound: &f64| bound.is_finite());
                point.explicit_bounds.extend(finite);
            }
        }
        points.into_values().collect()
    }
}

/// One value.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Sample<'a> {
    /// `None` for what is no sample.
    fn read(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_at_checked(line.find(['{', ' '])?)?;
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (Vec::new(), rest),
        };
        // An exemplar or a time may follow.
        let value = rest.trim_start().split(' ').next()?;
        Some(Self {
            name,
            labels,
            value: value.parse().ok()?,
        })
    }
}

/// The labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        loop {
            let (at, character) = characters.next()?;
            match character {
                '"' => {
                    rest = quoted.get(at + 1..)?;
                    break;
                }
                '\\' => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                other => value.push(other),
            }
        }
        labels.push((name, value));
    }
}

fn attributes(labels: &[(&str, String)]) -> Vec<KeyValue> {
    let labels = labels.iter();
    labels
        .map(|(name, value)| attribute(name, string(value)))
        .collect()
}

/// The name of a unit as OTLP has it.
fn unit(name: &str) -> &str {
    match name {
        "seconds" => "s",
        "bytes" => "By",
        other => other,
    }
}

/// A count, which is written without a fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count is whole and not negative; the conversion keeps to the ends of its range"
)]
fn whole(count: f64) -> u64 {
    count as u64
}

#[cfg(test)]
mod tests;
