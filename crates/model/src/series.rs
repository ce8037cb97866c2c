//! Numbers over time: what the sampler read and what services reported as metrics. And what they printed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a series is about. Two points belong to one series when all of this is equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
pub struct SeriesKey {
    /// The metric's name, such as `process.cpu.cores` (see [`names`]) or what a service reported.
    pub name: String,
    /// UCUM unit, such as `By` or `s`; empty when there is none.
    pub unit: String,
    /// The service, `narrows` for the generator, empty for the host.
    pub service: String,
    /// The replica, from 0.
    pub replica: u32,
    /// Everything else that tells it from its sisters.
    pub labels: BTreeMap<String, String>,
}

/// The names of what the sampler writes.
pub mod names {
    /// CPU used by all processes of a replica, in cores: CPU time (user and system) ÷ wall time.
    pub const CPU_CORES: &str = "process.cpu.cores";
    /// CPU used by a replica's busiest single thread, in cores, 0 to 1.
    pub const BUSIEST_THREAD_CORES: &str = "process.cpu.busiest_thread";
    /// Resident memory of all processes of a replica, in bytes; shared pages count once per process.
    pub const MEMORY_BYTES: &str = "process.memory.rss";
    /// Share of the host's CPU time that was not idle, 0 to 1.
    pub const HOST_CPU_UTILIZATION: &str = "host.cpu.utilization";
    /// Share of the host's CPU time that the hypervisor took, 0 to 1.
    pub const HOST_CPU_STEAL: &str = "host.cpu.steal";
    /// What a store has spent of its provisioned throughput since it started, in its own units (request units): a
    /// cumulative counter, one series per physical partition, labelled [`PARTITION`]. Reported by the store itself.
    pub const THROUGHPUT_CONSUMED: &str = "db.throughput.consumed";
    /// What the store may spend each second, in the same units: a gauge with the same labels.
    pub const THROUGHPUT_PROVISIONED: &str = "db.throughput.provisioned";
    /// The label that tells physical partitions apart.
    pub const PARTITION: &str = "db.partition.id";
    /// The service name under which the generator's own process stands.
    pub const GENERATOR: &str = "narrows";
}

/// One value of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// When.
    pub time_ns: i64,
    /// The value, in the series's unit.
    pub value: f64,
}

/// A series with its points, in order of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is about.
    pub key: SeriesKey,
    /// Its points.
    pub points: Vec<Point>,
}

impl Series {
    /// The increase per second between neighbouring points of a cumulative series, each at the later point's time. A
    /// value that falls is a counter that began anew. Points of one instant are passed over.
    pub fn rates(&self) -> Vec<Point> {
        let pairs = self.points.windows(2).filter(|pair| pair[1].time_ns > pair[0].time_ns);
        pairs
            .map(|pair| {
                let grown = pair[1].value - pair[0].value;
                let grown = if grown < 0.0 { pair[1].value } else { grown };
                let seconds = (pair[1].time_ns - pair[0].time_ns) as f64 / 1e9;
                Point { time_ns: pair[1].time_ns, value: grown / seconds }
            })
            .collect()
    }
}

/// A line that a service printed or a log record that it sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was printed or says it happened.
    pub time_ns: i64,
    /// The service.
    pub service: String,
    /// The replica, from 0.
    pub replica: u32,
    /// Where it came from.
    pub stream: LogStream,
    /// OpenTelemetry severity text, or empty.
    pub severity: String,
    /// The text.
    pub text: String,
    /// The trace it belongs to, if it says so.
    pub trace_id: Option<[u8; 16]>,
}

/// Where a log line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// The process's standard output.
    Stdout,
    /// The process's standard error.
    Stderr,
    /// An OTLP log record.
    Otlp,
}

impl LogStream {
    /// The word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
            LogStream::Otlp => "otlp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_begins_anew_has_no_negative_rate() {
        let point = |time_ms: i64, value| Point { time_ns: time_ms * 1_000_000, value };
        let points = vec![point(0, 10.0), point(500, 20.0), point(500, 21.0), point(1500, 5.0)];
        let rates = Series { key: SeriesKey::default(), points }.rates();
        assert_eq!(rates, [point(500, 20.0), point(1500, 5.0)]);
    }
}
