//! `throttling`: a store refuses attempts because calls request more than its provisioned rate, and requests wait to
//! retry.
//!
//! Refusals alone are healthy: a store that refuses one attempt in a hundred is used well. Only the time that requests
//! wait with no other call under way counts, as far as the gap is the wait that the response requested. It is judged in
//! the slower half of the operation's requests, because refusals come in bursts.
//!
//! A mean hides refusals: a partition can spend 61 of 100 units on average and refuse in its hot seconds. So
//! consumption is read in the seconds with refused attempts, and the mean is only shown for comparison.
//!
//! Without spans of the caller, its sleeping threads and its sockets show that requests wait to call again (`by_sleeps.rs`).

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::throttling as evidence;
use narrows_model::finding::{Caveat, Confidence, Finding, FindingKind, Period};
use narrows_model::operation::OperationEvidence;
use narrows_model::trace::Span;

use crate::Detector;
use crate::exemplars::{EXEMPLARS_MAX, exemplar};
use crate::read::calls::{Call, Handled, Times, has_retry_after, is_throttled, median_of, went_wrong};
use crate::read::periods::period_of;
use crate::read::refusals::{Gap, SECOND_NS, TargetCalls, target_of};
use crate::read::stores::Store;
use crate::read::{Operations, Reading};
use crate::thresholds::{Thresholds, rule_thresholds};

mod by_sleeps;
mod words;

rule_thresholds! {
    /// Share of the attempts that must be refused.
    throttled_share: f64 = 0.01;
    /// Attempts that must be refused, so that a handful in a short run is not enough.
    throttled_attempts: f64 = 20.0;
    /// Share of the latency of the operation's slower half that must be spent waiting for another attempt.
    throttled_wait_share: f64 = 0.10;
    /// Traces that must show a refused attempt and the next one.
    throttled_traces: usize = 3;
    /// Share of the wait that the refusal requested, below which a gap is not that wait.
    retry_after_share_min: f64 = 0.8;
    /// This multiple of that wait, plus the slack, counts as waiting; the rest of a longer gap has another cause.
    retry_after_factor_max: f64 = 2.0;
    /// Time that timers and a busy program may add, nanoseconds.
    retry_after_slack_ns: f64 = 50e6;
    /// Share of its provisioned throughput from which a partition counts as full in a second. Readings do not start
    /// with the store's own seconds, so a full second may be split over two.
    partition_full_share: f64 = 0.8;
    /// Without spans: share of a service's requests that must sleep, half of them.
    throttled_sleep_share: f64 = 0.5;
    /// The same: factor by which the sleep of a request must grow with the load. One of the program's own choice is constant.
    throttled_sleep_growth: f64 = 2.0;
    /// The same: calls to the peer for each request, of which every fourth request at least repeats one.
    throttled_calls: f64 = 1.25;
}

/// See the module.
#[derive(Debug)]
pub struct Throttling;

impl Detector for Throttling {
    fn kind(&self) -> FindingKind {
        FindingKind::Throttling
    }

    fn version(&self) -> u32 {
        3
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (trial, thresholds, handled) = (reading.trial, reading.thresholds, reading.operations);
        let mut candidates = Vec::new();
        for operation in &trial.operations {
            let put_off = put_off_shares(operation, handled);
            for refused in TargetCalls::by_target(operation, |target| put_off.get(target).copied().unwrap_or(0.0)) {
                let mut of_service = handled.iter().filter(|((service, _), _)| *service == operation.service);
                let candidate = of_service.find_map(|((_, name), all)| {
                    Candidate::new(trial, thresholds, operation, name, refused.clone(), all)
                });
                candidates.extend(candidate.filter(Candidate::is_worth_saying));
            }
        }
        let by_spans = one_for_each_store(candidates).into_iter().map(|candidate| candidate.finding(self));
        by_spans.chain(by_sleeps::findings(reading)).collect()
    }
}

/// Share of failed attempts that got a time to wait (status 503 with a time), by target, among an operation's failed
/// attempts that were not refused outright. Only traces are counted.
fn put_off_shares(operation: &OperationEvidence, handled: &Operations<'_>) -> BTreeMap<String, f64> {
    let of_service = handled.iter().filter(|((service, _), _)| *service == operation.service);
    let meant = of_service.flat_map(|(_, all)| all).filter(|h| h.request.entry.name == operation.name);
    let mut failed: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for handled in meant {
        let tries = handled.calls.iter().flat_map(Call::tries);
        for span in tries.filter(|span| went_wrong(span) && (!is_throttled(span) || has_retry_after(span))) {
            let sums = failed.entry(target_of(span)).or_default();
            sums.0 += if has_retry_after(span) { handled.weight() } else { 0.0 };
            sums.1 += handled.weight();
        }
    }
    failed.into_iter().map(|(target, (put_off, all))| (target, put_off / all.max(f64::MIN_POSITIVE))).collect()
}

