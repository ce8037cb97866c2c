//! `hot-partition`: one of several equivalent places (partitions, replicas, servers) gets far more than its share and
//! is strained by it.
//!
//! Three things must coincide: counts that differ by more than chance, in both halves of the trial; a fullest place
//! that uses more of its limit than the others or responds later; and enough different keys for a hash to spread them.
//! With few keys or few clients the load itself causes the skew: this is reported with low confidence, because the test
//! needs fixing.
//!
//! If spans do not name the partition of a call, the store's consumption per partition is counted instead. If they do not
//! name the replica of a service, the calls that the sockets of its callers show are.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::call_graph::CallFigures;
use narrows_model::evidence::{PartitionThroughput, TrialEvidence};
use narrows_model::finding::evidence::hot_partition::{self as evidence, Counted, PlaceConnections, PlaceKind};
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind};
use narrows_model::series::names;

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::place_loads::{Group, Visit, groups, ratio_of};
use crate::stats::finite;
use crate::stats::skew::{Skew, chance, expected_ratio};
use crate::thresholds::{Thresholds, rule_thresholds};
use strain::{Strain, latency, used};

mod strain;
mod words;

rule_thresholds! {
    /// Calls to the fullest place, as a multiple of the mean.
    hot_ratio: f64 = 1.5;
    /// Calls that must be seen, so that a few are not enough.
    hot_calls: f64 = 30.0;
    /// Use or latency of the fullest place, as a multiple of the others'.
    hot_strain_ratio: f64 = 1.25;
    /// Share of its limit that the fullest place must use, when only its use is higher.
    hot_use_share: f64 = 0.5;
    /// Time by which calls to the fullest place must be longer, when only their latency is higher, nanoseconds.
    hot_latency_ns: f64 = 1e6;
    /// Probability that the load's keys fall this way by chance, from which there are too few of them.
    hot_chance: f64 = 0.001;
}

/// See the module.
#[derive(Debug)]
pub struct HotPartition;

/// Units assumed per call if only the consumption is known: few calls spend more.
const UNITS_OF_A_CALL: f64 = 10.0;
/// Share of the required ratio that the fullest place must reach in each half of the trial.
const HALF_RATIO_SHARE: f64 = 0.8;
/// Share of the fullest place's visits from which one key explains its load.
const HOT_KEY_SHARE: f64 = 0.5;

impl Detector for HotPartition {
    fn kind(&self) -> FindingKind {
        FindingKind::HotPartition
    }

    fn version(&self) -> u32 {
        2
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let groups = groups(reading);
        let seen: BTreeSet<&str> =
            groups.keys().filter(|(kind, _)| *kind == PlaceKind::Partition).map(|(_, name)| name.as_str()).collect();
        let by_visits =
            groups.iter().filter_map(|((kind, name), group)| Candidate::of_visits(reading, *kind, name, group));
        let by_units = spent(reading.trial)
            .into_iter()
            .filter(|(store, _)| !seen.contains(store.as_str()))
            .filter_map(|(store, counts)| Candidate::of_units(reading, store, counts));
        let is_seen = |service: &str| groups.contains_key(&(PlaceKind::Replica, service.to_owned()));
        let services = reading.trial.service_names().into_iter().filter(|service| !is_seen(service));
        let by_sockets = services.filter_map(|service| Candidate::of_sockets(reading, service));
        let candidates = by_visits
            .chain(by_units)
            .chain(by_sockets)
            .filter(|candidate| candidate.is_worth_saying(reading.thresholds));
        one_for_the_same_places(candidates.collect()).into_iter().map(|candidate| candidate.finding(self)).collect()
    }
}

/// Keeps one of several groups of the same places, such as two statements to the same servers: the one with most
/// visits.
fn one_for_the_same_places(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    candidates.sort_by(|a, b| b.count.total_cmp(&a.count));
    let mut seen: BTreeSet<(PlaceKind, Vec<String>)> = BTreeSet::new();
    candidates.retain(|candidate| {
        candidate.kind != PlaceKind::Server || seen.insert((candidate.kind, candidate.places.clone()))
    });
    candidates
}

