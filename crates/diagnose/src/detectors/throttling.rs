//! `throttling`: a store refuses attempts because more is asked of it than it may spend, and requests wait to ask again.
//!
//! Refusals alone are healthy: a store that refuses one attempt in a hundred is used well. What counts is the time that
//! requests pass waiting, with no other call of theirs under way, and only as far as the gap is the one that the answer
//! told to wait. It is judged in the slow half of the operation's requests, because refusals come in bursts.
//!
//! A mean hides them: a partition can spend 61 of 100 units in the mean and refuse in its hot seconds. So consumption
//! is read in the seconds in which attempts were refused, and set beside the mean, not the other way round.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Figure, Finding, FindingKind, Period};
use narrows_model::operation::OperationEvidence;
use narrows_model::trace::Span;
use narrows_model::units;

use crate::Detector;
use crate::calls::{Call, Handled, Times, is_throttled, is_told_to_wait, median_of, went_wrong};
use crate::periods::period_of;
use crate::reading::{Operations, Reading};
use crate::refusals::{Gap, Refused, SECOND_NS, target_of};
use crate::stores::Store;
use crate::thresholds::Thresholds;
use crate::words::{EXEMPLARS_MAX, exemplar};

/// See the module.
#[derive(Debug)]
pub struct Throttling;

/// Share of the refusals whose gap must be the time told, before that counts as a second sign.
const TOLD_GAPS_SHARE_MIN: f64 = 0.8;

impl Detector for Throttling {
    fn kind(&self) -> FindingKind {
        FindingKind::Throttling
    }

    fn version(&self) -> u32 {
        2
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let (trial, thresholds, handled) = (reading.trial, reading.thresholds, reading.operations);
        let mut cases = Vec::new();
        for operation in &trial.operations {
            let put_off = put_off_shares(operation, handled);
            for refused in Refused::by_target(operation, |target| put_off.get(target).copied().unwrap_or(0.0)) {
                let mut of_service = handled.iter().filter(|((service, _), _)| *service == operation.service);
                let case = of_service
                    .find_map(|((_, name), all)| Case::new(trial, thresholds, (operation, name), refused.clone(), all));
                cases.extend(case.filter(Case::is_worth_saying));
            }
        }
        one_for_each_store(cases).into_iter().map(|case| case.finding(self)).collect()
    }
}

/// Of the failed attempts of an operation that were not refused outright, the share that was told to wait (status 503
/// with a time), by target, as far as the traces tell.
fn put_off_shares(operation: &OperationEvidence, handled: &Operations<'_>) -> BTreeMap<String, f64> {
    let of_service = handled.iter().filter(|((service, _), _)| *service == operation.service);
    let meant = of_service.flat_map(|(_, all)| all).filter(|h| h.request.entry.name == operation.name);
    let mut failed: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for handled in meant {
        let tries = handled.calls.iter().flat_map(Call::tries);
        for span in tries.filter(|span| went_wrong(span) && (!is_throttled(span) || is_told_to_wait(span))) {
            let sums = failed.entry(target_of(span)).or_default();
            sums.0 += if is_told_to_wait(span) { handled.weight() } else { 0.0 };
            sums.1 += handled.weight();
        }
    }
    failed.into_iter().map(|(target, (put_off, all))| (target, put_off / all.max(f64::MIN_POSITIVE))).collect()
}

/// Of the operations that one store refuses, the one that waits most, with the names of the others.
fn one_for_each_store(mut cases: Vec<Case<'_>>) -> Vec<Case<'_>> {
    cases.sort_by(|a, b| b.wait_share.total_cmp(&a.wait_share));
    let mut worst: Vec<Case<'_>> = Vec::new();
    for case in cases {
        match worst.iter_mut().find(|known| known.store.name == case.store.name) {
            Some(known) => known.others.push(case.operation),
            None => worst.push(case),
        }
    }
    worst
}

/// One operation whose calls to one store are refused.
struct Case<'a> {
    trial: &'a TrialEvidence,
    thresholds: &'a Thresholds,
    operation: String,
    others: Vec<String>,
    refused: Refused<'a>,
    store: Store,
    /// Its requests with a refusal, the longest wait first.
    seen: Vec<&'a Handled<'a>>,
    gaps: Vec<(Gap, f64)>,
    /// Share of the time of the slow half that passed waiting.
    wait_share: f64,
}

