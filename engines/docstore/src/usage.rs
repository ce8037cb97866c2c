//! Usage of every partition: one reading and one table of metrics for all that show it.

use std::sync::Arc;

use crate::container::Container;
use crate::database::Database;
use crate::partition::Usage;
use crate::store::Store;

/// The part of a container that one partition is or was, at the time of the reading.
#[derive(Debug)]
pub(crate) struct PartitionUsage {
    /// The number of its range.
    pub(crate) range: u32,
    pub(crate) usage: Usage,
    /// Whether it was split. Its counts stay, so that sums over partitions never fall.
    pub(crate) is_split: bool,
}

/// Quantity of a metric, in OpenTelemetry's words; others derive their names from it.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) description: &'static str,
    pub(crate) value: Value,
}

/// The instrument of a metric, with its value of a partition.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    /// Request units since the store opened.
    Sum(fn(&Usage) -> f64),
    /// Things counted since the store opened.
    Count(fn(&Usage) -> u64),
    /// State at the moment.
    Gauge(fn(&Usage) -> f64),
}

/// The metrics of each partition, at `/metrics` and over OTLP alike.
pub(crate) const METRICS: [Metric; 4] = [
    Metric {
        name: "db.throughput.consumed",
        unit: "{request_unit}",
        description: "Request units that requests have cost since the store opened",
        value: Value::Sum(|usage| usage.consumed.request_units()),
    },
    Metric {
        name: "db.throughput.provisioned",
        unit: "{request_unit}/s",
        description: "Request units that each second provides",
        value: Value::Gauge(|usage| usage.provisioned.request_units()),
    },
    Metric {
        name: "db.requests.throttled",
        unit: "{request}",
        description: "Requests refused with status 429 since the store opened",
        value: Value::Count(|usage| usage.throttled),
    },
    Metric {
        name: "db.documents",
        unit: "By",
        description: "Text of the documents",
        value: Value::Gauge(|usage| usage.text_bytes as f64),
    },
];

/// Calls `each` with every container and the partitions that it has or had.
pub(crate) fn read(store: &Store, mut each: impl FnMut(&Arc<Database>, &Container, &[PartitionUsage])) {
    for database in store.databases() {
        for container in database.containers() {
            let ranges = container.ranges();
            let split = ranges.retired().map(|range| (range, true));
            let partitions: Vec<PartitionUsage> = split
                .chain(ranges.iter().map(|range| (range, false)))
                .map(|(range, is_split)| PartitionUsage { range: range.id, usage: range.partition.usage(), is_split })
                .collect();
            each(&database, &container, &partitions);
        }
    }
}