/// Keeps, for each store, the refused operation that waits most, and adds the names of the others to it.
fn one_for_each_store(mut candidates: Vec<Candidate<'_>>) -> Vec<Candidate<'_>> {
    candidates.sort_by(|a, b| b.wait_share.total_cmp(&a.wait_share));
    let mut worst: Vec<Candidate<'_>> = Vec::new();
    for candidate in candidates {
        match worst.iter_mut().find(|known| known.store.name == candidate.store.name) {
            Some(known) => known.others.push(candidate.operation),
            None => worst.push(candidate),
        }
    }
    worst
}

/// An operation whose calls to one store are refused.
struct Candidate<'a> {
    trial: &'a TrialEvidence,
    thresholds: &'a Thresholds,
    operation: String,
    others: Vec<String>,
    refused: TargetCalls<'a>,
    store: Store,
    /// Requests with a refusal, the longest wait first.
    seen: Vec<&'a Handled<'a>>,
    gaps: Vec<(Gap, f64)>,
    /// Share of the slower half's time spent waiting.
    wait_share: f64,
}

impl<'a> Candidate<'a> {
    /// Returns `None` if the traces show no refused request of this operation.
    fn new(
        trial: &'a TrialEvidence,
        thresholds: &'a Thresholds,
        evidence: &OperationEvidence,
        operation: &str,
        refused: TargetCalls<'a>,
        all: &'a [Handled<'a>],
    ) -> Option<Self> {
        let of_name: Vec<&Handled<'_>> = all.iter().filter(|h| h.request.entry.name == evidence.name).collect();
        let is_meant = |call: &Call<'_>| target_of(call.tries()[0]) == refused.target;
        let refusals =
            |handled: &'a Handled<'a>| handled.calls.iter().filter(move |call| is_meant(call)).flat_map(Call::refusals);
        let wait_ns = |handled: &'a Handled<'a>| {
            // Nobody waits for calls after the response.
            let end_ns = handled.request.entry.end_ns;
            let gaps =
                refusals(handled).filter_map(|(refused, next)| Gap::between(refused, next).explained(thresholds));
            let gaps = gaps.map(|(from_ns, to_ns)| (from_ns, to_ns.min(end_ns)));
            let attempts = handled.calls.iter().flat_map(Call::tries);
            Times::union_of(gaps)
                .without(&Times::union_of(attempts.map(|span| (span.start_ns, span.end_ns))))
                .length_ns()
        };
        let wait_share = share_of_slow_half(&of_name, wait_ns);
        let mut seen: Vec<&Handled<'_>> = of_name.into_iter().filter(|h| refusals(h).next().is_some()).collect();
        seen.sort_by_cached_key(|handled| std::cmp::Reverse(wait_ns(handled) as u64));
        let (example, _) = refusals(seen.first()?).next()?;
        let gaps = seen
            .iter()
            .flat_map(|h| refusals(h).map(|(refused, next)| (Gap::between(refused, next), h.weight())))
            .collect();
        let store = Store::for_call(trial, example);
        let operation = operation.to_owned();
        Some(Self { trial, thresholds, operation, others: Vec::new(), refused, store, seen, gaps, wait_share })
    }

    fn is_worth_saying(&self) -> bool {
        let is_common = self.refused.share() >= self.thresholds.throttling.throttled_share
            && self.refused.throttled >= self.thresholds.throttling.throttled_attempts
            && self.seen.len() >= self.thresholds.throttling.throttled_traces;
        is_common && self.wait_share >= self.thresholds.throttling.throttled_wait_share
    }

    /// Share of the gaps that match the requested time, among those with one; `None` if no response requested a time.
    fn requested_share(&self) -> Option<f64> {
        let gaps = self.gaps.iter().filter_map(|(gap, weight)| Some((gap.is_as_requested(self.thresholds)?, *weight)));
        let (kept, all) = gaps.fold((0.0, 0.0), |(kept, all), (is_as_requested, weight)| {
            (if is_as_requested { kept + weight } else { kept }, all + weight)
        });
        (all > 0.0).then(|| kept / all)
    }

    fn amplification(&self) -> Option<f64> {
        (self.refused.succeeded > 0.0).then(|| self.refused.attempts / self.refused.succeeded)
    }

    /// Highest use of a partition in a hot second, and its provisioned rate.
    fn hot_use(&self) -> Option<(f64, f64)> {
        let peak = self.store.peak(|from_ns, to_ns| self.refused.is_hot(from_ns, to_ns))?;
        Some((peak, self.store.provisioned().filter(|provisioned| *provisioned > 0.0)?))
    }

    fn is_used_up(&self) -> Option<bool> {
        self.hot_use().map(|(peak, provisioned)| peak >= self.thresholds.throttling.partition_full_share * provisioned)
    }

    fn confidence(&self) -> Confidence {
        let is_as_requested =
            self.requested_share().is_some_and(|share| share >= evidence::WAITS_AS_REQUESTED_SHARE_MIN);
        match (is_as_requested, self.is_used_up()) {
            (true, Some(true)) => Confidence::High,
            (false, None | Some(false)) => Confidence::Low,
            _ => Confidence::Medium,
        }
    }

    /// Demand on the hottest partition in its hottest second: units spent and units refused, with each call counted
    /// once per second. `None` if the store does not report its partitions' consumption.
    fn demand(&self) -> Option<f64> {
        let demands = self.refused_calls().into_iter().filter_map(|((second, partition), calls)| {
            let spent = self.store.spent_between(partition, second, second + SECOND_NS)?;
            let most = self.refused.seconds.get(&second).map_or(0.0, |all| all.throttled);
            Some(spent + calls.min(most) * self.refused.charge_of_one())
        });
        demands.max_by(f64::total_cmp)
    }

    /// Number of calls that each partition refused in each second, as far as the traces show.
    fn refused_calls(&self) -> BTreeMap<(i64, &'a str), f64> {
        let mut refused: BTreeMap<(i64, &str), f64> = BTreeMap::new();
        for (handled, call) in
            self.seen.iter().flat_map(|handled| handled.calls.iter().map(move |call| (handled, call)))
        {
            let Some(partition) = call.partition() else { continue };
            let refusals = call.tries().iter().filter(|span| is_throttled(span));
            for second in refusals.filter_map(|span| self.second_of(span)).collect::<BTreeSet<i64>>() {
                *refused.entry((second, partition)).or_default() += handled.weight();
            }
        }
        refused
    }

    /// Start of the second when an attempt ended.
    fn second_of(&self, span: &Span) -> Option<i64> {
        self.refused
            .seconds
            .range(span.end_ns.saturating_sub(SECOND_NS - 1)..=span.end_ns)
            .next_back()
            .map(|(start_ns, _)| *start_ns)
    }

    fn finding(&self, detector: &Throttling) -> Finding {
        Finding {
            resource: self.store.name.clone(),
            operation: Some(self.operation.clone()),
            cost_share: self.wait_share.min(1.0),
            confidence: self.confidence(),
            exemplars: self
                .seen
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|handled| exemplar(handled.request.trace, self.shown(handled)))
                .collect(),
            caveats: self.caveats(),
            period: self.period(),
            ..Finding::new(self.evidence(), detector.version())
        }
    }

    fn evidence(&self) -> evidence::Throttling {
        evidence::Throttling {
            rejected: self.refused.throttled,
            attempts: self.refused.attempts,
            attempts_per_success: self.amplification(),
            wait_share: self.wait_share,
            wait_median_ns: self.gap_ns(),
            seconds_with_rejections: self.refused.hot().count(),
            seconds_with_attempts: self.refused.busy_seconds(),
            waits_as_requested_share: self.requested_share(),
            partitions: self.store.partitions.len(),
            provisioned: self.store.provisioned(),
            peak: self.hot_use().map(|(peak, _)| peak),
            mean: self.store.mean(self.trial),
            demand: self.demand(),
            other_operations: self.others.clone(),
            sleeps: None,
        }
    }

    /// Period from the first to the last second with refused attempts.
    fn period(&self) -> Option<Period> {
        let (first_ns, _) = self.refused.hot().next()?;
        let (last_ns, _) = self.refused.hot().last()?;
        period_of(self.trial, first_ns, last_ns + SECOND_NS)
    }

    fn shown(&self, handled: &Handled<'a>) -> Vec<&'a Span> {
        handled.calls.iter().flat_map(Call::refusals).flat_map(|(refused, next)| [refused, next]).collect()
    }

    fn gap_ns(&self) -> f64 {
        median_of(&self.gaps, |(gap, weight)| (gap.length_ns(), *weight))
    }

    fn caveats(&self) -> Vec<Caveat> {
        let of_readings = match self.is_used_up() {
            None => Some(Caveat::PartitionsNotMeasured { store: self.store.name.clone() }),
            Some(false) => Some(Caveat::NoPartitionSeenFull),
            Some(true) => None,
        };
        [Caveat::LimitMayBeIntended].into_iter().chain(of_readings).collect()
    }
}

/// Share of these requests' time in their slower half that `passed_ns` accounts for; 0 without requests.
fn share_of_slow_half<'a>(all: &[&'a Handled<'a>], passed_ns: impl Fn(&'a Handled<'a>) -> f64) -> f64 {
    let mut slowest_first = all.to_vec();
    slowest_first.sort_by(|a, b| b.latency_ns().total_cmp(&a.latency_ns()));
    let half = all.iter().map(|handled| handled.weight()).sum::<f64>() / 2.0;
    let (mut weight, mut passed, mut whole) = (0.0, 0.0, 0.0);
    for handled in slowest_first {
        if weight >= half {
            break;
        }
        weight += handled.weight();
        passed += handled.weight() * passed_ns(handled);
        whole += handled.weight() * handled.latency_ns();
    }
    if whole > 0.0 { passed / whole } else { 0.0 }
}

#[cfg(test)]
mod tests;