impl<'a> Case<'a> {
    /// None when no request of this operation was refused in the traces.
    fn new(
        trial: &'a TrialEvidence,
        thresholds: &'a Thresholds,
        (evidence, operation): (&OperationEvidence, &str),
        refused: Refused<'a>,
        all: &'a [Handled<'a>],
    ) -> Option<Self> {
        let of_name: Vec<&Handled<'_>> = all.iter().filter(|h| h.request.entry.name == evidence.name).collect();
        let is_meant = |call: &Call<'_>| target_of(call.tries()[0]) == refused.target;
        let refusals =
            |handled: &'a Handled<'a>| handled.calls.iter().filter(move |call| is_meant(call)).flat_map(Call::refusals);
        let wait_ns = |handled: &'a Handled<'a>| {
            // What happens after the answer makes nobody wait.
            let end_ns = handled.request.entry.end_ns;
            let gaps = refusals(handled).filter_map(|pair| Gap::of(pair).explained(thresholds));
            let gaps = gaps.map(|(from_ns, to_ns)| (from_ns, to_ns.min(end_ns)));
            let attempts = handled.calls.iter().flat_map(Call::tries);
            Times::of(gaps).without(&Times::of(attempts.map(|span| (span.start_ns, span.end_ns)))).length_ns()
        };
        let wait_share = share_of_slow_half(&of_name, wait_ns);
        let mut seen: Vec<&Handled<'_>> = of_name.into_iter().filter(|h| refusals(h).next().is_some()).collect();
        seen.sort_by_cached_key(|handled| std::cmp::Reverse(wait_ns(handled) as u64));
        let (example, _) = refusals(seen.first()?).next()?;
        let gaps = seen.iter().flat_map(|h| refusals(h).map(|pair| (Gap::of(pair), h.weight()))).collect();
        let store = Store::of(trial, example);
        let operation = operation.to_owned();
        Some(Self { trial, thresholds, operation, others: Vec::new(), refused, store, seen, gaps, wait_share })
    }

    fn is_worth_saying(&self) -> bool {
        let is_common = self.refused.share() >= self.thresholds.throttled_share
            && self.refused.throttled >= self.thresholds.throttled_attempts
            && self.seen.len() >= self.thresholds.throttled_traces;
        is_common && self.wait_share >= self.thresholds.throttled_wait_share
    }

    /// Share of the gaps with a time told that are that time; none when no answer told one.
    fn told_share(&self) -> Option<f64> {
        let told = self.gaps.iter().filter_map(|(gap, weight)| Some((gap.is_told(self.thresholds)?, *weight)));
        let (kept, all) = told.fold((0.0, 0.0), |(kept, all), (is_told, weight)| {
            (if is_told { kept + weight } else { kept }, all + weight)
        });
        (all > 0.0).then(|| kept / all)
    }

    fn amplification(&self) -> Option<f64> {
        (self.refused.succeeded > 0.0).then(|| self.refused.attempts / self.refused.succeeded)
    }

    /// The most that a partition spent in a hot second, and what it may.
    fn hot_use(&self) -> Option<(f64, f64)> {
        let peak = self.store.peak(|from_ns, to_ns| self.refused.is_hot(from_ns, to_ns))?;
        Some((peak, self.store.provisioned().filter(|provisioned| *provisioned > 0.0)?))
    }

    fn is_used_up(&self) -> Option<bool> {
        self.hot_use().map(|(peak, provisioned)| peak >= self.thresholds.partition_full_share * provisioned)
    }

    fn confidence(&self) -> Confidence {
        let is_told = self.told_share().is_some_and(|share| share >= TOLD_GAPS_SHARE_MIN);
        match (is_told, self.is_used_up()) {
            (true, Some(true)) => Confidence::High,
            (false, None | Some(false)) => Confidence::Low,
            _ => Confidence::Medium,
        }
    }

    /// What the hottest partition was asked for in its hottest second: what it spent and what it refused, each call
    /// counted once in a second. None when the store does not report what its partitions spend.
    fn demand(&self) -> Option<f64> {
        let asked = self.refused_calls().into_iter().filter_map(|((second, partition), calls)| {
            let spent = self.store.spent_between(partition, second, second + SECOND_NS)?;
            let most = self.refused.seconds.get(&second).map_or(0.0, |all| all.throttled);
            Some(spent + calls.min(most) * self.refused.charge_of_one())
        });
        asked.max_by(f64::total_cmp)
    }

    /// How many calls each partition refused in each second, as far as the traces tell.
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

    /// The second in which an attempt ended, by its first instant.
    fn second_of(&self, span: &Span) -> Option<i64> {
        self.refused
            .seconds
            .range(span.end_ns.saturating_sub(SECOND_NS - 1)..=span.end_ns)
            .next_back()
            .map(|(start_ns, _)| *start_ns)
    }

    fn finding(&self, detector: &Throttling) -> Finding {
        let (store, operation) = (&self.store.name, &self.operation);
        Finding {
            title: format!(
                "{store} rejects {} of the calls of {operation}, which then wait and retry",
                units::percent(self.refused.share())
            ),
            resource: store.clone(),
            operation: Some(operation.clone()),
            cost_share: self.wait_share.min(1.0),
            cost_of: "of the time of the slower half of these requests".into(),
            confidence: self.confidence(),
            reasons: self.reasons(),
            numbers: self.numbers(),
            evidence_text: None,
            exemplars: self
                .seen
                .iter()
                .take(EXEMPLARS_MAX)
                .map(|handled| exemplar(handled.request.trace, self.shown(handled)))
                .collect(),
            ruled_out: self.ruled_out(),
            falsified_by: format!(
                "With more throughput provisioned for {store}, no attempt is rejected, and the slower half of \
                 {operation} takes as long as before."
            ),
            advice: self.advice(),
            caveats: self.caveats(),
            period: self.period(),
            ..detector.finding()
        }
    }

    /// From the first to the last second in which attempts were refused.
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

    fn reasons(&self) -> Vec<String> {
        let mut reasons = vec![format!(
            "{} of {} attempts were rejected (status 429 or similar), and the slower half of the requests of {} spent \
             {} of its time waiting for the next attempt with no call in progress.",
            units::count(self.refused.throttled.round() as u64),
            units::count(self.refused.attempts.round() as u64),
            self.operation,
            units::percent(self.wait_share)
        )];
        reasons.push(format!(
            "Attempts were rejected in {} of the {} seconds with attempts.",
            self.refused.hot().count(),
            self.refused.busy_seconds()
        ));
        reasons.extend(self.consumption());
        reasons.extend(self.told_share().map(|share| {
            format!("{} of the gaps are as long as the wait that the rejection asked for.", units::percent(share))
        }));
        if !self.others.is_empty() {
            reasons.push(format!("It also delays {}.", self.others.join(", ")));
        }
        reasons
    }

    fn consumption(&self) -> Option<String> {
        let (peak, provisioned) = self.hot_use()?;
        let mean = self.store.mean(self.trial)?;
        Some(format!(
            "In those seconds a partition consumed up to {} of its {} units; the mean over the run, {} of {}, hides \
             that.",
            units::number(peak),
            units::number(provisioned),
            units::number(mean),
            units::number(provisioned)
        ))
    }

    fn numbers(&self) -> Vec<Figure> {
        let mut numbers = vec![
            Figure::new("rejected attempts", self.refused.throttled, ""),
            Figure::new("share of all attempts", self.refused.share() * 100.0, "%"),
            Figure::new("seconds with rejections", self.refused.hot().count() as f64, ""),
            Figure::new("seconds with attempts", self.refused.busy_seconds() as f64, ""),
            Figure::new("wait after a rejection, median", self.gap_ns(), "ns"),
        ];
        numbers.extend(self.amplification().map(|times| Figure::new("attempts per success", times, "")));
        if let Some((peak, provisioned)) = self.hot_use() {
            numbers.push(Figure::new("highest consumption of a partition in a second with rejections", peak, "{RU}/s"));
            numbers.push(Figure::new("provisioned per partition", provisioned, "{RU}/s"));
        }
        numbers.extend(
            self.store.mean(self.trial).map(|mean| Figure::new("consumption of a partition, mean", mean, "{RU}/s")),
        );
        numbers.extend(
            self.demand().map(|demand| Figure::new("demand on a partition in its busiest second", demand, "{RU}/s")),
        );
        numbers
    }

    fn ruled_out(&self) -> Vec<String> {
        let told = match self.told_share() {
            Some(share) if share >= TOLD_GAPS_SHARE_MIN => {
                "A pause of the program (garbage collection, no CPU) or a wait for a connection: the gaps follow the \
                 wait time in each rejection, and at most twice that time was counted."
            }
            Some(_) => {
                "A pause of the program (garbage collection, no CPU) or a wait for a connection: gaps shorter than the \
                 wait time in the rejection were not counted, and longer ones only up to twice that time."
            }
            None => {
                "Work of the program between two attempts is not ruled out, because the rejections have no wait time."
            }
        };
        vec![
            told.to_owned(),
            "Other calls in the meantime: time counts only while no call of the request is in progress.".into(),
            "Rejections that cost nothing: their number alone does not make a finding.".into(),
        ]
    }

    fn advice(&self) -> String {
        let store = &self.store.name;
        let partitions = self.store.partitions.len();
        let is_more = |demand: &f64| self.store.provisioned().is_none_or(|provisioned| *demand > provisioned);
        let amount = self.demand().filter(is_more).map(|demand| {
            format!(
                ": the demand on its busiest partition was {} units in one second, so at least {} for all {partitions}",
                units::number(demand.ceil()),
                units::count((demand.ceil() * partitions as f64) as u64)
            )
        });
        format!(
            "Provision more throughput for {store}{}; or spend fewer units in each {}, by a query that goes only to the \
             partition that has the rows, an index, or fewer rows; or spread the requests over time, because only single \
             seconds exceed the limit.",
            amount.unwrap_or_default(),
            self.operation
        )
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = vec![
            "The traces do not show whether the limit is intentional, to protect the store or a budget.".to_owned(),
        ];
        match self.is_used_up() {
            None => caveats.push(format!(
                "{} reports neither the consumption nor the provisioned throughput of its partitions, so it is not \
                 shown that they reached their limit.",
                self.store.name
            )),
            Some(false) => caveats.push(
                "No reading shows a partition near its limit. Readings are taken at intervals and can miss a second at \
                 the limit."
                    .into(),
            ),
            Some(true) => {}
        }
        caveats
    }
}

