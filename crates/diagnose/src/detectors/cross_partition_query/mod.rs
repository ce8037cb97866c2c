//! `cross-partition-query`: a query goes to every partition of a store, and most of them return no rows.
//!
//! The evidence is behaviour: the partitions that responded to one query of one request, each counted once, are nearly
//! all of the store's, the same number for every query, and most return nothing. TargetCalls attempts and calls for a
//! partition's next page do not count. A query that finds rows everywhere needs all partitions and is ignored. If every
//! partition reports the same number of rows, rows prove nothing (an aggregate returns one each); then only a query for
//! an equal value counts.
//!
//! Such a query spends more than needed. Other detectors show whether it also limits the load now; the ranking accounts
//! for it.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::cross_partition_query as evidence;
use narrows_model::finding::{Caveat, Confidence, Exemplar, Finding, FindingKind, Role};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::{Call, Handled, median_of};
use crate::read::stores::Store;
use crate::thresholds::{Thresholds, rule_thresholds};
use sightings::{Sighting, sightings};

mod sightings;
mod words;

rule_thresholds! {
    /// Share of the store's partitions that a request must touch.
    cross_partition_share: f64 = 0.8;
    /// Partitions that the store must have.
    cross_partition_partitions: usize = 3;
    /// Share of the touched partitions that must return no row.
    cross_partition_empty_share: f64 = 0.5;
}

/// See the module.
#[derive(Debug)]
pub struct CrossPartitionQuery;

impl Detector for CrossPartitionQuery {
    fn kind(&self) -> FindingKind {
        FindingKind::CrossPartitionQuery
    }

    fn version(&self) -> u32 {
        2
    }

    fn role(&self, _finding: &Finding) -> Role {
        Role::CostsMore
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (trial, thresholds) = (reading.trial, reading.thresholds);
        let seen_partitions = partitions_seen(trial);
        let mut findings = Vec::new();
        for ((service, operation), all) in reading.operations {
            let mut kinds: BTreeMap<&str, Vec<Sighting<'_>>> = BTreeMap::new();
            for sighting in all.iter().flat_map(sightings) {
                kinds.entry(&sighting.responses[0].0.kind).or_default().push(sighting);
            }
            for seen in kinds.into_values() {
                let candidate = Candidate::new(trial, service, operation, seen, all, &seen_partitions);
                findings.extend(
                    candidate
                        .filter(|candidate| candidate.is_worth_saying(thresholds))
                        .map(|candidate| candidate.finding(self, thresholds)),
                );
            }
        }
        findings
    }
}

/// Partitions that any call of the trial went to, by database system as spans name it.
fn partitions_seen(trial: &TrialEvidence) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for span in trial.traces.iter().flat_map(|trace| &trace.spans) {
        if let (Some(system), Some(partition)) = (&span.facts.db_system, &span.facts.db_partition) {
            seen.entry(system).or_default().insert(partition);
        }
    }
    seen
}

/// One query of one operation, over all traces.
struct Candidate<'a> {
    service: &'a str,
    operation: &'a str,
    seen: Vec<Sighting<'a>>,
    trace_share: f64,
    /// Number of the store's partitions.
    partitions: usize,
    store: Store,
    peak_share: Option<f64>,
}