/// (partition, units in counted time, units in its earlier half), by store. Values are sums of readings.
type Spent = BTreeMap<String, Vec<(String, f64, f64)>>;

fn spent(trial: &TrialEvidence) -> Spent {
    let mut stores = Spent::new();
    let counted = |partition: &PartitionThroughput| -> Vec<(i64, f64)> {
        let points = partition.consumed.iter().filter(|point| trial.is_counted(point.time_ns));
        points.map(|point| (point.time_ns, point.value)).collect()
    };
    for partition in trial.throughput() {
        let points = counted(&partition);
        let middle = points.len() / 2;
        let sum = |points: &[(i64, f64)]| points.iter().map(|(_, rate)| rate).sum::<f64>();
        let row = (partition.partition.clone(), sum(&points), sum(&points[..middle]));
        stores.entry(partition.service).or_default().push(row);
    }
    stores
}

/// Equivalent places, and the fullest of them.
struct Candidate<'a> {
    reading: &'a Reading<'a>,
    kind: PlaceKind,
    name: String,
    places: Vec<String>,
    skew: Skew,
    is_lasting: bool,
    /// Number of visits, or of calls estimated from the consumption.
    count: f64,
    strain: Strain,
    /// Number of different keys; `None` if they are not recorded.
    keys: Option<usize>,
    /// Largest share of one key among the fullest place's visits.
    top_key_share: Option<f64>,
    operation: Option<&'a str>,
    visits: Vec<Visit<'a>>,
    /// Connections to the places; `None` if sockets are not what is counted.
    connections: Option<PlaceConnections>,
}

impl<'a> Candidate<'a> {
    fn of_visits(reading: &'a Reading<'a>, kind: PlaceKind, name: &str, group: &Group<'a>) -> Option<Self> {
        let places: Vec<String> = group.places.keys().cloned().collect();
        let counts: Vec<f64> = group.places.values().map(|visits| visits.len() as f64).collect();
        let skew = Skew::from_counts(&counts)?;
        let hot = places.get(skew.hot)?.clone();
        let visits = group.places.get(&hot)?.clone();
        let strain = Strain { latency_ns: latency(group, &hot), ..used(reading.trial, kind, name, &hot, &places) };
        let most_asked = group.operations.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let recorded = (!group.keys.is_empty()).then_some(group.keys.len());
        let weight: f64 = visits.iter().map(|visit| visit.weight).sum();
        let mut keys_there: BTreeMap<&str, f64> = BTreeMap::new();
        for (key, weight) in visits.iter().filter_map(|visit| Some((visit.key?, visit.weight))) {
            *keys_there.entry(key).or_default() += weight;
        }
        let top_key = keys_there.into_values().fold(0.0, f64::max);
        Some(Self {
            reading,
            kind,
            name: name.to_owned(),
            is_lasting: group.is_lasting(&hot, HALF_RATIO_SHARE * reading.thresholds.hot_partition.hot_ratio),
            count: counts.iter().sum(),
            strain,
            keys: recorded.or_else(|| clients(reading.trial, kind)),
            top_key_share: recorded.map(|_| (top_key / weight.max(f64::MIN_POSITIVE)).min(1.0)),
            operation: most_asked.map(|(operation, _)| *operation),
            places,
            skew,
            visits,
            connections: None,
        })
    }

