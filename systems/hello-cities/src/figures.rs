//! What a workload came to, by the published comparison's definitions.

use std::fmt::Write as _;

use serde::Serialize;

/// The figures of one run of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The workload's name.
    pub workload: &'static str,
    /// How it was launched.
    pub launch: &'static str,
    /// The store's name.
    pub store: &'static str,
    /// Partitions of the hub.
    pub partitions: usize,
    /// Orchestrations, or signals of the counter.
    pub n: u64,
    /// Events, by [`Workload::events`](crate::Workload::events).
    pub events: u64,
    /// From the earliest creation of an instance to the latest update of one, in seconds.
    pub seconds: f64,
    /// Events ÷ seconds.
    pub events_per_second: f64,
    /// Orchestrations ÷ seconds; none for signals.
    pub orchestrations_per_second: Option<f64>,
    /// Bytes of log that were committed, for each event.
    pub log_bytes_per_event: f64,
    /// Commits that were waited for: groups of steps, or steps in a store that takes each alone.
    pub commits: u64,
    /// Microseconds of processor time of the whole process, for each event, launching included.
    pub cpu_us_per_event: f64,
    /// The most memory that this process had resident, in bytes; with `waiting`, until all of them waited.
    pub memory_bytes_peak: u64,
    /// The median time from a start to its end as the caller sees it, in milliseconds; of `one-by-one` only.
    pub latency_ms_p50: Option<f64>,
}

impl Figures {
    /// The heads of [`Figures::row`]'s columns.
    #[must_use]
    pub fn header() -> String {
        format!(
            "{:<15}{:>11}{:>9}{:>6}{:>10}{:>10}{:>12}{:>10}{:>13}{:>9}{:>14}{:>10}",
            "workload",
            "launch",
            "store",
            "parts",
            "n",
            "time s",
            "events/s",
            "orch/s",
            "log B/event",
            "commits",
            "cpu us/event",
            "peak MiB"
        )
    }

    /// One row of a table.
    #[must_use]
    pub fn row(&self) -> String {
        let orchestrations = self.orchestrations_per_second.map_or("-".to_owned(), |rate| format!("{rate:.0}"));
        let mut row = format!(
            "{:<15}{:>11}{:>9}{:>6}{:>10}{:>10.3}{:>12.0}{:>10}{:>13.1}{:>9}{:>14.2}{:>10.0}",
            self.workload,
            self.launch,
            self.store,
            self.partitions,
            self.n,
            self.seconds,
            self.events_per_second,
            orchestrations,
            self.log_bytes_per_event,
            self.commits,
            self.cpu_us_per_event,
            self.memory_bytes_peak as f64 / f64::from(1 << 20)
        );
        if let Some(latency) = self.latency_ms_p50 {
            // A text takes everything that is written to it.
            let _ = write!(row, "   p50 {latency:.2} ms");
        }
        row
    }
}
