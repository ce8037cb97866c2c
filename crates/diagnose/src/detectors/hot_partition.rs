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
            caveats: self.caveats(),
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
mod tests {
    use narrows_model::trace::Trace;
    use narrows_testkit::spans::{SpanBuilder, client, document_query, server};
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use super::*;

    const LOAD: Load = Load { vus: 40, rate: 50.0, latency_ms: 20.0 };

    /// A look-up of one of `keys` owners in a partition, as long as told.
    fn look_up(partition: usize, key: usize, ms: f64) -> SpanBuilder {
        document_query(&format!("SELECT * FROM c WHERE c.owner = {key}"), &partition.to_string()).at(2.0, ms)
    }

    fn traces(count: u32, call: impl Fn(usize) -> SpanBuilder) -> Vec<Trace> {
        let request = |n: u32| server("shop", "GET /owner").at(0.0, 50.0).child(call(n as usize));
        (0..count).map(|n| request(n).trace(n * 10)).collect()
    }

    /// Of ten requests six go to partition 0, one to each of the others.
    fn uneven(n: usize) -> usize {
        (n % 10).saturating_sub(5)
    }

    fn trial(traces: Vec<Trace>) -> TrialBuilder {
        TrialBuilder::new("a").service("shop", None).service("store", None).steady(20, LOAD).traces(traces)
    }

    fn with_readings(trial: TrialBuilder, spent: impl Fn(usize) -> f64) -> TrialBuilder {
        (0..5).fold(trial, |trial, partition| {
            let spent = spent(partition);
            trial.throughput("store", &partition.to_string(), 100.0, move |_| spent)
        })
    }

    fn hot(partition: usize) -> f64 {
        if partition == 0 { 85.0 } else { 15.0 }
    }

    fn detect(trial: TrialBuilder) -> Vec<Finding> {
        crate::detect(&HotPartition, &trial.build(), &Thresholds::default())
    }

