//! Two variants, perhaps of two runs: which operations, calls and findings came, went or changed.
//!
//! An operation has changed when its mean duration has, with the same intervals as variants of one run: where a side
//! was measured once, the spread assumed between trials widens them, and a caveat says so. A kind of call
//! has changed when its attempts for each operation differ by more than counting explains (two standard errors of a
//! Poisson count) and by more than the smallest change that is called one; the same holds for a finding's cost, which
//! has no interval. Between two runs stands whatever else differs between two days: a caveat reports that.

use narrows_model::caveat::ComparisonCaveat;
use narrows_model::comparison::Change;
use narrows_model::diff::{CallDiff, Diff, Fate, FindingDiff, OperationDiff, ServiceDiff};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::Finding;
use narrows_model::operation::{CallSummary, OperationEvidence, OperationSummary};
use narrows_model::run::TrialState;
use narrows_model::units;

use crate::compare::between::{Spread, assumed};
use crate::compare::summaries::operations;
use crate::compare::{basis, widths};
use crate::culprit::{self, NamedTrials, Ranking};
use crate::stats::blocks::{Quantity, Stratum, change, half_width, operation_blocks, strata};
use crate::thresholds::Thresholds;

pub use crate::compare::comparable::{Incomparable, check};

/// Minimum difference of two counts, in standard errors.
const COUNT_ERRORS: f64 = 2.0;
/// How often something must be expected on a side, by how often it is on the other, for its absence to mean anything: by
/// chance it is missing once in 150 times (a Poisson count).
const EXPECTED_MIN: f64 = 5.0;
/// Number of items of a kind that the sentence names before it counts the rest.
const NAMED_MAX: usize = 2;

/// One variant of a run.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its name, such as `RUN:VARIANT`.
    pub label: &'a str,
    /// Its run, with the trials of this variant only.
    pub run: &'a RunEvidence,
    /// The findings of each of these trials, in order.
    pub findings: &'a [Vec<Finding>],
}

impl<'a> Side<'a> {
    pub(super) fn done(&self) -> Vec<&'a TrialEvidence> {
        self.run.trials.iter().filter(|trial| trial.trial.state == TrialState::Done).collect()
    }

    /// Each cause and each effect once, the dearest for all repetitions.
    fn causes(&self) -> Vec<&'a Finding> {
        let mut causes: Vec<&Finding> = Vec::new();
        for finding in
            self.findings.iter().flatten().flat_map(|finding| std::iter::once(finding).chain(&finding.effects))
        {
            match causes.iter_mut().find(|known| is_same_cause(known, finding)) {
                Some(known) if known.cost_share < finding.cost_share => *known = finding,
                Some(_) => {}
                None => causes.push(finding),
            }
        }
        causes
    }
}

fn is_same_cause(one: &Finding, other: &Finding) -> bool {
    (one.kind(), &one.resource, &one.operation) == (other.kind(), &other.resource, &other.operation)
}

/// Differences from `before` to `after`.
pub fn diff(before: Side<'_>, after: Side<'_>, thresholds: &Thresholds) -> Diff {
    let trials = (before.done(), after.done());
    let operations = operation_diffs(&trials.0, &trials.1, thresholds);
    let findings = finding_diffs(&before.causes(), &after.causes(), thresholds);
    let sides = [(before.label, &trials.0), (after.label, &trials.1)];
    let [old, new] = sides.map(|(label, trials)| NamedTrials { label, trials });
    let Ranking { requests, services, clocks } = culprit::ranking(old, new, thresholds);
    Diff {
        before: before.label.to_owned(),
        after: after.label.to_owned(),
        sentence: sentence((&before, &after), &services, &operations, &findings),
        requests,
        services,
        caveats: caveats(&before, &after, thresholds).into_iter().chain(clocks).collect(),
        basis: basis(trials.0.len(), trials.1.len()),
        operations,
        findings,
    }
}

