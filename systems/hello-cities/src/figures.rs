//! Figures of a workload, by the published comparison's definitions.

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
    /// Nodes that have partitions of it; 1 for a hub that is all in one process.
    pub nodes: usize,
    /// Orchestrations, or signals of the counter.
    pub n: u64,
    /// Events, by [`Workload::events`](crate::Workload::events).
    pub events: u64,
    /// From the earliest creation of an instance to the latest update of one, in seconds.
    pub seconds: f64,
    /// Events ÷ seconds.
    pub events_per_second: f64,
    /// The same in the busiest tenth of the time; none of a hub on a server, or of a workload of a few milliseconds.
    pub events_per_second_peak: Option<f64>,
    /// Orchestrations ÷ seconds; `None` for signals.
    pub orchestrations_per_second: Option<f64>,
    /// Bytes of log that were committed, for each event; none of a hub on a server, of which other processes may have a part.
    pub log_bytes_per_event: Option<f64>,
    /// Commits that were waited for: groups of steps, or steps in a store that takes each alone; none as above.
    pub commits: Option<u64>,
    /// Microseconds of processor time of the whole process, for each event, launching included; none as above.
    pub cpu_us_per_event: Option<f64>,
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
            "{:<15}{:>11}{:>17}{:>6}{:>6}{:>10}{:>10}{:>12}{:>10}{:>13}{:>9}{:>14}{:>10}",
            "workload",
            "launch",
            "store",
            "parts",
            "nodes",
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
        let mut row = format!(
            "{:<15}{:>11}{:>17}{:>6}{:>6}{:>10}{:>10.3}{:>12.0}{:>10}{:>13}{:>9}{:>14}{:>10.0}",
            self.workload,
            self.launch,
            self.store,
            self.partitions,
            self.nodes,
            self.n,
            self.seconds,
            self.events_per_second,
            shown(self.orchestrations_per_second, 0),
            shown(self.log_bytes_per_event, 1),
            shown(self.commits.map(|commits| commits as f64), 0),
            shown(self.cpu_us_per_event, 2),
            self.memory_bytes_peak as f64 / f64::from(1 << 20)
        );
        if let Some(latency) = self.latency_ms_p50 {
            // A text takes everything that is written to it.
            let _ = write!(row, "   p50 {latency:.2} ms");
        }
        row
    }
}

/// A figure with so many digits, or `-`.
fn shown(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.digits$}"))
}
