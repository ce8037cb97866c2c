//! `provisioned-rate`: a store's partition spends nearly all that it may, second after second.
//!
//! What is provisioned is a rate for each second, so it is read second by second: readings closer together are joined
//! to seconds, readings further apart are taken for what they are, a mean that hides peaks. What decides is the time at
//! the top, not the single highest second, which a burst makes in any long run.
//!
//! Where attempts are refused in those seconds, either requests wait for them, which `throttling` names and this explains,
//! or they do not: a store that refuses a little is used well, and nothing is said.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::{PartitionThroughput, TrialEvidence};
use narrows_model::finding::{Confidence, Exemplar, Figure, Finding, FindingKind};
use narrows_model::series::names;
use narrows_model::units;

use crate::Detector;
use crate::detectors::throttling::Throttling;
use crate::periods::period_of;
use crate::reading::Reading;
use crate::refusals::SECOND_NS;
use crate::stores::readings;
use crate::words::{EXEMPLARS_MAX, exemplar};

/// See the module.
#[derive(Debug)]
pub struct ProvisionedRate;

/// Readings are joined until they are this long, nanoseconds: a second, less what a timer is early.
const JOINED_NS: i64 = 900_000_000;
const NS: f64 = 1e9;

impl Detector for ProvisionedRate {
    fn kind(&self) -> FindingKind {
        FindingKind::ProvisionedRate
    }

    fn version(&self) -> u32 {
        1
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let mut stores: BTreeMap<String, Vec<Partition>> = BTreeMap::new();
        for reported in reading.trial.throughput() {
            if let Some(partition) = Partition::of(reading, &reported) {
                stores.entry(reported.service).or_default().push(partition);
            }
        }
        let cases = stores.into_iter().filter_map(|(store, partitions)| Case::new(reading, store, partitions));
        let cases: Vec<Case<'_>> = cases.filter(Case::is_worth_saying).collect();
        if cases.is_empty() {
            return Vec::new();
        }
        let refusing: BTreeSet<String> =
            Throttling.detect(reading).into_iter().map(|finding| finding.resource).collect();
        // What refuses without anybody waiting for it is used well.
        let cases = cases.iter().filter(|case| case.refused == 0.0 || refusing.contains(&case.store));
        cases.map(|case| case.finding(self)).collect()
    }
}

/// What one partition spent of what it may, in counted time.
struct Partition {
    name: String,
    provisioned: f64,
    is_fixed: bool,
    /// Of about a second each, or longer where the store tells less often.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    from_ns: i64,
    to_ns: i64,
    /// Of what is provisioned.
    share: f64,
}

impl Part {
    fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / NS
    }
}

impl Partition {
    /// None when it is not known what it may spend.
    fn of(reading: &Reading<'_>, reported: &PartitionThroughput) -> Option<Self> {
        let trial = reading.trial;
        let (least, most) = provisioned(trial, reported)?;
        let change_max = reading.thresholds.provisioned_change_share;
        let mut parts = Vec::new();
        let mut open: Option<(i64, f64)> = None;
        for (from_ns, to_ns, rate) in readings(reported).filter(|(from, to, _)| from < to && trial.is_counted(*to - 1))
        {
            let amount = rate * to_ns.saturating_sub(from_ns) as f64 / NS;
            let (start_ns, sum) = open.take().map_or((from_ns, amount), |(start_ns, sum)| (start_ns, sum + amount));
            if to_ns.saturating_sub(start_ns) < JOINED_NS {
                open = Some((start_ns, sum));
                continue;
            }
            let rate = sum / (to_ns.saturating_sub(start_ns) as f64 / NS);
            parts.push(Part { from_ns: start_ns, to_ns, share: rate / most });
        }
        let is_fixed = most - least <= change_max * most;
        let name = reported.partition.clone();
        (!parts.is_empty()).then_some(Self { name, provisioned: most, is_fixed, parts })
    }

    fn seconds(&self) -> f64 {
        self.parts.iter().map(Part::seconds).sum()
    }

    /// The use that is exceeded in no more than this share of the time.
    fn top(&self, left_out: f64) -> f64 {
        let mut parts = self.parts.clone();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut left = left_out * self.seconds();
        let at = parts.iter().find(|part| {
            left -= part.seconds();
            left < 0.0
        });
        at.or(parts.last()).map_or(0.0, |part| part.share)
    }