/// Ignores appearances and disappearances that are not frequent enough to count.
fn unless_rare(fate: Fate, expected: f64) -> Fate {
    let is_on_one_side = matches!(fate, Fate::Appeared | Fate::Vanished);
    if is_on_one_side && expected < EXPECTED_MIN { Fate::Same } else { fate }
}

/// Count expected on the other side at the same frequency, at most `count`.
fn expected(count: f64, own: f64, other: f64) -> f64 {
    if own > 0.0 { count * (other / own).min(1.0) } else { 0.0 }
}

/// Pairs what has the same key: those of `after` in their order, then those that are gone.
fn paired<'a, T, K: PartialEq>(
    before: &'a [T],
    after: &'a [T],
    key: impl Fn(&'a T) -> K,
) -> Vec<(Option<&'a T>, Option<&'a T>)> {
    let find = |items: &'a [T], of: &'a T| items.iter().find(|item| key(item) == key(of));
    let here = after.iter().map(|item| (find(before, item), Some(item)));
    let gone = before.iter().filter(|item| find(after, item).is_none()).map(|item| (Some(item), None));
    here.chain(gone).collect()
}

fn fate<T: Copy>(before: Option<T>, after: Option<T>, has_changed: impl FnOnce(T, T) -> bool) -> Fate {
    match (before, after) {
        (None, _) => Fate::Appeared,
        (_, None) => Fate::Vanished,
        (Some(before), Some(after)) if has_changed(before, after) => Fate::Changed,
        _ => Fate::Same,
    }
}

fn operation_diffs(before: &[&TrialEvidence], after: &[&TrialEvidence], thresholds: &Thresholds) -> Vec<OperationDiff> {
    let (old, new) = (operations(before), operations(after));
    let all = |side: &[OperationSummary]| side.iter().map(|one| one.completed + one.failed).sum::<f64>();
    let totals = (all(&old), all(&new));
    let pairs = paired(&old, &new, |operation| (operation.service.as_str(), operation.name.as_str()));
    let diffs = pairs.into_iter().filter_map(|(old, new)| {
        let one = new.or(old)?;
        let sides = if new.is_some() { (totals.1, totals.0) } else { totals };
        let mean = old.zip(new).and_then(|(old, new)| mean_change((before, old), (after, new), thresholds));
        Some(OperationDiff {
            service: one.service.clone(),
            name: one.name.clone(),
            fate: unless_rare(
                fate(old, new, |_, _| mean.is_some_and(|mean| mean.meaning.is_change())),
                expected(one.completed + one.failed, sides.0, sides.1),
            ),
            before_ns: old.and_then(|old| old.if_completed(old.mean_ns)),
            after_ns: new.and_then(|new| new.if_completed(new.mean_ns)),
            mean,
            calls: call_diffs(old, new, thresholds),
        })
    });
    diffs.collect()
}

