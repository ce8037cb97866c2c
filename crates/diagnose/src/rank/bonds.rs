//! Ties between two findings of a trial, see [`Tie`].
//!
//! Findings that were seen in different parts of a trial are never tied. Names come from the system under test: two
//! services may have the same operation, so an operation ties only within a service or along a way between services.

use std::collections::BTreeSet;

use narrows_model::evidence::PartitionThroughput;
use narrows_model::finding::evidence::time_outside_spans::GapPattern;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::series::names;

use super::paths::{Paths, targets};
use super::rules::Tie;
use crate::detectors::cpu_saturation::HOST;
use crate::detectors::memory_growth;
use crate::read::Reading;
use crate::read::programs::{is_store_program, only_service};

/// A trial, as far as ties need it.
pub(super) struct Bonds<'r, 'a> {
    reading: &'r Reading<'a>,
    paths: Paths<'a>,
}

impl<'r, 'a> Bonds<'r, 'a> {
    pub(super) fn new(reading: &'r Reading<'a>) -> Self {
        Self { reading, paths: Paths::new(reading) }
    }

    /// True if any of these ties holds.
    pub(super) fn tie(&self, ties: &[Tie], first: &Finding, then: &Finding) -> bool {
        are_at_one_time(first, then) && ties.iter().any(|tie| self.holds(*tie, first, then))
    }

    fn holds(&self, tie: Tie, first: &Finding, then: &Finding) -> bool {
        match tie {
            Tie::SameResource => first.resource == self.resource(then),
            Tie::FirstCalls => self.calls(first, self.resource(then)),
            Tie::SecondCalls => self.calls(then, &first.resource),
            Tie::Behind => self.is_behind(&then.resource, &first.resource),
            Tie::SameOperation => self.are_one_operation(first, then),
            Tie::OnTheWay => self.is_on_the_way(first, then),
            Tie::InBranch => self.is_in_branch(first, then),
            Tie::HeldWorkers => {
                let holds = self.is_behind(&then.resource, &first.resource) || is_called_by(first, &then.resource);
                waits_in_front(then) && holds
            }
            Tie::ShortOfMemory => first.resource == then.resource && memory_growth::is_short(first),
            Tie::KilledForMemory => first.resource == then.resource && memory_growth::was_killed(first),
            Tie::Uneven => first.resource == then.resource && self.would_have_room(&first.resource),
            Tie::Amplified => self.is_asked_again(first, then) && !self.is_full_without(first, then),
            Tie::Collecting => first.resource == self.resource(then) && self.is_mostly_collecting(first),
            Tie::Connecting => self.is_mostly_connecting(first, self.resource(then)),
            Tie::FullAnyway => self.is_asked_again(then, first) && self.is_full_without(then, first),
        }
    }

    /// True if one is the other or calls it. Where nothing shows who calls a store, the only other service of the trial does.
    fn is_behind(&self, service: &str, called: &str) -> bool {
        let trial = self.reading.trial;
        let is_lone_client = || is_store_program(trial, called) && only_service(trial) == Some(service);
        self.paths.reaches(service, called) || !self.paths.shows_callers_of(called) && is_lone_client()
    }

    /// The resource of a finding; for a full machine, the service that uses most of it.
    fn resource<'f>(&'f self, finding: &'f Finding) -> &'f str {
        let largest = (finding.resource == HOST).then(|| self.largest_consumer()).flatten();
        largest.unwrap_or(&finding.resource)
    }

    fn largest_consumer(&self) -> Option<&str> {
        let trial = self.reading.trial;
        let used = |service: &str| trial.counted_usage(names::CPU_CORES, service).mean;
        trial.service_names().into_iter().max_by(|a, b| used(a).total_cmp(&used(b)))
    }

    /// True if the calls that a finding shows go there.
    fn calls(&self, finding: &Finding, resource: &str) -> bool {
        self.targets(finding).contains(resource)
    }

