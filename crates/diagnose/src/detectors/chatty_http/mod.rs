//! `chatty-http`: a request that calls another service once for each item of an earlier response.
//!
//! This is `n-plus-one` over HTTP or remote calls. Calls form a group if they go to one endpoint of one host under one
//! parent, each with a different id, and each wave ends before the next begins. Calls that all run together are a
//! prefetch or a gather, which waits only for the slowest. Calls that begin together may still run a few at a time, if
//! the client limits its connections: `pace.rs` tells the two apart. Evidence that the ids come from a response is an
//! earlier call, with different ids in each request, or a number of calls that differs from request to request. A
//! constant number without such a call is fixed in the program: `serial-fan-out` reports it.
//!
//! Repeated calls to the same address count too, if the request does nothing else meanwhile: it throws the earlier
//! response away. Pauses between the calls mean polling, which waits for something else and is ignored.
//!
//! Paged reads continue where the last page stopped and cannot be requested together; a list of ids in one address is a
//! batch. Both are ignored. Calls recorded by two stacked libraries count once.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use narrows_model::finding::evidence::Counts;
use narrows_model::finding::evidence::chatty_http::{self as evidence, Items};
use narrows_model::finding::{Caveat, Confidence, Evidence, Finding, FindingKind};
use narrows_model::trace::{Span, SpanId};

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, TEXT_CHARS_MAX, clipped, exemplar};
use crate::read::Reading;
use crate::read::calls::{Handled, median_of};
use crate::read::requests::cut_at_end;
use crate::thresholds::{Thresholds, rule_thresholds};
use sightings::{Sighting, host_of, sightings};

mod pace;
mod sightings;
mod words;

rule_thresholds! {
    /// Calls of one endpoint under one parent, each with another id.
    chatty_calls: usize = 5;
    /// Traces that must show it.
    chatty_traces: usize = 3;
    /// Share of the operation's traces that must show it.
    chatty_trace_share: f64 = 0.20;
    /// Median time in the calls of one request that is enough for a finding, nanoseconds.
    chatty_time_ns: f64 = 50e6;
    /// Share of the operation's latency that is enough for a finding.
    chatty_latency_share: f64 = 0.20;
    /// Share of all calls to that host that is enough for a finding.
    chatty_callee_share: f64 = 0.50;
}

/// See the module.
#[derive(Debug)]
pub struct ChattyHttp;

/// Share of the operation's traces from which the pattern counts as regular.
const REGULAR_TRACE_SHARE: f64 = 0.5;
impl Detector for ChattyHttp {
    fn kind(&self) -> FindingKind {
        FindingKind::ChattyHttp
    }

    fn version(&self) -> u32 {
        3
    }

    fn request_cost_ns(&self, finding: &Finding) -> Option<f64> {
        let Evidence::ChattyHttp(evidence) = &finding.evidence else { return None };
        Some(evidence.cost_ns)
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let thresholds = reading.thresholds;
        let counts = calls_of_hosts(reading);
        let mut findings = Vec::new();
        for ((service, operation), all) in reading.operations {
            let mut kinds: BTreeMap<(String, &str), Vec<Sighting<'_>>> = BTreeMap::new();
            for sighting in all.iter().flat_map(|handled| sightings(handled, thresholds)) {
                let key = (host_of(sighting.calls[0].last()), &*sighting.calls[0].kind);
                kinds.entry(key).or_default().push(sighting);
            }
            let candidates = kinds.into_iter().map(|((host, _), seen)| {
                let callee_calls = counts.get(&host).copied().unwrap_or(0.0);
                let named = service_of(reading, seen[0].calls[0].last()).unwrap_or(host);
                Candidate::new(service, operation, named, callee_calls, seen, all)
            });
            findings.extend(candidates.filter(|c| c.is_worth_saying(thresholds)).map(|c| c.finding(self, thresholds)));
        }
        findings
    }
}

/// Number of calls to each host over all operations, weighted by trace.
fn calls_of_hosts(reading: &Reading<'_>) -> BTreeMap<String, f64> {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for handled in reading.operations.values().flatten() {
        for call in handled.calls.iter().filter(|call| call.query.is_none()) {
            *counts.entry(host_of(call.last())).or_default() += handled.weight();
        }
    }
    counts
}