/// What part of the time of the slower half of these requests passed in some way; 0 without requests.
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
mod tests {
    use narrows_model::operation::CallEvidence;
    use narrows_model::trace::Trace;
    use narrows_testkit::operations::{operation, store_calls};
    use narrows_testkit::spans::{SpanBuilder, client, document_query, server};
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use super::*;

    const TEXT: &str = "SELECT VALUE SUM(c.hours) FROM c WHERE c.owner = @owner";
    const OPERATION: &str = "GET /utilization";

    fn attempt(partition: &str, start_ms: f64) -> SpanBuilder {
        document_query(TEXT, partition).charge(3.0).to_port(FIRST_PORT + 1).at(start_ms, 40.0)
    }

    /// A request that is refused once, waits as long, and asks again.
    fn refused(told_ms: Option<f64>, waits_ms: f64) -> Vec<SpanBuilder> {
        let no = document_query(TEXT, "1").throttled(told_ms).to_port(FIRST_PORT + 1).at(50.0, 4.0);
        vec![attempt("0", 5.0), no, attempt("1", 54.0 + waits_ms).resent(1)]
    }

    fn request(children: Vec<SpanBuilder>) -> SpanBuilder {
        let length_ms = if children.len() > 2 { 600.0 } else { 100.0 };
        server("drones", OPERATION).at(0.0, length_ms).children(children)
    }