    fn targets(&self, finding: &Finding) -> BTreeSet<&'a str> {
        targets(finding, self.reading.trial)
    }

    fn are_one_operation(&self, first: &Finding, then: &Finding) -> bool {
        let (a, b) = (first.resource.as_str(), then.resource.as_str());
        let is_way = |from, to| self.paths.reaches(from, to);
        first.operation.is_some() && first.operation == then.operation && (is_way(a, b) || is_way(b, a))
    }

    /// Without traces only a lone service is known to be on the way.
    fn is_on_the_way(&self, first: &Finding, then: &Finding) -> bool {
        if self.paths.are_known() {
            let (cause, seen_at) = (&first.resource, &then.resource);
            return cause == HOST || self.paths.lead_by(seen_at, cause) || self.paths.reaches(cause, seen_at);
        }
        self.reading.trial.service_names() == [first.resource.as_str()]
    }

    fn is_in_branch(&self, first: &Finding, then: &Finding) -> bool {
        self.targets(then).into_iter().any(|branch| self.paths.reaches(branch, &first.resource))
    }

    /// True if a store's partitions, had they the same load, would stay below what they may spend: by the mean of what
    /// each spent at most. A store that reports nothing is taken at the finding's word.
    fn would_have_room(&self, store: &str) -> bool {
        let used = |partition: &PartitionThroughput| {
            let most = partition.consumed.iter().map(|point| point.value).max_by(f64::total_cmp)?;
            partition.provisioned.filter(|provisioned| *provisioned > 0.0).map(|provisioned| most / provisioned)
        };
        let reported = self.reading.trial.throughput();
        let used: Vec<f64> = reported.iter().filter(|partition| partition.service == store).filter_map(used).collect();
        used.is_empty()
            || used.iter().sum::<f64>() / (used.len() as f64) < self.reading.thresholds.throttling.partition_full_share
    }

    /// True if collections take so much of the time that they are why a processor is full.
    fn is_mostly_collecting(&self, finding: &Finding) -> bool {
        let Evidence::GarbageCollection(evidence) = &finding.evidence else { return false };
        evidence.share >= self.reading.thresholds.gc_cause_share
    }

    /// True if connections take much of the CPU of a caller and its peer, and the service is one of them.
    fn is_mostly_connecting(&self, finding: &Finding, service: &str) -> bool {
        let Evidence::ConnectionChurn(evidence) = &finding.evidence else { return false };
        let is_end = finding.resource == service || evidence.peer == service;
        is_end && finding.cost_share >= self.reading.thresholds.connection_churn.churn_cause_share
    }

    /// True if the repetitions that a storm counts go to what is full.
    fn is_asked_again(&self, storm: &Finding, full: &Finding) -> bool {
        let resource = self.resource(full);
        storm.resource == resource || self.calls(storm, resource)
    }

    /// True if a resource would be full without the repetitions. A storm costs the share of the attempts that repeat,
    /// and work follows the attempts.
    fn is_full_without(&self, storm: &Finding, full: &Finding) -> bool {
        full.cost_share * (1.0 - storm.cost_share) >= self.reading.thresholds.cpu_saturation.cpu_limit_share
    }
}

/// True if requests wait before a service takes them on, as in a queue.
fn waits_in_front(finding: &Finding) -> bool {
    match &finding.evidence {
        Evidence::AcceptQueue(_) | Evidence::ThreadPool(_) => true,
        Evidence::TimeOutsideSpans(outside) => outside.pattern == GapPattern::Grows,
        _ => false,
    }
}

/// True if a finding about a dependency says that this service calls it.
fn is_called_by(finding: &Finding, service: &str) -> bool {
    let Evidence::SlowDependency(slow) = &finding.evidence else { return false };
    slow.callers.iter().any(|caller| caller == service)
}

/// True if two findings were seen in parts of the trial that overlap.
pub(super) fn are_at_one_time(a: &Finding, b: &Finding) -> bool {
    match (&a.period, &b.period) {
        (Some(a), Some(b)) => a.start_ns < b.end_ns && b.start_ns < a.end_ns,
        _ => true,
    }
}
