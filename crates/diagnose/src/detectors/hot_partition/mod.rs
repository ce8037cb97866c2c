//! `hot-partition`: one of several alike places (partitions, replicas, servers) gets far more than its share and feels it.
//!
//! Three things must come together: counts that differ by more than chance, in the earlier and the later half of the
//! trial; a fullest place that uses more of what it may than the others, or answers later; and enough different keys that
//! a hash would have spread them. With few keys or few clients the load itself makes the skew: that is said, with low
//! confidence, because it is the test that wants mending.
//!
//! Where spans do not say which partition they went to, what the store spent on each is counted instead.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::{PartitionThroughput, TrialEvidence};
use narrows_model::finding::{Confidence, Figure, Finding, FindingKind};
use narrows_model::series::names;
use narrows_model::units;

use crate::Detector;
use crate::calls::median_of;
use crate::places::{Group, Kind, Visit, groups, ratio_of};
use crate::reading::Reading;
use crate::skew::{Skew, chance, expected_ratio};
use crate::thresholds::Thresholds;
use crate::words::{EXEMPLARS_MAX, exemplar};

/// See the module.
#[derive(Debug)]
pub struct HotPartition;

/// Units that one call is taken to spend, where only what was spent is known: few calls spend more.
const UNITS_OF_A_CALL: f64 = 10.0;
/// In each half of the trial the fullest must have this share of the ratio that all of it must show.
const HALF_RATIO_SHARE: f64 = 0.8;
/// One key with this share of the fullest place's visits is what makes it full.
const HOT_KEY_SHARE: f64 = 0.5;

impl Detector for HotPartition {
    fn kind(&self) -> FindingKind {
        FindingKind::HotPartition
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let groups = groups(reading);
        let seen: BTreeSet<&str> =
            groups.keys().filter(|(kind, _)| *kind == Kind::Partition).map(|(_, name)| name.as_str()).collect();
        let by_visits =
            groups.iter().filter_map(|((kind, name), group)| Case::of_visits(reading, (*kind, name), group));
        let by_units = spent(reading.trial)
            .into_iter()
            .filter(|(store, _)| !seen.contains(store.as_str()))
            .filter_map(|(store, counts)| Case::of_units(reading, store, counts));
        let cases = by_visits.chain(by_units).filter(|case| case.is_worth_saying(reading.thresholds));
        one_for_the_same_places(cases.collect()).into_iter().map(|case| case.finding(self)).collect()
    }
}

/// Of several groups of the same places, such as two statements to the same servers, the one with most visits.
fn one_for_the_same_places(mut cases: Vec<Case<'_>>) -> Vec<Case<'_>> {
    cases.sort_by(|a, b| b.count.total_cmp(&a.count));
    let mut seen: BTreeSet<(Kind, Vec<String>)> = BTreeSet::new();
    cases.retain(|case| case.kind != Kind::Server || seen.insert((case.kind, case.places.clone())));
    cases
}

/// What the partitions of each store spent in counted time: in all, and in the earlier half of it.
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

/// How the fullest place fares beside the others.
#[derive(Debug, Clone, Copy)]
struct Strain {
    /// Its use and the mean of the others', of what each may use; or in units when that is not known.
    used: Option<(f64, f64)>,
    /// Whether the use is a share of a limit.
    is_share: bool,
    /// Median length of a visit there and elsewhere, nanoseconds.
    latency_ns: Option<(f64, f64)>,
}

impl Strain {
    fn is_used(&self, thresholds: &Thresholds) -> bool {
        self.used.is_some_and(|(hot, others)| {
            let is_material = !self.is_share || hot >= thresholds.hot_use_share;
            hot > 0.0 && is_material && hot >= thresholds.hot_strain_ratio * others
        })
    }

    fn is_slow(&self, thresholds: &Thresholds) -> bool {
        self.latency_ns.is_some_and(|(hot, others)| {
            hot >= thresholds.hot_strain_ratio * others && hot - others >= thresholds.hot_latency_ns
        })
    }
}

/// Alike places, and the fullest of them.
struct Case<'a> {
    reading: &'a Reading<'a>,
    kind: Kind,
    name: String,
    places: Vec<String>,
    skew: Skew,
    is_lasting: bool,
    /// Visits, or calls that what was spent stands for.
    count: f64,
    strain: Strain,
    /// Different keys; none when they are not recorded.
    keys: Option<usize>,
    /// The largest share of one key among the visits of the fullest.
    top_key_share: Option<f64>,
    operation: Option<&'a str>,
    visits: Vec<Visit<'a>>,
}

