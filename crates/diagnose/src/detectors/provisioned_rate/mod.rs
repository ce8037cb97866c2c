//! `provisioned-rate`: a store's partition spends nearly all its provisioned rate, second after second.
//!
//! The provisioned rate is per second, so it is compared second by second. Readings closer together are joined to
//! seconds; readings further apart are means that hide peaks. The time at the top decides, not the single highest
//! second, which a burst causes in any long run.
//!
//! If attempts are refused in those seconds, there are two cases. Requests wait for them: `throttling` reports that,
//! and this finding explains it. Or they do not: a store that refuses a little is used well, and there is no finding.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::provisioned_rate as evidence;
use narrows_model::finding::{Caveat, Confidence, Exemplar, Finding, FindingKind, Role};

use crate::Detector;
use crate::detectors::throttling::Throttling;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::Reading;
use crate::read::periods::period_of;
use crate::read::refusals::SECOND_NS;
use crate::stats::finite;
use crate::thresholds::rule_thresholds;
use partition::{NS, Part, Partition};

mod partition;
mod words;

rule_thresholds! {
    /// Share of its provisioned throughput from which a partition has no headroom left.
    provisioned_full_share: f64 = 0.80;
    /// Share of the counted time, the busiest part, that is left out.
    provisioned_top_share: f64 = 0.01;
    /// Seconds in total in which it must use that much.
    provisioned_seconds: f64 = 3.0;
    /// Largest distance between two readings at which a full second is still visible, seconds.
    provisioned_reading_seconds: f64 = 1.5;
    /// Share by which the provisioned rate may change over the trial and still count as fixed.
    provisioned_change_share: f64 = 0.05;
}

/// See the module.
#[derive(Debug)]
pub struct ProvisionedRate;

impl Detector for ProvisionedRate {
    fn kind(&self) -> FindingKind {
        FindingKind::ProvisionedRate
    }

    fn version(&self) -> u32 {
        1
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::CostsMore
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let mut stores: BTreeMap<String, Vec<Partition>> = BTreeMap::new();
        for reported in reading.trial.throughput() {
            if let Some(partition) = Partition::new(reading, &reported) {
                stores.entry(reported.service).or_default().push(partition);
            }
        }
        let candidates =
            stores.into_iter().filter_map(|(store, partitions)| Candidate::new(reading, store, partitions));
        let candidates: Vec<Candidate<'_>> = candidates.filter(Candidate::is_worth_saying).collect();
        if candidates.is_empty() {
            return Vec::new();
        }
        let refusing: BTreeSet<String> =
            Throttling.detect(reading).into_iter().map(|finding| finding.resource).collect();
        // A store whose refusals no request waits for is used well.
        let candidates =
            candidates.iter().filter(|candidate| candidate.refused == 0.0 || refusing.contains(&candidate.store));
        candidates.map(|candidate| candidate.finding(self)).collect()
    }
}

/// One store.
struct Candidate<'a> {
    reading: &'a Reading<'a>,
    store: String,
    /// Partitions, the fullest first.
    partitions: Vec<Partition>,
    refused: f64,
}

impl<'a> Candidate<'a> {
    fn new(reading: &'a Reading<'a>, store: String, mut partitions: Vec<Partition>) -> Option<Self> {
        let left_out = reading.thresholds.provisioned_rate.provisioned_top_share;
        partitions.sort_by(|a, b| b.top(left_out).total_cmp(&a.top(left_out)));
        let full_share = reading.thresholds.provisioned_rate.provisioned_full_share;
        let refused = refused_in(reading.trial, partitions.first()?.full(full_share));
        Some(Self { reading, store, partitions, refused })
    }

    fn fullest(&self) -> &Partition {
        &self.partitions[0]
    }

    fn full_share(&self) -> f64 {
        self.reading.thresholds.provisioned_rate.provisioned_full_share
    }

    fn top(&self) -> f64 {
        self.fullest().top(self.reading.thresholds.provisioned_rate.provisioned_top_share)
    }

    fn is_worth_saying(&self) -> bool {
        let thresholds = &self.reading.thresholds.provisioned_rate;
        self.top() >= thresholds.provisioned_full_share
            && self.fullest().full_seconds(self.full_share()) >= thresholds.provisioned_seconds
    }

    /// Mean time between readings, seconds.
    fn step(&self) -> f64 {
        let fullest = self.fullest();
        fullest.seconds() / fullest.parts.len() as f64
    }

    fn is_close(&self) -> bool {
        self.step() <= self.reading.thresholds.provisioned_rate.provisioned_reading_seconds
    }

    fn full_partitions(&self) -> usize {
        let left_out = self.reading.thresholds.provisioned_rate.provisioned_top_share;
        self.partitions.iter().filter(|partition| partition.top(left_out) >= self.full_share()).count()
    }

    fn finding(&self, detector: &ProvisionedRate) -> Finding {
        let fullest = self.fullest();
        let full: Vec<&Part> = fullest.full(self.full_share()).collect();
        let (start_ns, end_ns) =
            (full.first().map_or(0, |part| part.from_ns), full.last().map_or(0, |part| part.to_ns));
        Finding {
            resource: self.store.clone(),
            cost_share: (fullest.full_seconds(self.full_share()) / fullest.seconds()).min(1.0),
            confidence: self.confidence(),
            exemplars: self.exemplars(start_ns, end_ns),
            caveats: self.caveats(),
            period: period_of(self.reading.trial, start_ns, end_ns),
            ..Finding::new(self.evidence(), detector.version())
        }
    }

    fn confidence(&self) -> Confidence {
        match (self.fullest().is_fixed, self.is_close()) {
            (true, true) => Confidence::High,
            (true, false) => Confidence::Medium,
            (false, _) => Confidence::Low,
        }
    }

    fn evidence(&self) -> evidence::ProvisionedRate {
        let fullest = self.fullest();
        evidence::ProvisionedRate {
            partition: fullest.name.clone(),
            provisioned: finite(fullest.provisioned),
            top_share: finite(self.top()),
            top_time_share: self.reading.thresholds.provisioned_rate.provisioned_top_share,
            peak_share: finite(fullest.peak()),
            mean_share: finite(fullest.mean()),
            full_share_min: self.full_share(),
            full_seconds: finite(fullest.full_seconds(self.full_share())),
            full_partitions: self.full_partitions(),
            partitions: self.partitions.len(),
            rejected: finite(self.refused),
        }
    }

    /// Requests that called the fullest partition in that time.
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

    fn caveats(&self) -> Vec<Caveat> {
        let others = [
            (!self.is_close()).then(|| Caveat::ReadingsFarApart { step_ns: finite(self.step() * NS) }),
            (!self.fullest().is_fixed).then_some(Caveat::ProvisionedChanged),
        ];
        [Caveat::BudgetMayBeIntended].into_iter().chain(others.into_iter().flatten()).collect()
    }
}

/// Number of attempts that any database refused in these parts of the trial.
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