    /// Calls of other services to the replicas of one. The load chooses replicas in turn, so its own calls do not count.
    fn of_sockets(reading: &'a Reading<'a>, service: &str) -> Option<Self> {
        let edges = reading.conversations().graph.to(service).filter(|edge| edge.caller != names::GENERATOR);
        let steady = reading.intervals.iter().enumerate().filter(|(_, interval)| interval.is_steady);
        let mut levels: Vec<Vec<CallFigures>> = steady.map(|_| Vec::new()).collect();
        let mut seconds: Vec<f64> = Vec::new();
        for edge in edges {
            let steady = reading.intervals.iter().zip(&edge.levels).filter(|(interval, _)| interval.is_steady);
            seconds = steady.clone().map(|(interval, _)| interval.seconds()).collect();
            for (sums, (_, level)) in levels.iter_mut().zip(steady) {
                sums.resize(level.replicas.len(), CallFigures::default());
                sums.iter_mut().zip(&level.replicas).for_each(|(sum, more)| sum.add(more));
            }
        }
        let count = levels.first().map_or(0, Vec::len);
        let calls_of = |replica: usize| -> f64 {
            levels.iter().zip(&seconds).map(|(level, seconds)| level[replica].rate * seconds).sum()
        };
        let counts: Vec<f64> = (0..count).map(calls_of).collect();
        let skew = Skew::from_counts(&counts)?;
        let ratio_min = HALF_RATIO_SHARE * reading.thresholds.hot_partition.hot_ratio;
        let ratio =
            |level: &Vec<CallFigures>| ratio_of(&level.iter().map(|calls| calls.rate).collect::<Vec<_>>(), skew.hot);
        let places: Vec<String> = (0..count).map(|replica| replica.to_string()).collect();
        let hot = places.get(skew.hot)?.clone();
        let strain = used(reading.trial, PlaceKind::Replica, service, &hot, &places);
        let heaviest = levels.last()?;
        let others = heaviest.iter().enumerate().filter(|(replica, _)| *replica != skew.hot);
        let opened: f64 = heaviest.iter().map(|calls| calls.opened).sum();
        let all: f64 = heaviest.iter().map(|calls| calls.rate).sum();
        let connections = PlaceConnections {
            hot: finite(heaviest[skew.hot].connections),
            others: finite(others.map(|(_, calls)| calls.connections).sum::<f64>() / (count - 1).max(1) as f64),
            calls_each: (opened > 0.0).then(|| finite(all / opened)),
        };
        Some(Self {
            reading,
            kind: PlaceKind::Replica,
            name: service.to_owned(),
            is_lasting: levels.iter().all(|level| ratio(level).is_some_and(|ratio| ratio >= ratio_min)),
            count: counts.iter().sum(),
            strain,
            keys: None,
            top_key_share: None,
            operation: None,
            places,
            skew,
            visits: Vec::new(),
            connections: Some(connections),
        })
    }

    fn of_units(reading: &'a Reading<'a>, store: String, spent: Vec<(String, f64, f64)>) -> Option<Self> {
        let charge = charge_of_a_call(reading.trial);
        let counts: Vec<f64> = spent.iter().map(|(_, all, _)| all / charge).collect();
        let skew = Skew::from_counts(&counts)?;
        let places: Vec<String> = spent.iter().map(|(name, ..)| name.clone()).collect();
        let ratio_min = HALF_RATIO_SHARE * reading.thresholds.hot_partition.hot_ratio;
        let halves = [spent.iter().map(|s| s.2).collect::<Vec<_>>(), spent.iter().map(|s| s.1 - s.2).collect()];
        let is_lasting = halves.iter().all(|half| ratio_of(half, skew.hot).is_some_and(|ratio| ratio >= ratio_min));
        let hot = places.get(skew.hot)?.clone();
        let strain = used(reading.trial, PlaceKind::Partition, &store, &hot, &places);
        Some(Self {
            reading,
            kind: PlaceKind::Partition,
            name: store,
            is_lasting,
            count: counts.iter().sum(),
            strain,
            keys: None,
            top_key_share: None,
            operation: None,
            places,
            skew,
            visits: Vec::new(),
            connections: None,
        })
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_uneven =
            self.skew.ratio >= thresholds.hot_partition.hot_ratio && self.skew.is_significant && self.is_lasting;
        let is_felt = self.strain.is_used(thresholds) || self.strain.is_slow(thresholds);
        is_uneven && is_felt && self.count >= thresholds.hot_partition.hot_calls
    }

