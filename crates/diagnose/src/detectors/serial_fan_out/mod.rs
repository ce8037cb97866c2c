//! `serial-fan-out`: a request makes several calls one after another that could run at once.
//!
//! The calls are similar, or they read from different addresses that are known beforehand: the same in every request, but
//! for parts that the request brings. Then no earlier response is part of an address, and a chain of log-in, profile and
//! orders, where one is, stays silent.
//!
//! Two signs distinguish it from a chain where each call needs the previous response: the calls send the same query to
//! different partitions or, if destinations are not recorded, their number is the same in nearly all requests. Three
//! patterns are ignored, as are calls that overlap: pages, which call one partition again; calls for the rows of an
//! earlier response, which send other values (`n-plus-one` reports those); and transactions, which hold one connection.
//! Retries count as one call. Calls for the items of an earlier response of a service belong to `chatty-http`.
//!
//! The saving is the time that the request would gain if the calls ran at once: their time without the longest of them,
//! not counting time with another call of the request under way.

use std::collections::{BTreeMap, HashSet};

use narrows_model::finding::evidence::serial_fan_out::{self as evidence, Destinations, Target};
use narrows_model::finding::{Caveat, Confidence, Exemplar, Finding, FindingKind};

use crate::Detector;
use crate::detectors::chatty_http::calls_of_chat;
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::{Handled, median_of};
use crate::read::requests::cut_at_end;
use crate::thresholds::{Thresholds, rule_thresholds};
use sightings::{Sighting, fixed_addresses, of_addresses, routes, sightings};

mod sightings;
mod words;

rule_thresholds! {
    /// Calls of one kind under one parent.
    fan_out_calls: usize = 3;
    /// Share of their time in which two of them may be in progress.
    fan_out_overlap_share: f64 = 0.05;
    /// Median time per request that parallel calls would save, nanoseconds.
    fan_out_saving_ns: f64 = 20e6;
    /// The same as a share of the operation's median latency.
    fan_out_saving_share: f64 = 0.20;
}

/// See the module.
#[derive(Debug)]
pub struct SerialFanOut;

impl Detector for SerialFanOut {
    fn kind(&self) -> FindingKind {
        FindingKind::SerialFanOut
    }

    fn version(&self) -> u32 {
        5
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let thresholds = reading.thresholds;
        let routes = routes(reading);
        let mut findings = Vec::new();
        for ((service, operation), all) in reading.operations {
            let mut kinds: BTreeMap<String, Vec<Sighting<'_>>> = BTreeMap::new();
            let chat = calls_of_chat(all, thresholds);
            // One request does not show what is the same in others.
            let fixed = if reading.is_one_request { HashSet::new() } else { fixed_addresses(all) };
            for handled in all {
                if let Some(sighting) = of_addresses(handled, &fixed, &routes, thresholds) {
                    kinds.entry(sighting.kind.clone()).or_default().push(sighting);
                }
                for sighting in sightings(handled, &chat, &routes, thresholds) {
                    kinds.entry(sighting.kind.clone()).or_default().push(sighting);
                }
            }
            let candidates = kinds.into_values().map(|seen| Candidate::new(service, operation, seen, all));
            findings.extend(
                candidates
                    .filter(|candidate| candidate.is_worth_saying(thresholds))
                    .map(|candidate| candidate.finding(self, thresholds)),
            );
        }
        findings
    }
}

/// One kind of call in one operation, over all traces.
struct Candidate<'a> {
    service: &'a str,
    operation: &'a str,
    /// Sightings, the largest saving first.
    seen: Vec<Sighting<'a>>,
    trace_share: f64,
    latency_ns: f64,
}