    fn peak(&self) -> f64 {
        self.parts.iter().map(|part| part.share).fold(0.0, f64::max)
    }

    fn mean(&self) -> f64 {
        self.parts.iter().map(|part| part.share * part.seconds()).sum::<f64>() / self.seconds().max(f64::MIN_POSITIVE)
    }

    fn full(&self, share: f64) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.share >= share)
    }

    fn full_seconds(&self, share: f64) -> f64 {
        self.full(share).map(Part::seconds).sum()
    }
}

/// The least and the most that a partition may spend each second, over the trial.
fn provisioned(trial: &TrialEvidence, reported: &PartitionThroughput) -> Option<(f64, f64)> {
    let is_its = |key: &narrows_model::series::SeriesKey| {
        key.name == names::THROUGHPUT_PROVISIONED
            && key.service == reported.service
            && key.labels.get(names::PARTITION).map_or("", String::as_str) == reported.partition
    };
    let values = || trial.series.iter().filter(|series| is_its(&series.key)).flat_map(|s| &s.points).map(|p| p.value);
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    (most > 0.0 && most.is_finite()).then_some((least, most))
}

/// One store.
struct Case<'a> {
    reading: &'a Reading<'a>,
    store: String,
    /// The fullest first.
    partitions: Vec<Partition>,
    refused: f64,
}

impl<'a> Case<'a> {
    fn new(reading: &'a Reading<'a>, store: String, mut partitions: Vec<Partition>) -> Option<Self> {
        let left_out = reading.thresholds.provisioned_top_share;
        partitions.sort_by(|a, b| b.top(left_out).total_cmp(&a.top(left_out)));
        let full_share = reading.thresholds.provisioned_full_share;
        let refused = refused_in(reading.trial, partitions.first()?.full(full_share));
        Some(Self { reading, store, partitions, refused })
    }

    fn fullest(&self) -> &Partition {
        &self.partitions[0]
    }

    fn full_share(&self) -> f64 {
        self.reading.thresholds.provisioned_full_share
    }

    fn top(&self) -> f64 {
        self.fullest().top(self.reading.thresholds.provisioned_top_share)
    }

    fn is_worth_saying(&self) -> bool {
        let thresholds = self.reading.thresholds;
        self.top() >= thresholds.provisioned_full_share
            && self.fullest().full_seconds(self.full_share()) >= thresholds.provisioned_seconds
    }

    /// How far apart its readings are, seconds.
    fn step(&self) -> f64 {
        let fullest = self.fullest();
        fullest.seconds() / fullest.parts.len() as f64
    }

    fn is_close(&self) -> bool {
        self.step() <= self.reading.thresholds.provisioned_reading_seconds
    }

    fn full_partitions(&self) -> usize {
        let left_out = self.reading.thresholds.provisioned_top_share;
        self.partitions.iter().filter(|partition| partition.top(left_out) >= self.full_share()).count()
    }

    fn finding(&self, detector: &ProvisionedRate) -> Finding {
        let (store, fullest) = (&self.store, self.fullest());
        let full: Vec<&Part> = fullest.full(self.full_share()).collect();
        let (start_ns, end_ns) =
            (full.first().map_or(0, |part| part.from_ns), full.last().map_or(0, |part| part.to_ns));
        Finding {
            title: format!(
                "{store} has no headroom: {} of the provisioned rate at the top",
                units::percent(self.top())
            ),
            resource: store.clone(),
            cost_share: (fullest.full_seconds(self.full_share()) / fullest.seconds()).min(1.0),
            cost_of: format!(
                "of the time, in which a partition uses {} or more of its provisioned rate",
                units::percent(self.full_share())
            ),
            confidence: self.confidence(),
            reasons: self.reasons(),
            numbers: self.numbers(),
            exemplars: self.exemplars(start_ns, end_ns),
            ruled_out: vec![
                "A single full second: the figure in the title leaves out the fullest seconds.".into(),
                "Rejections without a wait: they alone do not make a finding.".into(),
            ],
            falsified_by: format!("The demand on {store} grows by a quarter and it still rejects nothing."),
            advice: self.advice(),
            caveats: self.caveats().into_iter().map(Into::into).collect(),
            period: period_of(self.reading.trial, start_ns, end_ns),
            ..detector.finding()
        }
    }

