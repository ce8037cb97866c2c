//! `GET /metrics`: what partitions use, in the text format of Prometheus (version 0.0.4).
//!
//! The names are those of the metrics that go out over OTLP, as OpenTelemetry's rules translate them for Prometheus.

use std::fmt::Write;

use crate::store::Store;
use crate::usage::{self, PartitionUsage};

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric with its value of a partition.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&PartitionUsage) -> f64,
}

const METRICS: [Metric; 4] = [
    Metric {
        name: "db_throughput_consumed_total",
        kind: "counter",
        help: "Request units that requests have cost since the store opened.",
        value: |partition| partition.usage.consumed.request_units(),
    },
    Metric {
        name: "db_throughput_provisioned_per_second",
        kind: "gauge",
        help: "Request units that each second provides.",
        value: |partition| partition.usage.provisioned.request_units(),
    },
    Metric {
        name: "db_requests_throttled_total",
        kind: "counter",
        help: "Requests refused with status 429 since the store opened.",
        value: |partition| partition.usage.throttled as f64,
    },
    Metric {
        name: "db_documents_bytes",
        kind: "gauge",
        help: "Text of the documents, in bytes.",
        value: |partition| partition.bytes as f64,
    },
];

/// The page; a line for each metric and partition.
pub(super) fn page(store: &Store) -> String {
    let mut samples: [String; METRICS.len()] = Default::default();
    usage::read(store, |database, container, partitions| {
        let (database, container) = (escaped(&database.name), escaped(&container.name));
        for partition in partitions {
            for (metric, lines) in METRICS.iter().zip(&mut samples) {
                let (name, range, value) = (metric.name, partition.range, (metric.value)(partition));
                let labels = format!(
                    "db_namespace=\"{database}\",db_collection_name=\"{container}\",db_partition_id=\"{range}\""
                );
                // Writing to a text cannot fail.
                let _ = writeln!(lines, "{name}{{{labels}}} {value}");
            }
        }
    });
    let of_metric = |(metric, lines): (&Metric, String)| {
        let Metric { name, kind, help, .. } = metric;
        format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}")
    };
    METRICS.iter().zip(samples).map(of_metric).collect()
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
}