impl<'a> Candidate<'a> {
    fn new(service: &'a str, operation: &'a str, mut seen: Vec<Sighting<'a>>, all: &[Handled<'_>]) -> Self {
        seen.sort_by(|a, b| b.saving_ns().total_cmp(&a.saving_ns()));
        let whole: f64 = all.iter().map(Handled::weight).sum();
        let trace_share = seen.iter().map(Sighting::weight).sum::<f64>() / whole;
        let latency_ns = median_of(all, |handled| (handled.latency_ns(), handled.weight()));
        Self { service, operation, seen, trace_share, latency_ns }
    }

    fn median(&self, value: impl Fn(&Sighting<'a>) -> f64) -> f64 {
        median_of(&self.seen, |sighting| (value(sighting), sighting.weight()))
    }

    fn count(&self) -> usize {
        self.median(|sighting| sighting.calls.len() as f64) as usize
    }

    fn saving_ns(&self) -> f64 {
        self.median(Sighting::saving_ns)
    }

    fn saving_share(&self) -> f64 {
        (self.saving_ns() / self.latency_ns.max(1.0)).min(1.0)
    }

    /// Share of the requests that make exactly the median number of calls.
    fn same_count_share(&self) -> f64 {
        let count = self.count();
        let same = self.seen.iter().filter(|sighting| sighting.calls.len() == count);
        same.map(Sighting::weight).sum::<f64>() / self.seen.iter().map(Sighting::weight).sum::<f64>()
    }

    /// Where the calls go in nearly all requests.
    fn destinations(&self, thresholds: &Thresholds) -> Destinations {
        let whole: f64 = self.seen.iter().map(Sighting::weight).sum();
        let is_common = |destinations: &Destinations| {
            let alike = self.seen.iter().filter(|sighting| sighting.destinations == *destinations);
            alike.map(Sighting::weight).sum::<f64>() >= thresholds.same_count_share * whole
        };
        let known = [Destinations::Partitions, Destinations::Addresses];
        known.into_iter().find(is_common).unwrap_or(Destinations::Unknown)
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_regular =
            self.seen.len() >= thresholds.regular_traces && self.trace_share >= thresholds.regular_trace_share;
        let is_planned = self.destinations(thresholds) == Destinations::Partitions
            || self.same_count_share() >= thresholds.same_count_share;
        let is_dear = self.saving_ns() >= thresholds.serial_fan_out.fan_out_saving_ns
            && self.saving_share() >= thresholds.serial_fan_out.fan_out_saving_share;
        is_regular && is_planned && is_dear
    }

    fn finding(&self, detector: &SerialFanOut, thresholds: &Thresholds) -> Finding {
        let destinations = self.destinations(thresholds);
        let calls = self.seen.iter().flat_map(|s| s.calls.iter().map(|call| (s.handled.request, call.last())));
        let caveats = [Caveat::ParallelCallsNeedCapacity, Caveat::ParallelCallsSaveLess];
        Finding {
            resource: self.service.into(),
            operation: Some(self.operation.into()),
            cost_share: self.saving_share(),
            confidence: match destinations {
                Destinations::Partitions => Confidence::High,
                Destinations::Addresses | Destinations::Unknown => Confidence::Medium,
            },
            exemplars: self.seen.iter().take(EXEMPLARS_MAX).map(shown).collect(),
            caveats: caveats.into_iter().chain(cut_at_end(calls)).collect(),
            ..Finding::new(self.evidence(destinations, thresholds), detector.version())
        }
    }

    fn evidence(&self, destinations: Destinations, thresholds: &Thresholds) -> evidence::SerialFanOut {
        let query = self.seen[0].calls[0].query;
        evidence::SerialFanOut {
            traces: self.seen.len(),
            trace_share: self.trace_share,
            calls: self.count(),
            same_count_share: self.same_count_share(),
            same_count_share_min: thresholds.same_count_share,
            latency_ns: self.latency_ns,
            calls_ns: self.median(|sighting| sighting.sum_ns),
            longest_ns: self.median(|sighting| sighting.longest_ns),
            saving_ns: self.saving_ns(),
            target: if query.is_some() { Target::Database } else { Target::Service },
            destinations,
            text: clipped(query.map_or(self.seen[0].kind.as_str(), |query| query.text), TEXT_CHARS_MAX),
        }
    }
}

fn shown(sighting: &Sighting<'_>) -> Exemplar {
    exemplar(sighting.handled.request.trace, sighting.calls.iter().map(|call| call.last()))
}

#[cfg(test)]
mod tests;