impl<'a> Case<'a> {
    fn of_visits(reading: &'a Reading<'a>, (kind, name): (Kind, &str), group: &Group<'a>) -> Option<Self> {
        let places: Vec<String> = group.places.keys().cloned().collect();
        let counts: Vec<f64> = group.places.values().map(|visits| visits.len() as f64).collect();
        let skew = Skew::of(&counts)?;
        let hot = places.get(skew.hot)?.clone();
        let visits = group.places.get(&hot)?.clone();
        let strain = Strain { latency_ns: latency(group, &hot), ..used(reading.trial, (kind, name), &hot, &places) };
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
            is_lasting: group.is_lasting(&hot, HALF_RATIO_SHARE * reading.thresholds.hot_ratio),
            count: counts.iter().sum(),
            strain,
            keys: recorded.or_else(|| clients(reading.trial, kind)),
            top_key_share: recorded.map(|_| (top_key / weight.max(f64::MIN_POSITIVE)).min(1.0)),
            operation: most_asked.map(|(operation, _)| *operation),
            places,
            skew,
            visits,
        })
    }

    fn of_units(reading: &'a Reading<'a>, store: String, spent: Vec<(String, f64, f64)>) -> Option<Self> {
        let charge = charge_of_a_call(reading.trial);
        let counts: Vec<f64> = spent.iter().map(|(_, all, _)| all / charge).collect();
        let skew = Skew::of(&counts)?;
        let places: Vec<String> = spent.iter().map(|(name, ..)| name.clone()).collect();
        let ratio_min = HALF_RATIO_SHARE * reading.thresholds.hot_ratio;
        let halves = [spent.iter().map(|s| s.2).collect::<Vec<_>>(), spent.iter().map(|s| s.1 - s.2).collect()];
        let is_lasting = halves.iter().all(|half| ratio_of(half, skew.hot).is_some_and(|ratio| ratio >= ratio_min));
        let hot = places.get(skew.hot)?.clone();
        let strain = used(reading.trial, (Kind::Partition, &store), &hot, &places);
        Some(Self {
            reading,
            kind: Kind::Partition,
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
        })
    }

    fn hot(&self) -> &str {
        self.places.get(self.skew.hot).map_or("", String::as_str)
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_uneven = self.skew.ratio >= thresholds.hot_ratio && self.skew.is_significant && self.is_lasting;
        let is_felt = self.strain.is_used(thresholds) || self.strain.is_slow(thresholds);
        is_uneven && is_felt && self.count >= thresholds.hot_calls
    }

    /// Whether so few keys fall so by chance.
    fn is_artefact(&self) -> bool {
        self.keys.is_some_and(|keys| {
            chance(keys, self.places.len(), self.skew.share) >= self.reading.thresholds.hot_chance
                && !self.has_hot_key(keys)
        })
    }

    /// Whether one of many keys is asked for far more often than the others: that is the data's, not the number's.
    fn has_hot_key(&self, keys: usize) -> bool {
        keys >= 2 * self.places.len() && self.top_key_share.is_some_and(|share| share >= HOT_KEY_SHARE)
    }

    fn finding(&self, detector: &HotPartition) -> Finding {
        let (word, hot, name) = (self.kind.word(), self.hot(), &self.name);
        let what = if self.visits.is_empty() { "of what all spend" } else { "of the calls" };
        let title = format!(
            "{word} {hot} of {name} takes {} {what}, {} times the mean of {}",
            units::percent(self.skew.share),
            units::number(self.skew.ratio),
            self.places.len()
        );
        let few = self.keys.filter(|_| self.is_artefact());
        Finding {
            title: few.map_or(title.clone(), |keys| format!("{title}; the load has {} only", self.keys_words(keys))),
            resource: name.clone(),
            operation: self.operation.map(str::to_owned),
            cost_share: (1.0 - 1.0 / self.skew.ratio).clamp(0.0, 1.0),
            cost_of: format!("of the combined capacity of all {}s of {name}, when {word} {hot} is full", word),
            confidence: self.confidence(),
            reasons: self.reasons(),
            numbers: self.numbers(),
            exemplars: self
                .visits
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|visit| exemplar(visit.trace, [visit.span]))
                .collect(),
            ruled_out: self.ruled_out(),
            falsified_by: format!(
                "With keys that spread the same load evenly, the highest rate that {name} carries stays the same."
            ),
            advice: self.advice(),
            caveats: self.caveats().into_iter().map(Into::into).collect(),
            ..detector.finding()
        }
    }

    fn keys_words(&self, keys: usize) -> String {
        let word = if self.kind == Kind::Replica { "client" } else { "key" };
        format!("{} {word}{}", units::count(keys as u64), if keys == 1 { "" } else { "s" })
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

    fn reasons(&self) -> Vec<String> {
        let (word, hot) = (self.kind.word(), self.hot());
        let mut reasons = vec![format!(
            "Of {} calls {word} {hot} gets {}, where an even share of {} is {}; chance alone makes that less than once in a \
             thousand times.",
            units::count(self.count.round() as u64),
            units::percent(self.skew.share),
            self.places.len(),
            units::percent(1.0 / self.places.len() as f64)
        )];
        reasons.extend(self.strain.used.filter(|_| self.strain.is_used(self.reading.thresholds)).map(
            |(own, others)| {
                if self.strain.is_share {
                    format!(
                        "It uses {} of its limit on average, the others {}.",
                        units::percent(own),
                        units::percent(others)
                    )
                } else {
                    format!("It uses {} on average, the others {}.", units::number(own), units::number(others))
                }
            },
        ));
        let slow = self.strain.latency_ns.filter(|_| self.strain.is_slow(self.reading.thresholds));
        reasons.extend(slow.map(|(own, others)| {
            format!("A call there takes {} (median), elsewhere {}.", units::duration(own), units::duration(others))
        }));
        reasons.extend(self.keys.map(|keys| {
            format!(
                "The load has {}; a hash of that many would give the fullest about {} times the mean.",
                self.keys_words(keys),
                units::number(expected_ratio(keys, self.places.len()))
            )
        }));
        if let Some(share) = self.top_key_share.filter(|_| self.keys.is_some_and(|keys| self.has_hot_key(keys))) {
            reasons.push(format!("One key alone makes up as much as {} of the calls there.", units::percent(share)));
        }
        reasons
    }

    fn numbers(&self) -> Vec<Figure> {
        let mut numbers = vec![
            Figure::new("share of the fullest", self.skew.share * 100.0, "%"),
            Figure::new("fullest over the mean", self.skew.ratio, ""),
            Figure::new(format!("{}s", self.kind.word()), self.places.len() as f64, ""),
            Figure::new("calls", self.count, ""),
        ];
        if let Some((own, others)) = self.strain.used {
            let (factor, unit) = if self.strain.is_share { (100.0, "%") } else { (1.0, "") };
            numbers.push(Figure::new("used by the fullest, mean", own * factor, unit));
            numbers.push(Figure::new("used by the others, mean", others * factor, unit));
        }
        if let Some((own, others)) = self.strain.latency_ns {
            numbers.push(Figure::new("call to the fullest, median", own, "ns"));
            numbers.push(Figure::new("call to the others, median", others, "ns"));
        }
        if let Some(keys) = self.keys {
            numbers.push(Figure::new("different keys", keys as f64, ""));
            let expected = expected_ratio(keys, self.places.len());
            numbers.push(Figure::new("fullest over the mean, as the keys let expect", expected, ""));
        }
        numbers
    }

    fn ruled_out(&self) -> Vec<String> {
        let mut ruled_out = vec![
            "Chance among few calls: Pearson's chi-square is beyond its 99.9 % point.".to_owned(),
            "Warm-up or one burst: both halves of the trial show it.".into(),
        ];
        if self.keys.is_some() && !self.is_artefact() {
            ruled_out.push("Few keys in the load: a hash spreads that many keys more evenly than this.".into());
        }
        ruled_out
    }

    fn advice(&self) -> String {
        let (word, name) = (self.kind.word(), &self.name);
        if self.is_artefact() {
            return format!(
                "Before you change {name}, let the load use as many different keys and clients as the real one, at \
                 least ten for each {word}."
            );
        }
        if self.keys.is_some_and(|keys| self.has_hot_key(keys)) {
            return format!(
                "One key makes {word} {} of {name} full: spread it over several (a suffix, a synthetic key), cache the \
                 responses for it, or give it a {word} of its own.",
                self.hot()
            );
        }
        match self.kind {
            Kind::Partition | Kind::Topic => format!(
                "Choose a partition key for {name} that has many values with an even load, or add a suffix to the \
                 present key, and check which values are in {word} {} now.",
                self.hot()
            ),
            Kind::Replica | Kind::Server => format!(
                "Balance {name} by request and not by connection or client (least requests, or a hash of something \
                 that differs more), renew connections now and then, and check for sticky sessions and weights."
            ),
        }
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = vec!["Intentional weights look the same.".to_owned()];
        if self.is_artefact() {
            caveats.push(format!(
                "A test artefact: that few keys over {} {}s are often this uneven by chance, and more keys would not \
                 be.",
                self.places.len(),
                self.kind.word()
            ));
        }
        if self.keys.is_none() {
            caveats.push(
                "The traces do not record the keys, so it is not known whether the load has enough different ones."
                    .into(),
            );
        }
        if self.visits.is_empty() {
            caveats.push(
                "No span shows which partition it went to, so the consumption of each partition is counted instead."
                    .into(),
            );
        }
        caveats
    }
}