    /// As many traces with these calls as without a refusal.
    fn half(children: &[SpanBuilder]) -> Vec<Trace> {
        let fine = || vec![attempt("0", 5.0), attempt("1", 50.0)];
        (0..20).map(|n| request(if n % 2 == 0 { children.to_vec() } else { fine() }).trace(n * 50)).collect()
    }

    /// Ten seconds, of which two are full; about 10 % of all attempts are refused there.
    fn busy() -> CallEvidence {
        store_calls("query", (0..10).map(|s| if s % 5 == 0 { (36.0, 20.0, 108.0) } else { (36.0, 0.0, 108.0) }))
    }

    fn trial(calls: CallEvidence, traces: Vec<Trace>) -> TrialBuilder {
        let mut counted = operation("drones", OPERATION, 10, 18.0, 350.0);
        counted.calls = vec![calls];
        TrialBuilder::new("a")
            .service("drones", None)
            .service("store", None)
            .steady(10, Load { vus: 9, rate: 18.0, latency_ms: 350.0 })
            .operation(counted)
            .traces(traces)
    }

    fn with_readings(trial: TrialBuilder) -> TrialBuilder {
        trial
            .throughput("store", "0", 100.0, |_| 54.0)
            .throughput("store", "1", 100.0, |second| if second % 5 == 0 { 96.0 } else { 54.0 })
    }

