//! Number of partitions that each replica of a service reports.
//!
//! Sources: `durable.node.partitions` of this project's orchestration engine, and `assigned-partitions` of Apache Kafka
//! consumers, under the names of OpenTelemetry's Java instrumentation, Micrometer and the Prometheus JMX exporter. A
//! replica may have several consumers; their partitions are added.

use super::Series;
use crate::evidence::TrialEvidence;

/// Names of the metric, with dots for underscores and dashes. If a service reports several, the first counts.
const METRICS: [&str; 5] = [
    "durable.node.partitions",
    "kafka.consumer.assigned.partitions",
    "kafka.consumer.coordinator.assigned.partitions",
    "kafka.consumer.consumer.coordinator.metrics.assigned.partitions",
    "org.apache.kafka.consumer.coordinator.assigned.partitions",
];

/// The series with the partitions of a service's replicas, all of the same metric; empty if no replica reports them.
pub fn of<'a>(trial: &'a TrialEvidence, service: &str) -> Vec<&'a Series> {
    let all = || trial.series.iter().filter(|series| series.key.service == service);
    let ranked = all().filter_map(|series| Some((rank(&series.key.name)?, series.key.name.as_str())));
    let Some((_, metric)) = ranked.min() else { return Vec::new() };
    all().filter(|series| series.key.name == metric).collect()
}

/// Rank of a metric among the known names.
fn rank(name: &str) -> Option<usize> {
    let dotted = name.replace(['_', '-'], ".");
    METRICS.iter().position(|metric| *metric == dotted)
}