/// Median length of a visit at the fullest place and elsewhere.
fn latency(group: &Group<'_>, hot: &str) -> Option<(f64, f64)> {
    let of = |is_meant: &dyn Fn(&str) -> bool| {
        let places = group.places.iter().filter(|(place, _)| is_meant(place));
        let lengths: Vec<(f64, f64)> =
            places.flat_map(|(_, visits)| visits).map(|v| (v.span.duration_ns() as f64, v.weight)).collect();
        (!lengths.is_empty()).then(|| median_of(&lengths, |pair| *pair))
    };
    Some((of(&|place| place == hot)?, of(&|place| place != hot)?))
}

/// What the fullest place and the others use, in the mean.
fn used(trial: &TrialEvidence, (kind, name): (Kind, &str), hot: &str, places: &[String]) -> Strain {
    let of_place: Vec<(bool, f64, Option<f64>)> = match kind {
        Kind::Partition => {
            let reported = trial.throughput().into_iter().filter(|partition| partition.service == name);
            reported.filter_map(|p| Some((p.partition == hot, mean_spent(trial, &p)?, p.provisioned))).collect()
        }
        Kind::Replica => {
            let replicas = trial.services.iter().filter(|instance| instance.service == name);
            replicas
                .filter_map(|instance| {
                    let cores = mean_cores(trial, name, instance.replica)?;
                    Some((instance.replica.to_string() == hot, cores, instance.cpu_limit_cores))
                })
                .collect()
        }
        Kind::Server | Kind::Topic => Vec::new(),
    };
    let is_share = !of_place.is_empty() && of_place.iter().all(|(_, _, limit)| limit.is_some_and(|limit| limit > 0.0));
    let value =
        |(_, value, limit): &(bool, f64, Option<f64>)| limit.filter(|_| is_share).map_or(*value, |limit| value / limit);
    let others: Vec<f64> = of_place.iter().filter(|place| !place.0).map(value).collect();
    let own = of_place.iter().find(|place| place.0).map(value);
    let is_known = !others.is_empty() && of_place.len() == places.len();
    let others = others.iter().sum::<f64>() / others.len().max(1) as f64;
    Strain { used: own.filter(|_| is_known).map(|own| (own, others)), is_share, latency_ns: None }
}