    fn detect(trial: TrialBuilder) -> Vec<Finding> {
        crate::detect(&Throttling, &trial.build(), &Thresholds::default())
    }

    #[test]
    fn hot_seconds_are_named_beside_the_mean_that_hides_them() {
        let findings = detect(with_readings(trial(busy(), half(&refused(Some(400.0), 401.0)))));
        let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
        assert_eq!(finding.title, "store rejects 10 % of the calls of GET /utilization, which then wait and retry");
        assert_eq!((finding.resource.as_str(), finding.operation.as_deref()), ("store", Some(OPERATION)));
        assert!((finding.cost_share - 401.0 / 600.0).abs() < 0.01, "{}", finding.cost_share);
        assert_eq!(finding.confidence, Confidence::High);
        assert_eq!(finding.reasons[1], "Attempts were rejected in 2 of the 10 seconds with attempts.");
        assert_eq!(
            finding.reasons[2],
            "In those seconds a partition consumed up to 96 of its 100 units; the mean over the run, 56.3 of 100, \
             hides that."
        );
        let number = |name: &str| finding.numbers.iter().find(|n| n.name == name).map(|n| n.value);
        assert_eq!(number("rejected attempts"), Some(40.0));
        assert_eq!(number("attempts per success"), Some(400.0 / 360.0));
        // 96 spent and one call of 3 refused there, as far as the traces tell: less than is provisioned, so no amount.
        assert_eq!(number("demand on a partition in its busiest second"), Some(99.0));
        assert!(finding.advice.starts_with("Provision more throughput for store; or spend"), "{}", finding.advice);
    }

    #[test]
    fn how_much_to_provision_follows_the_hottest_second() {
        let many = |trace: Trace| Trace { weight: 6.0, ..trace };
        let traces = half(&refused(Some(400.0), 401.0)).into_iter().map(many).collect();
        let findings = detect(with_readings(trial(busy(), traces)));
        // 96 spent and 6 calls of 3 refused.
        let expected = "Provision more throughput for store: the demand on its busiest partition was 114 units in one \
                        second, so at least 228 for all 2; or spend";
        assert!(findings[0].advice.starts_with(expected), "{}", findings[0].advice);
    }

    #[test]
    fn without_readings_or_times_told_it_is_less_sure() {
        let told = refused(Some(400.0), 401.0);
        let silent = refused(None, 401.0);
        let confidence = |trial| detect(trial)[0].confidence;
        assert_eq!(confidence(trial(busy(), half(&told))), Confidence::Medium);
        assert_eq!(confidence(with_readings(trial(busy(), half(&silent)))), Confidence::Medium);
        let unsure = detect(trial(busy(), half(&silent)));
        assert_eq!(unsure[0].confidence, Confidence::Low);
        assert!(unsure[0].ruled_out[0].contains("is not ruled out"));
        assert!(unsure[0].caveats[1].starts_with("store reports neither"), "{:?}", unsure[0].caveats);
    }

    #[test]
    fn a_gap_counts_as_far_as_the_refusal_explains_it() {
        // 400 ms pass, 20 were told: twice that and the slack of 50 count.
        let long = detect(trial(busy(), half(&refused(Some(20.0), 400.0))));
        assert!((long[0].cost_share - 90.0 / 600.0).abs() < 0.01, "{}", long[0].cost_share);
        assert_eq!(long[0].confidence, Confidence::Low);
        assert_eq!(detect(trial(busy(), half(&refused(Some(2000.0), 400.0)))), [], "far too short");
    }

