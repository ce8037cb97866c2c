//! Inner life of the services of one trial second by second, ready to be drawn: operations, responses of
//! databases, how busy replicas were, what partitions of a store spent.
//!
//! Which operations and which calls are drawn is settled once for the run, so that trials can be compared. Nothing is
//! smoothed: a second in which nothing completed is a gap, a second of a level without a call is a zero, and the time between
//! two levels is a gap.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::operation::{CallEvidence, OperationEvidence};
use narrows_model::run::Window;
use narrows_model::series::{Series, names};

use super::thin::Xy;
use super::timeline::Clock;

/// Operations drawn: the slowest.
const OPERATIONS_MAX: usize = 6;
/// Partitions of a trial that get a line each; of more, only the highest and the mean are drawn.
const PARTITIONS_MAX: usize = 32;
/// Partition lines of all trials together.
const PARTITION_LINES_TOTAL: usize = 160;
/// Levels of provisioned throughput drawn in one chart.
const PROVISIONED_MAX: usize = 3;
/// Names of databases in a title.
const TARGETS_MAX: usize = 3;
const SECOND_NS: i64 = 1_000_000_000;

/// Subjects of a run's charts, the same for every trial.
pub(super) struct Subjects<'a> {
    /// Service and name, slowest first.
    pub(super) operations: Vec<(&'a str, &'a str)>,
    calls: Calls,
    /// Targets of the calls, for a title.
    pub(super) targets: String,
    partitions_max: usize,
}

/// The calls whose responses are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Calls {
    OfDatabases,
    All,
    None,
}

/// One trial's lines.
#[derive(Debug, Default)]
pub(super) struct Insides {
    /// Mean duration of each of the run's operations in nanoseconds; empty where the trial has none.
    pub(super) operations: Vec<Vec<Xy>>,
    /// Calls each second: successes, 429, other failures; empty when nothing was called.
    pub(super) responses: [Vec<Xy>; 3],
    /// Average and maximum over replicas, per cent.
    pub(super) cpu: [Vec<Xy>; 2],
    /// CPU use of the whole machine, percent.
    pub(super) machine: Vec<Xy>,
    pub(super) throughput: Throughput,
}

/// Throughput spent by the partitions of a trial's stores, units per second.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    /// Name and line; empty when there are too many.
    pub(super) partitions: Vec<(String, Vec<Xy>)>,
    pub(super) mean: Vec<Xy>,
    /// Only when partitions have no line of their own.
    pub(super) highest: Vec<Xy>,
    /// The distinct levels, falling.
    pub(super) provisioned: Vec<f64>,
}

impl<'a> Subjects<'a> {
    pub(super) fn new(evidence: &'a RunEvidence) -> Self {
        let operations = || evidence.trials.iter().flat_map(|trial| &trial.operations);
        let mut slowest: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for operation in operations().filter(|operation| operation.completed > 0.0) {
            let mean = slowest.entry((&operation.service, &operation.name)).or_default();
            *mean = mean.max(operation.duration.mean_ns());
        }
        let mut ranked: Vec<_> = slowest.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked.truncate(OPERATIONS_MAX);
        let all_calls = || operations().flat_map(|operation| &operation.calls);
        let calls = match () {
            () if all_calls().any(|call| call.is_database) => Calls::OfDatabases,
            () if all_calls().any(|call| call.throttled > 0.0) => Calls::All,
            () => Calls::None,
        };
        let targets = all_calls().filter(|call| calls.include(call)).map(|call| call.target.as_str());
        let targets: BTreeSet<&str> = targets.filter(|target| !target.is_empty()).collect();
        let partitions: usize = evidence.trials.iter().map(|trial| trial.throughput().len()).sum();
        Self {
            operations: ranked.into_iter().map(|(name, _)| name).collect(),
            calls,
            targets: match (targets.len(), calls) {
                (1..=TARGETS_MAX, _) => targets.into_iter().collect::<Vec<_>>().join(", "),
                (_, Calls::OfDatabases) => "databases".to_owned(),
                _ => "what is called".to_owned(),
            },
            partitions_max: if partitions > PARTITION_LINES_TOTAL { 0 } else { PARTITIONS_MAX },
        }
    }
}

impl Calls {
    fn include(self, call: &CallEvidence) -> bool {
        match self {
            Calls::OfDatabases => call.is_database,
            Calls::All => true,
            Calls::None => false,
        }
    }
}