fn mean_spent(trial: &TrialEvidence, partition: &PartitionThroughput) -> Option<f64> {
    mean(partition.consumed.iter().filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value))
}

fn mean_cores(trial: &TrialEvidence, service: &str, replica: u32) -> Option<f64> {
    let is_its = |key: &narrows_model::series::SeriesKey| {
        key.name == names::CPU_CORES && key.service == service && key.replica == replica
    };
    let points = trial.series.iter().filter(|series| is_its(&series.key)).flat_map(|series| &series.points);
    mean(points.filter(|point| trial.is_counted(point.time_ns)).map(|point| point.value))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// How many clients ask, where places are chosen by client or connection: the users of the load.
fn clients(trial: &TrialEvidence, kind: Kind) -> Option<usize> {
    let users = trial.counted_windows().map(|window| window.vus).max().filter(|users| *users > 0);
    users.filter(|_| kind == Kind::Replica).and_then(|users| usize::try_from(users).ok())
}

/// What a call to a store is charged in the mean, at least one unit.
fn charge_of_a_call(trial: &TrialEvidence) -> f64 {
    let calls = || trial.operations.iter().flat_map(|operation| &operation.calls).filter(|call| call.charge.is_some());
    let charge: f64 = calls().filter_map(|call| call.charge).sum();
    let succeeded: f64 = calls().map(|call| call.succeeded).sum();
    if succeeded > 0.0 && charge > 0.0 { (charge / succeeded).max(1.0) } else { UNITS_OF_A_CALL }
}

#[cfg(test)]
mod tests;