impl<'a> Candidate<'a> {
    fn new(
        trial: &TrialEvidence,
        service: &'a str,
        operation: &'a str,
        seen: Vec<Sighting<'a>>,
        all: &[Handled<'_>],
        seen_partitions: &BTreeMap<&str, BTreeSet<&str>>,
    ) -> Option<Self> {
        let span = seen.first()?.responses.first()?.0.last();
        let store = Store::for_call(trial, span);
        let system = span.facts.db_system.as_deref().unwrap_or("");
        let touched = seen_partitions.get(system).map_or(0, BTreeSet::len);
        let partitions = if store.partitions.is_empty() { touched } else { store.partitions_now() };
        let whole: f64 = all.iter().map(Handled::weight).sum();
        let trace_share = seen.iter().map(|sighting| sighting.handled.weight()).sum::<f64>() / whole;
        let peak = store.peak(|_, to_ns| trial.is_counted(to_ns));
        let provisioned = store.provisioned().filter(|provisioned| *provisioned > 0.0);
        let peak_share = peak.zip(provisioned).map(|(peak, provisioned)| peak / provisioned);
        let peak_share = peak_share.filter(|share| share.is_finite());
        Some(Self { service, operation, seen, trace_share, partitions, store, peak_share })
    }

    fn median(&self, value: impl Fn(&Sighting<'a>) -> Option<f64>) -> Option<f64> {
        let known: Vec<(f64, f64)> =
            self.seen.iter().filter_map(|sighting| Some((value(sighting)?, sighting.handled.weight()))).collect();
        (!known.is_empty()).then(|| median_of(&known, |pair| *pair))
    }

    /// Mean over requests, weighted by trace.
    fn mean(&self, value: impl Fn(&Sighting<'a>) -> Option<f64>) -> Option<f64> {
        let known = self.seen.iter().filter_map(|sighting| Some((value(sighting)?, sighting.handled.weight())));
        let (sum, weight) = known.fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
        (weight > 0.0).then(|| sum / weight).filter(|mean| mean.is_finite())
    }

    fn touched(&self) -> f64 {
        self.median(|sighting| Some(sighting.partitions())).unwrap_or(0.0)
    }

    fn empty_share(&self) -> Option<f64> {
        self.median(|sighting| Some(sighting.empty()? / sighting.partitions()))
    }

    /// Share of the requests that touch exactly the median number of partitions.
    fn same_count_share(&self) -> f64 {
        let touched = self.touched();
        self.mean(|sighting| Some(if sighting.partitions() == touched { 1.0 } else { 0.0 })).unwrap_or(0.0)
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_regular =
            self.seen.len() >= thresholds.regular_traces && self.trace_share >= thresholds.regular_trace_share;
        let is_everywhere = self.partitions >= thresholds.cross_partition_query.cross_partition_partitions
            && self.touched() >= thresholds.cross_partition_query.cross_partition_share * self.partitions as f64;
        let is_mostly_empty =
            self.empty_share().is_none_or(|share| share > thresholds.cross_partition_query.cross_partition_empty_share);
        let is_meant = self.empty_share().is_some() || !self.is_alike() || self.is_look_up();
        is_regular
            && is_everywhere
            && is_mostly_empty
            && is_meant
            && self.same_count_share() >= thresholds.same_count_share
    }

    /// Whether some request got the same number of rows from every partition.
    fn is_alike(&self) -> bool {
        self.seen.iter().any(Sighting::is_alike)
    }

    /// Whether the statement selects rows by an equal value: a suitable key would keep those rows together.
    fn is_look_up(&self) -> bool {
        self.example().query.is_some_and(|query| {
            let text = query.shape.text.to_ascii_uppercase();
            text.split_once(" WHERE ").is_some_and(|(_, condition)| condition.contains("= ?"))
        })
    }

    fn charges(&self) -> Option<(f64, f64)> {
        Some((self.mean(Sighting::charge)?, self.mean(Sighting::useful_charge)?))
    }

    fn finding(&self, detector: &CrossPartitionQuery, thresholds: &Thresholds) -> Finding {
        let is_shown = self.empty_share().is_some() && self.charges().is_some();
        let evidence = self.evidence(thresholds);
        Finding {
            resource: self.service.into(),
            operation: Some(self.operation.into()),
            cost_share: evidence.waste().0,
            confidence: if is_shown { Confidence::High } else { Confidence::Medium },
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(shown).collect(),
            caveats: self.caveats(),
            ..Finding::new(evidence, detector.version())
        }
    }

    fn evidence(&self, thresholds: &Thresholds) -> evidence::CrossPartitionQuery {
        evidence::CrossPartitionQuery {
            traces: self.seen.len(),
            trace_share: self.trace_share,
            store: self.store.name.clone(),
            partitions: self.partitions,
            touched: self.touched() as usize,
            same_count_share: self.same_count_share(),
            empty: self.median(Sighting::empty).map(|empty| empty as usize),
            empty_share: self.empty_share(),
            empty_share_min: thresholds.cross_partition_query.cross_partition_empty_share,
            charge: self.mean(Sighting::charge),
            useful_charge: self.charges().map(|(_, useful)| useful),
            peak_share: self.peak_share,
            query: self.example().query.map(|query| clipped(query.text, TEXT_CHARS_MAX)),
        }
    }

    fn example(&self) -> &'a Call<'a> {
        self.seen[0].responses[0].0
    }

    fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if self.store.partitions.is_empty() {
            caveats.push(Caveat::PartitionsCountedInTraces { store: self.store.name.clone() });
        }
        if self.empty_share().is_none() {
            caveats.push(if self.is_alike() { Caveat::RowsAlikeInPartitions } else { Caveat::RowsNotRecorded });
        }
        if self.mean(Sighting::charge).is_none() {
            caveats.push(Caveat::ChargeNotRecorded);
        }
        caveats
    }
}

fn shown(sighting: &Sighting<'_>) -> Exemplar {
    exemplar(sighting.handled.request.trace, sighting.responses.iter().map(|(call, _)| call.last()))
}

#[cfg(test)]
mod tests;