impl Insides {
    /// Gathers a trial's lines.
    pub(super) fn new(evidence: &TrialEvidence, subjects: &Subjects<'_>) -> Self {
        let Some(clock) = Clock::new(evidence) else { return Self::default() };
        let line = |name: &(&str, &str)| {
            let known = evidence.operations.iter().find(|o| (o.service.as_str(), o.name.as_str()) == *name);
            known.map_or(Vec::new(), |operation| means(operation, &clock))
        };
        Self {
            operations: subjects.operations.iter().map(line).collect(),
            responses: responses(evidence, subjects.calls, &clock),
            cpu: cpu_of_replicas(evidence, &clock),
            machine: cpu_of_machine(evidence, &clock),
            throughput: throughput(evidence, subjects.partitions_max, &clock),
        }
    }

    /// Number of lines to draw.
    pub(super) fn lines(&self) -> usize {
        self.operations.len() + self.responses.len() + self.cpu.len() + self.throughput.partitions.len() + 3
    }
}

fn means(operation: &OperationEvidence, clock: &Clock) -> Vec<Xy> {
    let mut line: Vec<Xy> = Vec::new();
    for second in operation.seconds.iter().filter(|second| second.completed > 0.0) {
        let x = clock.at(second.start_ns) + 0.5;
        if let Some(last) = line.last().filter(|last| x - last.0 > 1.5) {
            line.push((last.0 + 0.5, f64::NAN));
        }
        line.push((x, second.duration_sum_ns / second.completed));
    }
    line
}