    fn confidence(&self) -> Confidence {
        match (self.fullest().is_fixed, self.is_close()) {
            (true, true) => Confidence::High,
            (true, false) => Confidence::Medium,
            (false, _) => Confidence::Low,
        }
    }

    fn reasons(&self) -> Vec<String> {
        let (fullest, top_share) = (self.fullest(), self.reading.thresholds.provisioned_top_share);
        vec![
            format!(
                "Partition {} uses more than {} of its {} units in {} of the time, and at most {} in any second that \
                 was read.",
                fullest.name,
                units::percent(self.top()),
                units::number(fullest.provisioned),
                units::percent(top_share),
                units::percent(fullest.peak())
            ),
            format!(
                "Its mean over the run, {}, hides that. {} of {} partitions are as full.",
                units::percent(fullest.mean()),
                self.full_partitions(),
                self.partitions.len()
            ),
            if self.refused > 0.0 {
                format!("It rejected {} attempts in these seconds.", units::count(self.refused.round() as u64))
            } else {
                "No calls are rejected yet: more users, or another burst, will reach the limit.".into()
            },
        ]
    }

    fn numbers(&self) -> Vec<Figure> {
        let fullest = self.fullest();
        vec![
            Figure::new("share of the provisioned rate, at the top", self.top() * 100.0, "%"),
            Figure::new("share of the provisioned rate, highest second", fullest.peak() * 100.0, "%"),
            Figure::new("share of the provisioned rate, mean", fullest.mean() * 100.0, "%"),
            Figure::new("provisioned per partition", fullest.provisioned, "{RU}/s"),
            Figure::new("seconds as full", fullest.full_seconds(self.full_share()), "s"),
            Figure::new("partitions as full", self.full_partitions() as f64, ""),
            Figure::new("partitions", self.partitions.len() as f64, ""),
        ]
    }

    /// Requests that asked the fullest partition in that time.
    fn exemplars(&self, start_ns: i64, end_ns: i64) -> Vec<Exemplar> {
        let partition = self.fullest().name.as_str();
        let asks = self.reading.requests.iter().filter_map(|request| {
            let spans = request.queries.iter().map(|query| query.span);
            let mut spans = spans.filter(|span| span.facts.db_partition.as_deref() == Some(partition)).peekable();
            let is_then = (start_ns..end_ns).contains(&request.entry.start_ns);
            (is_then && spans.peek().is_some()).then(|| exemplar(request.trace, spans))
        });
        asks.take(EXEMPLARS_MAX).collect()
    }

    fn advice(&self) -> String {
        let store = &self.store;
        let few = self.full_partitions() * 2 <= self.partitions.len() && self.partitions.len() > 1;
        let where_to = if few {
            "choose a partition key that spreads the load: most partitions have capacity left"
        } else {
            "provision more throughput before the load grows"
        };
        format!(
            "For {store}, {where_to}; or spend less in each request, by a query that names its partition, an index, fewer \
             rows."
        )
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = vec!["The series do not show whether the limit is intentional, for a budget.".to_owned()];
        if !self.is_close() {
            caveats.push(format!(
                "Readings are {} apart: single seconds in between may be fuller than their mean.",
                units::duration(self.step() * NS)
            ));
        }
        if !self.fullest().is_fixed {
            caveats.push(
                "The provisioned throughput changed during the trial (autoscale); its highest value is compared."
                    .into(),
            );
        }
        caveats
    }
}

/// How many attempts were refused in these parts of the trial, by any database.
fn refused_in<'a>(trial: &TrialEvidence, parts: impl Iterator<Item = &'a Part>) -> f64 {
    let calls = trial.operations.iter().flat_map(|operation| &operation.calls);
    let refused: BTreeMap<i64, f64> = calls
        .flat_map(|call| &call.seconds)
        .filter(|second| second.throttled > 0.0)
        .fold(BTreeMap::new(), |mut refused, second| {
            *refused.entry(second.start_ns).or_default() += second.throttled;
            refused
        });
    let mut starts = BTreeSet::new();
    parts
        .flat_map(|part| refused.range(part.from_ns.saturating_sub(SECOND_NS - 1)..part.to_ns))
        .filter(|(start_ns, _)| starts.insert(**start_ns))
        .map(|(_, n)| n)
        .sum()
}

#[cfg(test)]
mod tests;