    /// Whether so few keys can cause this skew by chance.
    fn is_artefact(&self) -> bool {
        self.keys.is_some_and(|keys| {
            chance(keys, self.places.len(), self.skew.share) >= self.reading.thresholds.hot_partition.hot_chance
                && !self.has_hot_key(keys)
        })
    }

    /// Whether one of many keys is requested far more often than the others: the data causes that, not the number of
    /// keys.
    fn has_hot_key(&self, keys: usize) -> bool {
        keys >= 2 * self.places.len() && self.top_key_share.is_some_and(|share| share >= HOT_KEY_SHARE)
    }

    fn finding(&self, detector: &HotPartition) -> Finding {
        let shown = self.visits.iter().take(EXEMPLARS_MAX);
        Finding {
            resource: self.name.clone(),
            operation: self.operation.map(str::to_owned),
            cost_share: (1.0 - 1.0 / self.skew.ratio).clamp(0.0, 1.0),
            confidence: self.confidence(),
            exemplars: shown.map(|visit| exemplar(visit.trace, [visit.span])).collect(),
            caveats: self.caveats(),
            ..Finding::new(self.evidence(), detector.version())
        }
    }

    fn confidence(&self) -> Confidence {
        let thresholds = self.reading.thresholds;
        let both = self.strain.is_used(thresholds) && (self.strain.is_slow(thresholds) || self.strain.is_share);
        match (self.is_artefact(), both, self.keys) {
            (true, ..) => Confidence::Low,
            (false, true, Some(_)) => Confidence::High,
            _ => Confidence::Medium,
        }
    }

    fn evidence(&self) -> evidence::HotPartition {
        evidence::HotPartition {
            kind: self.kind,
            hot: self.places.get(self.skew.hot).cloned().unwrap_or_default(),
            places: self.places.len(),
            share: finite(self.skew.share),
            ratio: finite(self.skew.ratio),
            counted: self.counted(),
            calls: finite(self.count),
            used: self.strain.place_use(self.reading.thresholds),
            latency: self.strain.place_latency(self.reading.thresholds),
            keys: self.keys.map(|keys| evidence::Keys {
                count: keys,
                expected_ratio: expected_ratio(keys, self.places.len()),
                are_too_few: self.is_artefact(),
                hot_key_share: self.top_key_share.filter(|_| self.has_hot_key(keys)).map(finite),
            }),
            connections: self.connections,
        }
    }

    fn counted(&self) -> Counted {
        match (&self.connections, self.visits.is_empty()) {
            (Some(_), _) => Counted::Sockets,
            (None, true) => Counted::Consumption,
            (None, false) => Counted::Calls,
        }
    }

    fn caveats(&self) -> Vec<Caveat> {
        let few = Caveat::FewKeysByChance { place: self.kind, places: self.places.len() };
        let others = [
            self.is_artefact().then_some(few),
            self.keys.is_none().then_some(Caveat::KeysNotRecorded),
            (self.counted() == Counted::Consumption).then_some(Caveat::ConsumptionCounted),
        ];
        [Caveat::WeightsLookSame].into_iter().chain(others.into_iter().flatten()).collect()
    }
}

/// Number of clients for places chosen by client or connection: the users of the load.
fn clients(trial: &TrialEvidence, kind: PlaceKind) -> Option<usize> {
    let users = trial.counted_windows().map(|window| window.vus).max().filter(|users| *users > 0);
    users.filter(|_| kind == PlaceKind::Replica).and_then(|users| usize::try_from(users).ok())
}

/// Mean charge of a call to a store, at least one unit.
fn charge_of_a_call(trial: &TrialEvidence) -> f64 {
    let calls = || trial.operations.iter().flat_map(|operation| &operation.calls).filter(|call| call.charge.is_some());
    let charge: f64 = calls().filter_map(|call| call.charge).sum();
    let succeeded: f64 = calls().map(|call| call.succeeded).sum();
    if succeeded > 0.0 && charge > 0.0 { (charge / succeeded).max(1.0) } else { UNITS_OF_A_CALL }
}

#[cfg(test)]
mod tests;