/// Successes, 429 and failures in each second of the counted windows; seconds cut short by a window's end left out.
fn responses(evidence: &TrialEvidence, calls: Calls, clock: &Clock) -> [Vec<Xy>; 3] {
    let mut sums: BTreeMap<i64, [f64; 3]> = BTreeMap::new();
    let drawn = evidence.operations.iter().flat_map(|operation| &operation.calls).filter(|call| calls.include(call));
    for second in drawn.flat_map(|call| &call.seconds) {
        let is_whole = second.start_ns.saturating_add(SECOND_NS) <= clock.full_end_ns;
        if is_whole && evidence.is_counted(second.start_ns) {
            let sum = sums.entry(second.start_ns).or_default();
            let counts = [second.succeeded, second.throttled, second.failed];
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    let mut lines: [Vec<Xy>; 3] = Default::default();
    let mut push = |x: f64, counts: [f64; 3]| lines.iter_mut().zip(counts).for_each(|(line, n)| line.push((x, n)));
    let mut last: Option<(i64, f64)> = None;
    for (start_ns, counts) in sums {
        let x = clock.at(start_ns) + 0.5;
        match last.filter(|(_, last)| x - last > 1.5) {
            Some((last_ns, last)) if is_one_level(evidence, last_ns, start_ns) => {
                push(last + 1.0, [0.0; 3]);
                push(x - 1.0, [0.0; 3]);
            }
            Some((_, last)) => push(last + 0.5, [f64::NAN; 3]),
            None => {}
        }
        push(x, counts);
        last = Some((start_ns, x));
    }
    lines
}

/// True if two instants lie in the same counted window.
fn is_one_level(evidence: &TrialEvidence, first_ns: i64, second_ns: i64) -> bool {
    let holds = |window: &Window| [first_ns, second_ns].iter().all(|ns| (window.start_ns..window.end_ns).contains(ns));
    evidence.counted_windows().any(holds)
}

/// How busy the replicas of the services were: of each, CPU ÷ its limit (the machine where it has none) or the share
/// of its busiest thread, whichever is larger. At each sample the mean and the largest over all replicas.
fn cpu_of_replicas(evidence: &TrialEvidence, clock: &Clock) -> [Vec<Xy>; 2] {
    let mut busy: BTreeMap<(i64, &str, u32), f64> = BTreeMap::new();
    let is_service = |series: &&Series| !series.key.service.is_empty() && series.key.service != names::GENERATOR;
    for series in evidence.series.iter().filter(is_service) {
        let cores = match series.key.name.as_str() {
            names::CPU_CORES => limit(evidence, &series.key.service, series.key.replica),
            names::BUSIEST_THREAD_CORES => 1.0,
            _ => continue,
        };
        for point in series.points.iter().filter(|point| point.value.is_finite() && clock.is_drawn(point.time_ns)) {
            let share = busy.entry((point.time_ns, &series.key.service, series.key.replica)).or_default();
            *share = share.max(point.value / cores * 100.0);
        }
    }
    let shares = busy.into_iter().map(|((time_ns, ..), share)| (time_ns, share));
    over_instants(shares, clock)
}

/// CPU use of the whole machine, percent.
fn cpu_of_machine(evidence: &TrialEvidence, clock: &Clock) -> Vec<Xy> {
    let of_host = evidence
        .series
        .iter()
        .filter(|series| series.key.name == names::HOST_CPU_UTILIZATION && series.key.service.is_empty());
    let points = of_host.flat_map(|series| &series.points);
    let drawn = points.filter(|point| point.value.is_finite() && clock.is_drawn(point.time_ns));
    drawn.map(|point| (clock.at(point.time_ns), point.value * 100.0)).collect()
}

/// Cores that a replica may use.
fn limit(evidence: &TrialEvidence, service: &str, replica: u32) -> f64 {
    let instance = evidence.services.iter().find(|s| s.service == service && s.replica == replica);
    let cap = instance.and_then(|instance| instance.cpu_limit_cores).filter(|cap| *cap > 0.0);
    cap.unwrap_or(f64::from(evidence.cores.max(1)))
}

/// The mean and the largest of the values at each instant.
fn over_instants(values: impl Iterator<Item = (i64, f64)>, clock: &Clock) -> [Vec<Xy>; 2] {
    let mut at: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    values.for_each(|(time_ns, value)| at.entry(time_ns).or_default().push(value));
    let line = |of: fn(&[f64]) -> f64| at.iter().map(|(time_ns, values)| (clock.at(*time_ns), of(values))).collect();
    [line(|values| values.iter().sum::<f64>() / values.len() as f64), line(|v| v.iter().copied().fold(0.0, f64::max))]
}

fn throughput(evidence: &TrialEvidence, partitions_max: usize, clock: &Clock) -> Throughput {
    let partitions = evidence.throughput();
    let stores: BTreeSet<&str> = partitions.iter().map(|partition| partition.service.as_str()).collect();
    let drawn = |time_ns: i64| clock.is_drawn(time_ns);
    let points = partitions.iter().flat_map(|partition| &partition.consumed).filter(|point| drawn(point.time_ns));
    let [mean, highest] = over_instants(points.map(|point| (point.time_ns, point.value)), clock);
    let mut provisioned: Vec<f64> = partitions.iter().filter_map(|partition| partition.provisioned).collect();
    provisioned.sort_by(|a, b| b.total_cmp(a));
    provisioned.dedup();
    provisioned.truncate(PROVISIONED_MAX);
    if partitions.len() > partitions_max {
        return Throughput { partitions: Vec::new(), mean, highest, provisioned };
    }
    let named = |partition: &narrows_model::evidence::PartitionThroughput| {
        let store = if stores.len() > 1 { format!("{} ", partition.service) } else { String::new() };
        let points = partition.consumed.iter().filter(|point| drawn(point.time_ns));
        let line = points.map(|point| (clock.at(point.time_ns), point.value)).collect();
        (format!("{store}partition {}", partition.partition), line)
    };
    Throughput { partitions: partitions.iter().map(named).collect(), mean, highest: Vec::new(), provisioned }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, drones};
    use narrows_model::operation::{CallSecond, OperationSecond};

    #[test]
    fn the_slowest_operations_come_first_and_are_the_same_for_every_trial() {
        let outcome = drones::outcome();
        let subjects = Subjects::new(&outcome.evidence);
        let services: Vec<&str> = subjects.operations.iter().map(|(service, _)| *service).collect();
        assert_eq!(services, ["gateway", "drone-scheduler", "delivery", "package"]);
        assert_eq!(subjects.targets, "azure.cosmosdb");
        let orders = fixture::outcome();
        let nothing = Subjects::new(&orders.evidence);
        assert_eq!((nothing.operations.len(), nothing.calls), (0, Calls::None));
    }

    #[test]
    fn a_second_without_an_operation_is_a_gap_and_one_without_a_call_is_zero() {
        let mut outcome = drones::outcome();
        let trial = &mut outcome.evidence.trials[0];
        let start_ns = trial.windows[1].start_ns;
        let operation = &mut trial.operations[1];
        let second =
            |n: i64| OperationSecond { start_ns: start_ns + n * SECOND_NS, completed: 2.0, duration_sum_ns: 6.0 };
        operation.seconds = vec![second(0), second(1), second(5)];
        let call = |n: i64| CallSecond { start_ns: start_ns + n * SECOND_NS, throttled: 3.0, ..CallSecond::default() };
        operation.calls[0].seconds = vec![call(0), call(4), call(500)];
        let subjects = Subjects::new(&outcome.evidence);
        let insides = Insides::new(&outcome.evidence.trials[0], &subjects);
        let line = &insides.operations[1];
        assert_eq!((line.len(), line[0], line[3]), (4, (10.5, 3.0), (15.5, 3.0)));
        assert!(line[2].1.is_nan());
        assert_eq!(insides.responses[1], [(10.5, 3.0), (11.5, 0.0), (13.5, 0.0), (14.5, 3.0)]);
    }

    #[test]
    fn responses_have_a_gap_between_two_levels() {
        let mut outcome = drones::outcome();
        let trial = &mut outcome.evidence.trials[0];
        let start_ns = trial.windows[1].start_ns;
        let at = |n: i64| start_ns + n * SECOND_NS;
        let mut second = trial.windows[1].clone();
        (trial.windows[1].end_ns, second.start_ns) = (at(2), at(7));
        trial.windows.push(second);
        let call = |n: i64| CallSecond { start_ns: at(n), succeeded: 3.0, ..CallSecond::default() };
        trial.operations.iter_mut().for_each(|operation| operation.calls.clear());
        let mut calls = drones::outcome().evidence.trials[0].operations[1].calls.clone();
        calls[0].seconds = (0..10).map(call).collect();
        trial.operations[1].calls = calls;
        let subjects = Subjects::new(&outcome.evidence);
        let line = &Insides::new(&outcome.evidence.trials[0], &subjects).responses[0];
        let drawn: Vec<f64> = line.iter().map(|(x, _)| *x).collect();
        assert_eq!(drawn, [10.5, 11.5, 12.0, 17.5, 18.5, 19.5]);
        assert!(line[2].1.is_nan() && line.iter().all(|(_, value)| *value != 0.0), "{line:?}");
    }

    #[test]
    fn a_replica_is_as_busy_as_its_limit_or_its_busiest_thread_says() {
        let mut outcome = drones::outcome();
        let trial = &mut outcome.evidence.trials[0];
        trial.series.retain(|series| series.key.service == "gateway" || series.key.service == "docstore");
        for series in &mut trial.series {
            series.points.truncate(1);
            series.points[0].value = match (series.key.service.as_str(), series.key.name.as_str()) {
                ("gateway", names::CPU_CORES) => 0.5,
                ("gateway", _) => 0.2,
                (_, names::CPU_CORES) => 0.6,
                _ => 0.4,
            };
        }
        let subjects = Subjects::new(&outcome.evidence);
        // The gateway uses 50 % of its limit; the store 30 % of two cores, but 40 % of one thread.
        assert_eq!(Insides::new(&outcome.evidence.trials[0], &subjects).cpu, [vec![(0.0, 45.0)], vec![(0.0, 50.0)]]);
    }

    #[test]
    fn the_machine_is_as_busy_as_all_of_its_cores() {
        let mut outcome = drones::outcome();
        let trial = &mut outcome.evidence.trials[0];
        trial.series.truncate(1);
        let key = &mut trial.series[0].key;
        (key.name, key.service) = (names::HOST_CPU_UTILIZATION.to_owned(), String::new());
        trial.series[0].points.truncate(1);
        trial.series[0].points[0].value = 0.83;
        let subjects = Subjects::new(&outcome.evidence);
        let drawn: Vec<f64> =
            Insides::new(&outcome.evidence.trials[0], &subjects).machine.iter().map(|(_, share)| *share).collect();
        assert_eq!(drawn, [83.0]);
    }

    #[test]
    fn many_partitions_become_the_highest_and_the_mean() {
        let mut outcome = drones::outcome();
        let trial = &outcome.evidence.trials[0];
        let clock = Clock::new(trial).unwrap();
        let few = throughput(trial, PARTITIONS_MAX, &clock);
        assert_eq!((few.partitions.len(), few.highest.len(), few.provisioned), (9, 0, vec![100.0]));
        let many = throughput(trial, 8, &clock);
        assert_eq!((many.partitions.len(), many.highest.len()), (0, few.mean.len()));
        let line = |values: &[(String, Vec<Xy>)], n: usize| values[n].1[30].1;
        let highest = (0..9).map(|n| line(&few.partitions, n)).fold(0.0, f64::max);
        assert_eq!(many.highest[30].1, highest);
        outcome.evidence.trials = (0..20).map(|_| outcome.evidence.trials[0].clone()).collect();
        assert_eq!(Subjects::new(&outcome.evidence).partitions_max, 0);
    }
}