    #[test]
    fn services_that_put_callers_off_throttle_too() {
        let get = |at_ms: f64| client("GET").url("http://store/x").at(at_ms, 40.0);
        let no = |word: fn(&mut narrows_model::trace::SpanFacts)| {
            let refused = get(50.0).at(50.0, 4.0).facts(|facts| facts.retry_after_ns = Some(400_000_000)).failed();
            vec![get(5.0), refused.facts(word), get(455.0)]
        };
        let mut calls = CallEvidence { target: String::new(), is_database: false, ..busy() };
        let trial_of = |calls: CallEvidence, children: Vec<SpanBuilder>| {
            let fine = || vec![get(5.0), get(50.0)];
            let each = (0..20).map(|n| request(if n % 2 == 0 { children.clone() } else { fine() }).trace(n * 50));
            trial(calls, each.collect())
        };
        let rpc = |facts: &mut narrows_model::trace::SpanFacts| facts.rpc_status = Some("RESOURCE_EXHAUSTED".into());
        assert_eq!(detect(trial_of(calls.clone(), no(rpc))).len(), 1);
        for second in &mut calls.seconds {
            (second.failed, second.throttled) = (second.throttled, 0.0);
        }
        (calls.failed, calls.throttled) = (calls.throttled, 0.0);
        assert_eq!(detect(trial_of(calls.clone(), no(|facts| facts.http_status = Some(503)))).len(), 1, "put off");
        let down = |facts: &mut narrows_model::trace::SpanFacts| {
            (facts.http_status, facts.retry_after_ns) = (Some(503), None);
        };
        assert_eq!(detect(trial_of(calls, no(down))), [], "it is down");
    }

    #[test]
    fn tries_below_one_span_are_seen() {
        let hidden = |n: u32| {
            let post = |at_ms: f64| client("POST").url("http://store/docs").at(at_ms, 9.0);
            let tries = [post(50.5).throttled(Some(400.0)), post(460.0)];
            let logical = document_query(TEXT, "1").at(50.0, 420.0).children(tries);
            request(vec![attempt("0", 5.0), logical, attempt("1", 500.0)]).trace(n * 50)
        };
        let calls = CallEvidence { target: String::new(), is_database: false, ..busy() };
        let findings = detect(trial(calls, (0..20).map(hidden).collect()));
        assert_eq!(findings.len(), 1);
        assert!((findings[0].cost_share - 400.5 / 600.0).abs() < 0.01, "{}", findings[0].cost_share);
    }

    #[test]
    fn two_operations_of_one_store_are_one_finding() {
        let other = |n: u32| {
            server("drones", "GET /other").at(0.0, 900.0).children(refused(Some(500.0), 700.0)).trace(n + 1000)
        };
        let mut counted = operation("drones", "GET /other", 10, 18.0, 900.0);
        counted.calls = vec![busy()];
        let findings =
            detect(trial(busy(), half(&refused(Some(400.0), 401.0))).operation(counted).traces((0..5).map(other)));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].operation.as_deref(), Some("GET /other"));
        assert!(
            findings[0].reasons.contains(&"It also delays GET /utilization.".to_owned()),
            "{:?}",
            findings[0].reasons
        );
    }

    #[test]
    fn healthy_refusals_are_left_alone() {
        let told = refused(Some(400.0), 401.0);
        let beside = |mut children: Vec<SpanBuilder>| {
            children.push(client("GET").url("http://other/long").at(2.0, 590.0));
            children
        };
        let few = store_calls("query", (0..10).map(|s| (36.0, if s == 0 { 19.0 } else { 0.0 }, 108.0)));
        let rare = store_calls("query", (0..10).map(|_| (3600.0, 30.0, 10_800.0)));
        let cases = [
            ("few refusals", trial(few, half(&told))),
            ("rare refusals", trial(rare, half(&told))),
            ("waits after the answer", {
                let late = refused(Some(400.0), 401.0).into_iter().enumerate();
                let late = late.map(|(i, span)| span.at(if i < 2 { 602.0 + 40.0 * i as f64 } else { 1100.0 }, 4.0));
                trial(busy(), half(&late.collect::<Vec<_>>()))
            }),
            ("short waits", trial(busy(), half(&refused(Some(10.0), 11.0)))),
            ("another call all the while", trial(busy(), half(&beside(told.clone())))),
            ("nothing refused in the traces", trial(busy(), half(&[]))),
            ("two traces only", trial(busy(), half(&told).into_iter().take(3).collect())),
            ("nothing counted", trial(CallEvidence::default(), half(&told))),
        ];
        for (name, trial) in cases {
            assert_eq!(detect(with_readings(trial)), [], "with {name}");
        }
    }
}