    #[test]
    fn a_partition_with_most_of_the_calls_is_named() {
        let findings = detect(with_readings(trial(traces(200, |n| look_up(uneven(n), n, 5.0))), hot));
        let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
        assert_eq!(finding.title, "partition 0 of store takes 60 % of the calls, 3 times the mean of 5");
        assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("store", Some("GET /owner")));
        assert!((finding.cost_share - 2.0 / 3.0).abs() < 1e-9, "{}", finding.cost_share);
        assert_eq!((finding.confidence, finding.exemplars.len()), (Confidence::High, 3));
        assert_eq!(finding.reasons[1], "It uses 85 % of its limit on average, the others 15 %.");
    }

    #[test]
    fn slower_answers_are_a_sign_as_well() {
        let slow = |n: usize| look_up(uneven(n), n, if uneven(n) == 0 { 20.0 } else { 5.0 });
        let findings = detect(trial(traces(200, slow)));
        assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
        assert!(findings[0].reasons[1].starts_with("A call there takes 20.0 ms"), "{:?}", findings[0].reasons);
    }

    #[test]
    fn replicas_are_told_by_their_ports() {
        let to = |n: usize| client("GET").to_port(FIRST_PORT + 1 + (n % 10).saturating_sub(7) as u16).at(2.0, 9.0);
        let trial = TrialBuilder::new("a").service("shop", None);
        let trial = (0..3).fold(trial, |trial, _| trial.service("stock", Some(1.0))).steady(20, LOAD);
        let cpu = |trial: TrialBuilder, first: f64| {
            (0..3).fold(trial, |trial, replica| {
                trial.cpu("stock", replica, move |_| if replica == 0 { first } else { 0.2 })
            })
        };
        let findings = detect(cpu(trial.traces(traces(200, to)), 0.9));
        assert_eq!((findings.len(), findings[0].resource.as_str()), (1, "stock"));
        assert!(findings[0].title.starts_with("replica 0 of stock takes 80 % of the calls"), "{}", findings[0].title);
        assert!(findings[0].advice.starts_with("Balance stock by request"));
    }

    #[test]
    fn what_partitions_spend_speaks_where_spans_do_not() {
        let findings = detect(with_readings(trial(Vec::new()), hot));
        assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Medium));
        assert!(findings[0].title.contains("takes 59 % of what all spend"), "{}", findings[0].title);
    }

    #[test]
    fn few_keys_are_an_artefact() {
        let one = detect(with_readings(trial(traces(200, |_| look_up(0, 7, 5.0))), hot));
        assert_eq!((one.len(), one[0].confidence), (1, Confidence::Low));
        assert!(one[0].title.ends_with("; the load has 1 key only"), "{}", one[0].title);
        let few = detect(with_readings(trial(traces(200, |n| look_up(uneven(n), uneven(n), 5.0))), hot));
        assert_eq!((few.len(), few[0].confidence), (1, Confidence::Low));
        assert!(few[0].advice.contains("let the load use as many different keys"));
    }

    #[test]
    fn one_key_of_many_is_told() {
        let call = |n: usize| look_up(uneven(n), if uneven(n) == 0 { 0 } else { n }, 5.0);
        let findings = detect(with_readings(trial(traces(200, call)), hot));
        assert_eq!(findings[0].confidence, Confidence::High);
        assert!(findings[0].advice.starts_with("One key makes partition 0 of store full"), "{}", findings[0].advice);
    }

    #[test]
    fn few_clients_of_several_replicas_are_an_artefact() {
        let to = |n: usize| client("GET").to_port(FIRST_PORT + 1 + u16::from(n.is_multiple_of(4))).at(2.0, 9.0);
        let load = Load { vus: 4, ..LOAD };
        let trial =
            TrialBuilder::new("a").service("shop", None).service("stock", Some(1.0)).service("stock", Some(1.0));
        let trial = trial.steady(20, load).traces(traces(200, to));
        let trial = trial.cpu("stock", 0, |_| 0.9).cpu("stock", 1, |_| 0.3);
        let findings = detect(trial);
        assert_eq!((findings.len(), findings[0].confidence), (1, Confidence::Low));
        assert!(findings[0].title.ends_with("the load has 4 clients only"), "{}", findings[0].title);
    }

    #[test]
    fn even_or_harmless_loads_are_left_alone() {
        let even = |n: usize| look_up(n % 5, n, 5.0);
        let all = |_: usize| client("query").children((0..5).map(|partition| look_up(partition, 1, 5.0)));
        let early = |n: usize| look_up(if n < 90 { 0 } else { n % 5 }, n, 5.0);
        let cases = [
            ("evenly spread", with_readings(trial(traces(200, even)), hot)),
            ("all are asked", with_readings(trial(traces(200, all)), hot)),
            ("few calls", with_readings(trial(traces(10, |n| look_up(uneven(n), n, 5.0))), hot)),
            ("nobody feels it", with_readings(trial(traces(200, |n| look_up(uneven(n), n, 5.0))), |_| 20.0)),
            (
                "much room",
                with_readings(trial(traces(200, |n| look_up(uneven(n), n, 5.0))), |p| if p == 0 { 9.0 } else { 2.0 }),
            ),
            ("only at first", with_readings(trial(traces(200, early)), hot)),
            ("without readings", trial(traces(200, |n| look_up(uneven(n), n, 5.0)))),
            ("one partition", trial(traces(200, |n| look_up(0, n, 5.0)))),
            ("even readings alone", with_readings(trial(Vec::new()), |_| 60.0)),
        ];
        for (name, trial) in cases {
            assert_eq!(detect(trial), [], "with {name}");
        }
    }

    #[test]
    fn a_hot_key_of_another_partition_is_not_taken_for_this_ones() {
        // Half of the calls go to partition 0, each with a key of its own; all to partition 1 are for one key.
        let partition = |n: usize| [0, 0, 0, 0, 0, 1, 1, 1, 2, 3][n % 10];
        let key = |n: usize| if partition(n) == 1 { 7777 } else { n };
        let findings = detect(with_readings(trial(traces(200, |n| look_up(partition(n), key(n), 5.0))), hot));
        let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
        assert!(finding.title.starts_with("partition 0 of store takes 50 %"), "{}", finding.title);
        assert!(!finding.reasons.iter().any(|reason| reason.starts_with("One key alone")), "{:?}", finding.reasons);
        assert!(!finding.advice.starts_with("One key"), "{}", finding.advice);
    }

    #[test]
    fn a_request_that_caller_and_replica_both_show_counts_once() {
        let port = |n: usize| FIRST_PORT + 1 + (n % 10).saturating_sub(7) as u16;
        let to = |n: usize| {
            let answer = server("stock", "GET /part").to_port(port(n)).at(3.0, 7.0);
            client("GET").to_port(port(n)).at(2.0, 9.0).child(answer)
        };
        let services = TrialBuilder::new("a").service("shop", None);
        let services = (0..3).fold(services, |trial, _| trial.service("stock", Some(1.0))).steady(20, LOAD);
        let cpu = (0..3).fold(services.traces(traces(200, to)), |trial, replica| {
            trial.cpu("stock", replica, move |_| if replica == 0 { 0.9 } else { 0.2 })
        });
        let findings = detect(cpu);
        assert!(findings[0].reasons[0].starts_with("Of 200 calls"), "{:?}", findings[0].reasons);
    }
}