fn mean_change<'a>(
    before: (&[&'a TrialEvidence], &OperationSummary),
    after: (&[&'a TrialEvidence], &OperationSummary),
    thresholds: &Thresholds,
) -> Option<Change> {
    let (old, new) = (blocks_of(before.0, before.1), blocks_of(after.0, after.1));
    let mean_ns = |trial: &TrialEvidence| seen_in(trial, before.1).map_or(0.0, |seen| seen.duration.mean_ns());
    let having = |trials: &[&'a TrialEvidence]| -> Vec<&'a TrialEvidence> {
        trials.iter().copied().filter(|trial| seen_in(trial, before.1).is_some()).collect()
    };
    let trials = (having(before.0), having(after.0));
    let sides = [&trials.0[..], &trials.1[..]];
    let spread = Spread::new(assumed(sides, thresholds), sides, mean_ns);
    let within = half_width(&old, &new, Quantity::Latency)?;
    let width = widths(within, &trials.0, &trials.1, spread, mean_ns).whole;
    change(before.1.mean_ns, after.1.mean_ns, width, 0.0, thresholds.change_min)
}

fn blocks_of(trials: &[&TrialEvidence], operation: &OperationSummary) -> Vec<Stratum> {
    strata(trials.iter().filter_map(|trial| Some((*trial, operation_blocks(seen_in(trial, operation)?)))))
}

fn seen_in<'a>(trial: &'a TrialEvidence, operation: &OperationSummary) -> Option<&'a OperationEvidence> {
    let is_it = |known: &&OperationEvidence| (&known.service, &known.name) == (&operation.service, &operation.name);
    trial.operations.iter().find(is_it)
}

fn call_diffs(
    before: Option<&OperationSummary>,
    after: Option<&OperationSummary>,
    thresholds: &Thresholds,
) -> Vec<CallDiff> {
    let calls = |side: Option<&OperationSummary>| side.map_or(Vec::new(), |side| side.calls.clone());
    let (old, new) = (calls(before), calls(after));
    let completed = |side: Option<&OperationSummary>| side.map_or(0.0, |side| side.completed);
    let counts = (completed(before), completed(after));
    let is_on_both = before.is_some() && after.is_some();
    let pairs = paired(&old, &new, |call| (call.target.as_str(), call.name.as_str()));
    let diffs = pairs.into_iter().filter_map(|(old, new)| {
        let one = new.or(old)?;
        Some(CallDiff {
            target: one.target.clone(),
            name: one.name.clone(),
            fate: unless_rare(
                fate(old, new, |old, new| calls_differ((old, counts.0), (new, counts.1), thresholds)),
                // The calls of an operation that comes or goes do so with it.
                if is_on_both { one.attempts_per_operation * counts.0.min(counts.1) } else { f64::INFINITY },
            ),
            before: old.map(|old| old.attempts_per_operation),
            after: new.map(|new| new.attempts_per_operation),
        })
    });
    diffs.collect()
}

/// Each side with how often its operation completed.
fn calls_differ(before: (&CallSummary, f64), after: (&CallSummary, f64), thresholds: &Thresholds) -> bool {
    let (old, new) = (before.0.attempts_per_operation, after.0.attempts_per_operation);
    let squared_error = |(call, completed): (&CallSummary, f64)| call.attempts_per_operation / completed.max(1.0);
    let error = (squared_error(before) + squared_error(after)).sqrt();
    let distance = (new - old).abs();
    distance > COUNT_ERRORS * error && distance > thresholds.change_min * old.max(new)
}

fn finding_diffs(before: &[&Finding], after: &[&Finding], thresholds: &Thresholds) -> Vec<FindingDiff> {
    let key = |finding: &&Finding| (finding.kind(), finding.resource.clone(), finding.operation.clone());
    let has_changed = |old: &Finding, new: &Finding| {
        (new.cost_share - old.cost_share).abs() > thresholds.change_min * old.cost_share.max(new.cost_share)
    };
    let pairs = paired(before, after, key);
    let diffs = pairs.into_iter().map(|(old, new)| FindingDiff {
        fate: fate(old.copied(), new.copied(), has_changed),
        before: old.map(|old| (*old).clone()),
        after: new.map(|new| (*new).clone()),
    });
    diffs.collect()
}

fn caveats(before: &Side<'_>, after: &Side<'_>, thresholds: &Thresholds) -> Vec<ComparisonCaveat> {
    let mut caveats = Vec::new();
    let sides = || [before, after].into_iter();
    let labels =
        |trials: usize| sides().filter(move |side| side.done().len() == trials).map(|side| side.label.to_owned());
    if labels(1).next().is_some() {
        let deviation = assumed([&before.done()[..], &after.done()[..]], thresholds);
        let is_observed = sides().any(|side| side.done().iter().any(|trial| trial.trial.is_observed()));
        caveats.push(ComparisonCaveat::MeasuredOnce { sides: labels(1).collect(), deviation, is_observed });
    }
    caveats.extend(labels(0).map(|side| ComparisonCaveat::NoFinishedTrial { side }));
    let (old, new) = (&before.run.run, &after.run.run);
    if old.id != new.id {
        caveats.push(ComparisonCaveat::DifferentRuns);
    }
    if (old.environment.cores, &old.environment.cpu_model) != (new.environment.cores, &new.environment.cpu_model) {
        caveats.push(ComparisonCaveat::DifferentMachines);
    }
    if old.experiment != new.experiment {
        let (before, after) = (old.experiment.clone(), new.experiment.clone());
        caveats.push(ComparisonCaveat::DifferentExperiments { before, after });
    }
    caveats
}

fn sentence(
    sides: (&Side<'_>, &Side<'_>),
    services: &[ServiceDiff],
    operations: &[OperationDiff],
    findings: &[FindingDiff],
) -> String {
    if sides.0.done().is_empty() || sides.1.done().is_empty() {
        return "A side has no finished trial, so nothing can be said.".into();
    }
    let mut parts: Vec<String> = culprit::sentence(services).into_iter().collect();
    for (wanted, words) in [(Fate::Vanished, "is gone"), (Fate::Appeared, "is new"), (Fate::Changed, "costs")] {
        let sentences =
            findings.iter().filter(|finding| finding.fate == wanted).map(|finding| describe_finding(finding, words));
        parts.extend(few(sentences.collect(), ["finding", "findings"]));
    }
    for wanted in [Fate::Vanished, Fate::Appeared, Fate::Changed] {
        let sentences = operations.iter().filter(|operation| operation.fate == wanted).filter_map(describe_operation);
        parts.extend(few(sentences.collect(), ["operation", "operations"]));
    }
    // The calls of an operation that comes or goes do so with it.
    let on_both = operations.iter().filter(|operation| matches!(operation.fate, Fate::Changed | Fate::Same));
    let calls = on_both.flat_map(|operation| operation.calls.iter().map(move |call| (operation, call)));
    let is_known = |operation: &OperationDiff, call: &CallDiff| {
        services.first().is_some_and(|cause| {
            cause.service == operation.service
                && cause.calls.as_ref().is_some_and(|(callee, ..)| *callee == call.target)
        })
    };
    let new = calls.filter(|(operation, call)| !is_known(operation, call));
    let sentences = new.filter_map(|(operation, call)| describe_calls(operation, call));
    parts.extend(few(sentences.collect(), ["kind of call", "kinds of call"]));
    let label = format!("From {} to {}", sides.0.label, sides.1.label);
    match parts.is_empty() {
        true => format!("{label} nothing is shown to differ."),
        false => format!("{label}: {}.", parts.join("; ")),
    }
}

fn describe_finding(finding: &FindingDiff, words: &str) -> String {
    match (&finding.before, &finding.after) {
        (Some(before), Some(after)) => format!(
            "{} of {} costs {} instead of {}",
            after.kind(),
            after.resource,
            units::percent(after.cost_share),
            units::percent(before.cost_share)
        ),
        (Some(one), None) | (None, Some(one)) => format!("{} of {} {words}", one.kind(), one.resource),
        (None, None) => String::new(),
    }
}

fn describe_operation(operation: &OperationDiff) -> Option<String> {
    match (operation.before_ns, operation.after_ns) {
        (Some(before), Some(after)) => {
            Some(format!("{} takes {} instead of {}", operation.name, units::duration(after), units::duration(before)))
        }
        (None, Some(_)) => Some(format!("{} is new", operation.name)),
        (Some(_), None) => Some(format!("{} is gone", operation.name)),
        (None, None) => None,
    }
}

/// `None` if they are the same.
fn describe_calls(operation: &OperationDiff, call: &CallDiff) -> Option<String> {
    let (name, target) = (&operation.name, &call.target);
    match call.fate {
        Fate::Changed => Some(format!(
            "{name} calls {target} {} instead of {}",
            units::times(call.after.unwrap_or(0.0)),
            units::times(call.before.unwrap_or(0.0))
        )),
        Fate::Appeared => Some(format!("{name} now makes {} calls to {target}", call.name)),
        Fate::Vanished => Some(format!("{name} no longer makes {} calls to {target}", call.name)),
        Fate::Same => None,
    }
}

/// The first of these, and how many more there are.
fn few(mut sentences: Vec<String>, [one, many]: [&str; 2]) -> Vec<String> {
    let more = sentences.len().saturating_sub(NAMED_MAX);
    sentences.truncate(NAMED_MAX);
    if more > 0 {
        sentences.push(format!("so with {more} more {}", if more == 1 { one } else { many }));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use narrows_model::caveat::{RequestBasis, TrialCaveat};
    use narrows_model::comparison::Basis;
    use narrows_model::evidence::RunEvidence;
    use narrows_model::operation::OperationEvidence;
    use narrows_testkit::operations::{operation, store_calls};
    use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

    use super::*;
    use crate::words::comparison_caveat;

    fn finding(detector: &str, cost_share: f64) -> Finding {
        Finding {
            resource: "shop".into(),
            cost_share,
            ..Finding::new(detector.parse::<narrows_model::finding::FindingKind>().unwrap(), 1)
        }
    }

    /// Ten seconds of one operation, with so many calls a second.
    fn orders(latency_ms: f64, calls_per_second: f64) -> OperationEvidence {
        let mut orders = operation("shop", "GET /orders", 10, 50.0, latency_ms);
        orders.calls = vec![store_calls("query", (0..10).map(|_| (calls_per_second, 0.0, 0.0)))];
        orders
    }

    fn run(operations: impl IntoIterator<Item = OperationEvidence>) -> RunEvidence {
        let trial = TrialBuilder::new("a").steady(10, Load { vus: 4, rate: 50.0, latency_ms: 20.0 });
        run_of_trials([operations.into_iter().fold(trial, TrialBuilder::operation).build()])
    }

    fn between(before: &RunEvidence, old: Vec<Finding>, after: &RunEvidence, new: Vec<Finding>) -> Diff {
        let (old, new) = (vec![old], vec![new]);
        diff(
            Side { label: "one", run: before, findings: &old },
            Side { label: "two", run: after, findings: &new },
            &Thresholds::default(),
        )
    }

    #[test]
    fn what_is_equal_is_the_same() {
        let run = run([orders(20.0, 50.0)]);
        let found = between(&run, vec![finding("n-plus-one", 0.5)], &run, vec![finding("n-plus-one", 0.5)]);
        assert_eq!((found.operations[0].fate, found.operations[0].calls[0].fate), (Fate::Same, Fate::Same));
        assert_eq!(found.findings[0].fate, Fate::Same);
        assert_eq!(found.sentence, "From one to two nothing is shown to differ.");
        assert_eq!((found.basis, found.caveats.len()), (Basis::MeasuredOnce, 1));
        let text = comparison_caveat(&found.caveats[0]);
        assert!(text.starts_with("Measured once: one and two. ") && text.contains("`--repeat 5`"), "{text}");
        let mut observed = run.clone();
        let basis = RequestBasis::Roots;
        let of_others =
            TrialCaveat::RequestsOfOthers { requests: 9, service: None, basis, left_out: 0, has_server_spans: true };
        observed.trials[0].trial.caveats.push(of_others);
        let found = between(&observed, vec![], &observed, vec![]);
        assert!(!comparison_caveat(&found.caveats[0]).contains("--repeat"), "{:?}", found.caveats);
    }

    #[test]
    fn the_duration_of_an_operation_measured_once_needs_more_than_the_noise_between_trials() {
        let fate = |latency_ms: f64| {
            let found = between(&run([orders(20.0, 50.0)]), vec![], &run([orders(latency_ms, 50.0)]), vec![]);
            found.operations[0].fate
        };
        assert_eq!([26.0, 40.0].map(fate), [Fate::Same, Fate::Changed]);
    }

    #[test]
    fn operations_calls_and_findings_come_go_and_change() {
        let login = operation("shop", "POST /login", 10, 5.0, 3.0);
        let search = operation("shop", "GET /search", 10, 5.0, 3.0);
        let before = run([orders(40.0, 550.0), login]);
        let after = run([orders(20.0, 50.0), search]);
        let found = between(
            &before,
            vec![finding("n-plus-one", 0.8), finding("cpu-saturation", 0.9)],
            &after,
            vec![finding("cpu-saturation", 0.6), finding("pool-wait", 0.3)],
        );
        let fates: Vec<_> = found.operations.iter().map(|o| (o.name.as_str(), o.fate)).collect();
        let expected =
            [("GET /orders", Fate::Changed), ("GET /search", Fate::Appeared), ("POST /login", Fate::Vanished)];
        assert_eq!(fates, expected);
        let call = &found.operations[0].calls[0];
        assert_eq!((call.fate, call.before, call.after), (Fate::Changed, Some(11.0), Some(1.0)));
        let fates: Vec<_> = found.findings.iter().map(|f| f.fate).collect();
        assert_eq!(fates, [Fate::Changed, Fate::Appeared, Fate::Vanished]);
        assert_eq!(
            found.sentence,
            "From one to two: n-plus-one of shop is gone; pool-wait of shop is new; cpu-saturation of shop costs 60 % \
             instead of 90 %; POST /login is gone; GET /search is new; GET /orders takes 20.0 ms instead of 40.0 ms; \
             GET /orders calls azure.cosmosdb once instead of 11 times."
        );
    }

    #[test]
    fn few_calls_that_differ_by_chance_are_the_same() {
        let rare = |per_second: f64| {
            let mut rare = operation("shop", "GET /rare", 10, 1.0, 20.0);
            rare.calls = vec![store_calls("query", (0..10).map(|_| (per_second, 0.0, 0.0)))];
            rare
        };
        let found = between(&run([rare(1.0)]), vec![], &run([rare(1.2)]), vec![]);
        assert_eq!(found.operations[0].calls[0].fate, Fate::Same);
    }

    #[test]
    fn an_effect_that_goes_with_its_cause_is_reported() {
        let run = run([orders(20.0, 50.0)]);
        let cause = Finding { effects: vec![finding("cpu-saturation", 0.9)], ..finding("n-plus-one", 0.8) };
        let found = between(&run, vec![cause], &run, vec![finding("cpu-saturation", 0.9)]);
        let fates: Vec<_> = found.findings.iter().map(|f| f.fate).collect();
        assert_eq!(fates, [Fate::Same, Fate::Vanished]);
    }

    #[test]
    fn what_cannot_be_compared_is_said() {
        let done = run([orders(20.0, 50.0)]);
        let mut other = done.clone();
        other.run.id = "00000000000000bb".into();
        other.run.environment.cores = 64;
        other.trials[0].trial.state = TrialState::Planned;
        let found = between(&done, vec![], &other, vec![]);
        assert_eq!(found.caveats.len(), 4, "{:?}", found.caveats);
        assert_eq!(found.sentence, "A side has no finished trial, so nothing can be said.");
    }

    #[test]
    fn what_comes_and_goes_is_reported_in_the_sentence() {
        let login = || operation("shop", "POST /login", 10, 5.0, 3.0);
        let (with, without) = (run([orders(20.0, 50.0), login()]), run([orders(20.0, 50.0)]));
        let gone = between(&with, Vec::new(), &without, Vec::new());
        assert_eq!(gone.sentence, "From one to two: POST /login is gone.");
        let mut silent = orders(20.0, 50.0);
        silent.calls.clear();
        let calls = between(&run([silent]), Vec::new(), &without, Vec::new());
        let said = "From one to two: GET /orders now makes query calls to azure.cosmosdb.";
        assert_eq!(calls.sentence, said);
    }
}
