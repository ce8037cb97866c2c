//! The store that a call goes to, and what its partitions spent of what they may spend.
//!
//! A store is known by the port that is called when a service of the trial listens there, else by being the only one
//! that reports its throughput, else by what the spans call it. Consumption comes as rates over the time between two
//! readings, so a second is described by every reading that touches it.

use narrows_model::evidence::{PartitionThroughput, TrialEvidence};
use narrows_model::trace::Span;

use crate::read::requests::is_database;

/// The time that the only reading of a series stands for, nanoseconds.
const FIRST_READING_NS: i64 = 1_000_000_000;

/// A partition that reported nothing for so long before the last reading of all is gone, nanoseconds.
const SILENT_NS: i64 = 5_000_000_000;

/// A store with what it reports; no partitions when it reports nothing.
#[derive(Debug)]
pub(crate) struct Store {
    /// Its service or, failing that, what the spans call it.
    pub(crate) name: String,
    /// Its physical partitions.
    pub(crate) partitions: Vec<PartitionThroughput>,
}

impl Store {
    /// The store that this span calls.
    pub(crate) fn for_call(trial: &TrialEvidence, call: &Span) -> Self {
        let reported = trial.throughput();
        let by_port = trial.reached_at(call.facts.server_port);
        let first = reported.first().filter(|_| is_database(call)).map(|partition| partition.service.clone());
        let only = first.filter(|name| reported.iter().all(|partition| partition.service == *name));
        let called = call.facts.db_system.as_ref().or(call.facts.server_address.as_ref()).unwrap_or(&call.name);
        let name = by_port.map(|instance| instance.service.clone()).or(only).unwrap_or_else(|| called.clone());
        let partitions = reported.into_iter().filter(|partition| partition.service == name).collect();
        Self { name, partitions }
    }

    /// How many partitions it has in the end: one that was split reports nothing any more.
    pub(crate) fn partitions_now(&self) -> usize {
        let last = |partition: &PartitionThroughput| partition.consumed.last().map_or(i64::MIN, |point| point.time_ns);
        let latest = self.partitions.iter().map(last).max().unwrap_or(i64::MIN);
        let is_there = |partition: &&PartitionThroughput| last(partition).saturating_add(SILENT_NS) >= latest;
        self.partitions.iter().filter(is_there).count()
    }

    /// Units that one partition may spend each second, the least of all; `None` if the store does not say.
    pub(crate) fn provisioned(&self) -> Option<f64> {
        self.partitions.iter().filter_map(|partition| partition.provisioned).min_by(f64::total_cmp)
    }

    /// The most that any partition spent in a second, among readings of which some part is meant.
    pub(crate) fn peak(&self, is_meant: impl Fn(i64, i64) -> bool) -> Option<f64> {
        let readings = self.partitions.iter().flat_map(readings);
        readings
            .filter(|(from_ns, to_ns, _)| is_meant(*from_ns, *to_ns))
            .map(|(_, _, value)| value)
            .max_by(f64::total_cmp)
    }

    /// Units that a partition spent each second in the mean of all partitions, over the counted windows.
    pub(crate) fn mean(&self, trial: &TrialEvidence) -> Option<f64> {
        let points = self.partitions.iter().flat_map(|partition| &partition.consumed);
        let counted: Vec<f64> =
            points.filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value).collect();
        (!counted.is_empty()).then(|| counted.iter().sum::<f64>() / counted.len() as f64)
    }

    /// The most that this partition spent in a second between these instants.
    pub(crate) fn spent_between(&self, partition: &str, start_ns: i64, end_ns: i64) -> Option<f64> {
        let meant = self.partitions.iter().filter(|known| known.partition == partition);
        let touching = meant.flat_map(readings).filter(|(from_ns, to_ns, _)| *from_ns < end_ns && *to_ns > start_ns);
        touching.map(|(_, _, value)| value).max_by(f64::total_cmp)
    }
}

/// From, to, and the rate in between. The first is taken to be as long as the second.
pub(crate) fn readings(partition: &PartitionThroughput) -> impl Iterator<Item = (i64, i64, f64)> {
    let points = &partition.consumed;
    let first_ns = points.get(1).map_or(FIRST_READING_NS, |second| second.time_ns.saturating_sub(points[0].time_ns));
    points.iter().enumerate().map(move |(at, point)| {
        let before = at.checked_sub(1).map(|before| points[before].time_ns);
        (before.unwrap_or(point.time_ns.saturating_sub(first_ns)), point.time_ns, point.value)
    })
}

#[cfg(test)]
mod tests {
    use narrows_testkit::TRIAL_START_NS;
    use narrows_testkit::spans::document_query;
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use super::*;

    fn trial() -> TrialBuilder {
        TrialBuilder::new("a").service("documents", None).steady(10, Load { vus: 1, rate: 1.0, latency_ms: 1.0 })
    }

    fn store_of(trial: TrialBuilder, port: u16) -> Store {
        let trace = document_query("SELECT 1 FROM c", "0").to_port(port).trace(0);
        Store::for_call(&trial.build(), &trace.spans[0])
    }

    #[test]
    fn a_store_is_known_by_its_port_or_by_being_the_only_one() {
        assert_eq!(store_of(trial(), FIRST_PORT).name, "documents");
        assert_eq!(store_of(trial(), 1).name, "azure.cosmosdb");
        let one = || trial().throughput("budget", "0", 100.0, |_| 7.0);
        assert_eq!(store_of(one(), 1).name, "budget");
        assert_eq!(store_of(one().throughput("other", "0", 100.0, |_| 7.0), 1).name, "azure.cosmosdb");
    }

    #[test]
    fn readings_describe_the_seconds_they_touch() {
        let store =
            store_of(trial().throughput("documents", "0", 100.0, |s| if s == 5 { 90.0 } else { 10.0 }), FIRST_PORT);
        let second = |s: i64| TRIAL_START_NS + s * 1_000_000_000;
        assert_eq!(store.provisioned(), Some(100.0));
        assert_eq!(store.peak(|_, _| true), Some(90.0));
        assert_eq!(store.spent_between("0", second(5), second(6)), Some(90.0));
        assert_eq!(store.spent_between("0", second(7), second(8)), Some(10.0));
        assert_eq!(store.spent_between("1", second(5), second(6)), None);
    }
}
