//! `GET /metrics`: usage of partitions, in the text format of Prometheus (version 0.0.4).
//!
//! The names are those of the metrics that go out over OTLP, as OpenTelemetry's rules translate them for Prometheus.

use std::fmt::Write;

use crate::partition::Usage;
use crate::store::Store;
use crate::usage::{self, METRICS, Metric, Value};

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page; a line for each metric and partition.
pub(super) fn page(store: &Store) -> String {
    let names = METRICS.each_ref().map(name);
    let mut samples: [String; METRICS.len()] = Default::default();
    usage::read(store, |database, container, partitions| {
        let (database, container) = (escaped(&database.name), escaped(&container.name));
        for partition in partitions {
            let range = partition.range;
            let labels =
                format!("db_namespace=\"{database}\",db_collection_name=\"{container}\",db_partition_id=\"{range}\"");
            for ((metric, name), lines) in METRICS.iter().zip(&names).zip(&mut samples) {
                let value = value(metric, &partition.usage);
                // Writing to a text cannot fail.
                let _ = writeln!(lines, "{name}{{{labels}}} {value}");
            }
        }
    });
    METRICS.iter().zip(&names).zip(samples).map(|((metric, name), lines)| family(metric, name, &lines)).collect()
}

/// One metric with its samples.
fn family(metric: &Metric, name: &str, samples: &str) -> String {
    let (kind, description) = (kind(metric), metric.description);
    format!("# HELP {name} {description}.\n# TYPE {name} {kind}\n{samples}")
}

/// Dots become underscores; a unit in braces is left out, others are spelled out; counters end with `_total`.
fn name(metric: &Metric) -> String {
    let unit = match metric.unit {
        "By" => "_bytes",
        unit if unit.ends_with("/s") => "_per_second",
        _ => "",
    };
    let total = if kind(metric) == "counter" { "_total" } else { "" };
    format!("{}{unit}{total}", metric.name.replace('.', "_"))
}

fn kind(metric: &Metric) -> &'static str {
    match metric.value {
        Value::Sum(_) | Value::Count(_) => "counter",
        Value::Gauge(_) => "gauge",
    }
}

fn value(metric: &Metric, usage: &Usage) -> f64 {
    match metric.value {
        Value::Sum(value) | Value::Gauge(value) => value(usage),
        Value::Count(value) => value(usage) as f64,
    }
}

/// The value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }

    #[test]
    fn names_are_translated_as_opentelemetry_has_it() {
        let expected = [
            "db_throughput_consumed_total",
            "db_throughput_provisioned_per_second",
            "db_requests_throttled_total",
            "db_documents_bytes",
        ];
        assert_eq!(METRICS.each_ref().map(name), expected);
    }
}