/// The service of this run that a call went to.
fn service_of(reading: &Reading<'_>, call: &Span) -> Option<String> {
    reading.trial.reached_at(call.facts.server_port).map(|instance| instance.service.clone())
}

/// First spans of an operation's calls that, as far as known, request the items of an earlier response.
pub(crate) fn calls_of_chat(all: &[Handled<'_>], thresholds: &Thresholds) -> HashSet<SpanId> {
    let mut kinds: BTreeMap<(String, &str), Vec<Sighting<'_>>> = BTreeMap::new();
    for sighting in all.iter().flat_map(|handled| sightings(handled, thresholds)) {
        let key = (host_of(sighting.calls[0].last()), &*sighting.calls[0].kind);
        kinds.entry(key).or_default().push(sighting);
    }
    let chats = kinds.into_values().filter(|seen| {
        let is_known = seen.iter().all(|sighting| sighting.items == Items::Different);
        is_known && fetches_others(seen, thresholds) && seen.iter().all(|sighting| sighting.is_after_another)
    });
    let calls = chats.flatten().flat_map(|sighting| sighting.calls);
    calls.map(|call| call.attempts[0].span_id).collect()
}

/// Whether requests fetch different items: a plan fixed in the program would fetch the same items each time. True if
/// one request is enough evidence, because there is no other to compare it with.
fn fetches_others(seen: &[Sighting<'_>], thresholds: &Thresholds) -> bool {
    if thresholds.chatty_http.chatty_traces == 1 && seen.len() == 1 {
        return true;
    }
    let items =
        |sighting: &Sighting<'_>| sighting.calls.iter().map(|call| call.request.clone()).collect::<BTreeSet<_>>();
    seen.first().is_some_and(|first| {
        let first = items(first);
        seen.iter().any(|sighting| items(sighting) != first)
    })
}

/// One endpoint in one operation, over all traces.
struct Candidate<'a> {
    service: &'a str,
    operation: &'a str,
    host: String,
    /// Sightings, the costliest first.
    seen: Vec<Sighting<'a>>,
    trace_share: f64,
    callee_share: f64,
    latency_ns: f64,
}

impl<'a> Candidate<'a> {
    fn new(
        service: &'a str,
        operation: &'a str,
        host: String,
        callee_calls: f64,
        mut seen: Vec<Sighting<'a>>,
        all: &[Handled<'_>],
    ) -> Self {
        seen.sort_by(|a, b| b.cost_ns.total_cmp(&a.cost_ns));
        let whole: f64 = all.iter().map(Handled::weight).sum();
        let weight: f64 = seen.iter().map(Sighting::weight).sum();
        let trace_share = if whole > 0.0 { weight / whole } else { 0.0 };
        let calls: f64 = seen.iter().map(|sighting| sighting.weight() * sighting.calls.len() as f64).sum();
        let callee_share = if callee_calls > 0.0 { (calls / callee_calls).min(1.0) } else { 0.0 };
        let latency_ns = median_of(all, |handled| (handled.latency_ns(), handled.weight()));
        Self { service, operation, host, seen, trace_share, callee_share, latency_ns }
    }

    fn median(&self, value: impl Fn(&Sighting<'a>) -> f64) -> f64 {
        median_of(&self.seen, |sighting| (value(sighting), sighting.weight()))
    }

    fn counts(&self) -> Counts {
        let counts = || self.seen.iter().map(|sighting| sighting.calls.len());
        Counts {
            least: counts().min().unwrap_or(0),
            median: self.median(|sighting| sighting.calls.len() as f64) as usize,
            most: counts().max().unwrap_or(0),
        }
    }

    fn is_after_another(&self) -> bool {
        let after: f64 = self.seen.iter().filter(|s| s.is_after_another).map(Sighting::weight).sum();
        2.0 * after > self.seen.iter().map(Sighting::weight).sum::<f64>()
    }

    /// Whether all calls begin before the first ends, in most of these requests.
    fn begin_together(&self) -> bool {
        let together: f64 = self.seen.iter().filter(|s| s.pace.begin_together).map(Sighting::weight).sum();
        2.0 * together > self.seen.iter().map(Sighting::weight).sum::<f64>()
    }

    /// The kind of items that all sightings share, else `Unknown`.
    fn items(&self) -> Items {
        let all = |items: Items| self.seen.iter().all(|sighting| sighting.items == items);
        match (all(Items::Same), all(Items::Different)) {
            (true, _) => Items::Same,
            (_, true) => Items::Different,
            _ => Items::Unknown,
        }
    }

    fn is_recorded(&self) -> bool {
        self.items() != Items::Unknown
    }

    fn cost_share(&self) -> f64 {
        self.median(|sighting| (sighting.cost_ns / sighting.handled.latency_ns()).min(1.0))
    }

    fn is_worth_saying(&self, thresholds: &Thresholds) -> bool {
        let is_common = self.seen.len() >= thresholds.chatty_http.chatty_traces
            && self.trace_share >= thresholds.chatty_http.chatty_trace_share;
        let is_from_response = match self.items() {
            Items::Same => true,
            Items::Different => {
                self.counts().vary() || self.is_after_another() && fetches_others(&self.seen, thresholds)
            }
            Items::Unknown => self.counts().vary(),
        };
        let is_dear = self.median(|sighting| sighting.busy_ns) >= thresholds.chatty_http.chatty_time_ns
            || self.median(|s| s.busy_ns / s.handled.latency_ns()) >= thresholds.chatty_http.chatty_latency_share
            || self.callee_share >= thresholds.chatty_http.chatty_callee_share;
        is_common && is_from_response && is_dear
    }

    fn finding(&self, detector: &ChattyHttp, thresholds: &Thresholds) -> Finding {
        Finding {
            resource: self.service.into(),
            operation: Some(self.operation.into()),
            cost_share: self.cost_share(),
            confidence: self.confidence(thresholds),
            exemplars: self
                .seen
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|s| exemplar(s.handled.request.trace, s.calls.iter().map(|call| call.last())))
                .collect(),
            caveats: self.caveats(),
            ..Finding::new(self.evidence(), detector.version())
        }
    }

    fn evidence(&self) -> evidence::ChattyHttp {
        let example = self.seen[0].calls[0];
        evidence::ChattyHttp {
            traces: self.seen.len(),
            trace_share: self.trace_share,
            callee: (!self.host.is_empty()).then(|| self.host.clone()),
            callee_share: self.callee_share,
            endpoint: clipped(&example.kind, TEXT_CHARS_MAX),
            address: (!example.request.is_empty()).then(|| clipped(&example.request, TEXT_CHARS_MAX)),
            calls: self.counts(),
            latency_ns: self.latency_ns,
            busy_ns: self.median(|sighting| sighting.busy_ns),
            cost_ns: self.median(|sighting| sighting.cost_ns),
            items: self.items(),
            is_after_another: self.is_after_another(),
            at_once: self.median(|sighting| sighting.pace.at_once as f64) as usize,
            begin_together: self.begin_together(),
        }
    }

    /// High if the operation regularly works this way, each call is known to request a different item, and the number
    /// of calls varies or their cost is large.
    fn confidence(&self, thresholds: &Thresholds) -> Confidence {
        let is_dear = self.cost_share() >= thresholds.chatty_http.chatty_latency_share;
        match (self.trace_share >= REGULAR_TRACE_SHARE, self.is_recorded(), self.counts().vary() || is_dear) {
            (true, true, true) => Confidence::High,
            (false, false, _) => Confidence::Low,
            _ => Confidence::Medium,
        }
    }

    fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = vec![Caveat::ReplacingCallTakesTime];
        if !self.is_recorded() {
            caveats.push(Caveat::RequestedItemsNotRecorded);
        }
        if !self.counts().vary() {
            caveats.push(Caveat::CountMayFollowTestData);
        }
        let spans = self.seen.iter().flat_map(|s| s.calls.iter().map(|call| (s.handled.request, call.last())));
        caveats.extend(cut_at_end(spans));
        caveats
    }
}

#[cfg(test)]
mod tests;
