//! The one-sentence summary of a run.
//!
//! The parts come in the order in which a reader needs them: which trials failed every request; which trials are not
//! reliable; the bottleneck of the first variant with a finding; the gain of the variant that gained most, with its
//! figures, the larger change first; the next bottleneck of that variant. A variant that is limited by something without
//! a finding counts as one with a bottleneck if a later one changed the figures. A run without either begins with the
//! largest change, unless something limits how figures can be read. If each variant has a different bottleneck from the
//! one before, the variants are steps of one story, and every step is reported. Only changes that noise does not
//! explain are reported. Of a variant without a bottleneck, each missed objective is explained (`missed.rs`).
//!
//! A finding about the experiment is never reported as the system's bottleneck, and none is left out: findings that
//! make figures invalid begin the sentence, findings that limit their reading end it. Without a bottleneck, the verdict
//! on the limit of each trial takes its place. Trials in which some requests failed end the sentence.

use narrows_model::breakdown::Breakdown;
use narrows_model::comparison::{Change, Comparison, Kept, Meaning, ObjectiveResult, Subject, VariantSummary};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::evidence::variant::VariantFigures;
use narrows_model::finding::{Finding, FindingKind, Role, narrow_place};
use narrows_model::limit::{Limit, LimitVerdict};
use narrows_model::load::ErrorCounts;
use narrows_model::run::{TrialState, Verdict};
use narrows_model::units;

use crate::detectors::generator_limited::{all_failed, is_held_back, is_of_system};
use crate::detectors::words_of;
use crate::missed::missed;
use crate::read::sidecars::is_open;
use crate::thresholds::Thresholds;
use crate::words::{InWords, limit_headline, limit_reason};

/// From this ratio on a change is reported as a factor.
const FACTOR_FROM: f64 = 3.0;
/// A change so many times as large as another, as logarithms, is reported before it.
const MUCH_LARGER: f64 = 1.25;
/// As many variants make a story of steps; with fewer there is nothing between the first and the best.
const STORY_STEPS_MIN: usize = 3;
/// With more, nobody would read the sentence to its end.
const STORY_STEPS_MAX: usize = 5;
/// Failed ÷ ended from which failures are reported: below, the 99 % latency is still that of a successful request.
const FAILED_MIN: f64 = 0.01;
/// Trials named for one limit of the reading; further ones are counted.
const LABELS_MAX: usize = 4;

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The conclusions of a run, from which its sentence is made. Lists are in the order of trials.
pub(crate) struct Story<'a> {
    pub(crate) evidence: &'a RunEvidence,
    pub(crate) findings: &'a [Vec<Finding>],
    pub(crate) limits: &'a [Limit],
    pub(crate) breakdowns: &'a [Vec<Breakdown>],
    pub(crate) objectives: &'a [Vec<ObjectiveResult>],
    pub(crate) comparison: &'a Comparison,
    pub(crate) thresholds: &'a Thresholds,
}

impl<'a> Story<'a> {
    /// The conclusion of the run.
    pub(crate) fn sentence(&self) -> String {
        if self.finished().next().is_none() {
            return self.unfinished();
        }
        let failures = self.failures();
        let rest = match &failures {
            Some(_) if self.has_nothing_else() => None,
            _ => Some([self.distrust(), self.meaning(), self.missed(), self.some_failed()].concat()),
        };
        let clauses: Vec<String> = failures.into_iter().chain(rest).collect();
        capitalised(&format!("{}.", clauses.join("; ")))
    }

    /// The sentence for a run without a finished trial: what was found until then.
    fn unfinished(&self) -> String {
        let of_system = self.trials().filter_map(|(trial, findings)| {
            Some((trial, narrow_place(findings).or(findings.iter().find(|one| !one.role.is_about_experiment()))?))
        });
        match of_system.into_iter().next() {
            Some((trial, finding)) => format!("No trial finished; in {}, {}.", trial.trial.label(), finding.title()),
            None => "No trial finished, so there is no result.".into(),
        }
    }

    /// Clauses on objectives that trials without a narrow place missed, each with what explains it.
    fn missed(&self) -> String {
        let trials = self.evidence.trials.iter().zip(self.objectives).enumerate();
        let clauses = trials.filter_map(|(at, (trial, objectives))| {
            let is_explained = self.findings.get(at).and_then(|findings| narrow_place(findings)).is_some();
            let is_told = is_explained || trial.trial.state != TrialState::Done || all_failed(trial);
            let breakdowns = self.breakdowns.get(at).map_or(&[][..], Vec::as_slice);
            (!is_told).then(|| missed(trial, objectives, breakdowns))?
        });
        clauses.map(|clause| format!("; {clause}")).collect()
    }

    /// Clause on trials in which requests failed, without those that [`Self::missed`] or [`Self::failures`] has.
    fn some_failed(&self) -> String {
        let is_told = |at: usize| {
            let objectives = self.objectives.get(at).into_iter().flatten();
            let is_explained = self.findings.get(at).and_then(|findings| narrow_place(findings)).is_some();
            !is_explained && objectives.into_iter().any(|one| one.kept == Kept::No && one.subject == Subject::Errors)
        };
        let (mut labels, mut errors, mut ended) = (Vec::new(), ErrorCounts::default(), 0);
        for (at, trial) in self.evidence.trials.iter().enumerate() {
            let load = trial.counted_load();
            let failed_share = load.errors.total() as f64 / load.ended().max(1) as f64;
            let is_notable = failed_share >= FAILED_MIN && load.succeeded > 0 && trial.trial.state == TrialState::Done;
            if is_notable && !is_told(at) {
                labels.push(trial.trial.label());
                errors.add(load.errors);
                ended += load.ended();
            }
        }
        match errors.total() {
            0 => String::new(),
            failed => format!(
                "; in {} {} of {} requests failed ({})",
                few(&labels),
                units::count(failed),
                units::count(ended),
                errors.by_kind()
            ),
        }
    }

    /// The trials in which the system failed every request; `None` if there are none.
    fn failures(&self) -> Option<String> {
        let failed: Vec<&TrialEvidence> =
            self.finished().map(|(trial, _)| trial).filter(|trial| all_failed(trial)).collect();
        let labels: Vec<String> = failed.iter().map(|trial| trial.trial.label()).collect();
        let mut errors = ErrorCounts::default();
        failed.iter().for_each(|trial| errors.add(trial.counted_load().errors));
        let what = match errors.total() {
            0 => return None,
            1 => "the only request".to_owned(),
            all => format!("all {} requests", units::count(all)),
        };
        Some(format!("in {} the system failed {what} ({})", few(&labels), errors.by_kind()))
    }

    /// True if every finished trial failed every request, and no finding explains more.
    fn has_nothing_else(&self) -> bool {
        self.finished().all(|(trial, findings)| all_failed(trial) && findings.is_empty())
    }

    /// The trials whose figures are not the system's.
    fn distrust(&self) -> String {
        let is_invalid = |trial: &TrialEvidence| {
            trial.trial.validity.verdict == Verdict::Invalid && !is_of_system(trial, self.thresholds)
        };
        let faults = |findings: &'a [Finding]| findings.iter().filter(|finding| finding.role == Role::Invalidates);
        let is_unsteady = |finding: &Finding| finding.kind() == FindingKind::NotSteady;
        let (mut shaped, mut starved, mut unsteady) = (Vec::new(), Vec::new(), Vec::new());
        for (trial, findings) in self.trials() {
            let label = || trial.trial.label();
            if faults(findings).any(is_unsteady) {
                unsteady.push(label());
            }
            match is_invalid(trial) || faults(findings).any(|finding| !is_unsteady(finding)) {
                true if is_held_back(trial, self.thresholds) => starved.push(label()),
                true => shaped.push(label()),
                false => {}
            }
        }
        let reasons = [
            (shaped, "the load generator, not the system, determined the figures"),
            (starved, "max_vus limited the load"),
            (unsteady, "no window was steady enough for a mean"),
        ];
        let reasons = reasons.into_iter().filter(|(labels, _)| !labels.is_empty());
        let reasons: Vec<String> = reasons.map(|(labels, what)| format!("in {} {what}", list(&labels))).collect();
        if reasons.is_empty() { String::new() } else { format!("Unreliable, because {}: ", reasons.join(" and ")) }
    }

    fn meaning(&self) -> String {
        let variants = &self.comparison.variants;
        let narrow = variants.iter().enumerate().find_map(|(at, v)| Some((at, v, self.narrowest(&v.variant)?)));
        let before = narrow.map_or(variants.len(), |(at, _, _)| at);
        let is_gain = |best: &VariantSummary| gain(best).is_some_and(|gain| gain > 0.0);
        if let Some((at, limit)) = self.limited(before).filter(|(at, _)| self.best_after(*at).is_some_and(is_gain)) {
            let (headline, reason) = (limit_headline(&limit.verdict), limit_reason(&limit.verdict));
            let guess = if narrow.is_none() { self.guess() } else { String::new() };
            let variant = &variants[at].variant;
            return format!("{variant} is {headline}: {reason}{}{guess}{}", self.after(at), self.limits());
        }
        let Some((at, variant, finding)) = narrow else {
            let is_known = self.evidence.trials.iter().all(|trial| trial.trial.caveats.is_empty());
            let extent = if is_known { "" } else { ", within the limits of the caveats" };
            let nothing = [self.nothing(), extent.into(), self.guess()].concat();
            return match self.effect() {
                Some((first, effect)) if self.limits().is_empty() => format!("against {first}, {effect}; {nothing}"),
                Some((_, effect)) => format!("{nothing}; {effect}{}", self.limits()),
                None => [nothing, self.differences(), self.limits()].concat(),
            };
        };
        format!(
            "in {}, {} ({} {}){}{}",
            variant.variant,
            finding.title(),
            units::percent(finding.cost_share),
            finding.cost_of(),
            self.after(at),
            self.limits()
        )
    }

    fn trials(&self) -> impl Iterator<Item = (&'a TrialEvidence, &'a [Finding])> {
        let findings = self.findings.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        self.evidence.trials.iter().zip(findings)
    }

    /// True if both get calls as fast as they respond, or both at a rate: else throughput is the load's doing.
    fn are_loaded_alike(&self, first: &VariantSummary, other: &VariantSummary) -> bool {
        let is_open = |summary: &VariantSummary| {
            self.finished().find(|(trial, _)| trial.trial.variant == summary.variant).map(|(trial, _)| is_open(trial))
        };
        is_open(first) == is_open(other)
    }

    /// The trials that ran to their end.
    fn finished(&self) -> impl Iterator<Item = (&'a TrialEvidence, &'a [Finding])> {
        self.trials().filter(|(trial, _)| trial.trial.state == TrialState::Done)
    }

    /// The narrow place of the first finished trial of a variant that has one.
    fn narrowest(&self, variant: &str) -> Option<&'a Finding> {
        let of_variant = self.finished().filter(|(trial, _)| trial.trial.variant == variant);
        of_variant.into_iter().find_map(|(_, findings)| narrow_place(findings))
    }

    /// The sentence for a run without a narrow place: the verdicts on the limits of its trials.
    fn nothing(&self) -> String {
        let is_none = self.finished().all(|(_, findings)| findings.is_empty());
        let begin = if is_none { "no finding" } else { "no bottleneck was found" };
        let of_trials = self.verdicts().into_iter().map(|(labels, limits)| match limits[..] {
            [only] => {
                let (headline, reason) = (limit_headline(&only.verdict), limit_reason(&only.verdict));
                format!("; {} is {headline}: {reason}", few(&labels))
            }
            _ => format!("; {} are {}", few(&labels), limit_headline(&limits[0].verdict)),
        });
        std::iter::once(begin.to_owned()).chain(of_trials).collect()
    }

    /// The verdicts on the finished trials, those of one kind together, with the labels of their trials.
    fn verdicts(&self) -> Vec<(Vec<String>, Vec<&'a Limit>)> {
        let mut verdicts: Vec<(Vec<String>, Vec<&'a Limit>)> = Vec::new();
        let trials = self.evidence.trials.iter().zip(self.limits);
        for (trial, limit) in trials.filter(|(trial, _)| trial.trial.state == TrialState::Done) {
            let label = trial.trial.label();
            let headline = limit_headline(&limit.verdict);
            match verdicts.iter_mut().find(|(_, known)| limit_headline(&known[0].verdict) == headline) {
                Some((labels, known)) => {
                    labels.push(label);
                    known.push(limit);
                }
                None => verdicts.push((vec![label], vec![limit])),
            }
        }
        verdicts
    }

    /// The first finding about the system that is too unsure to be a narrow place.
    fn guess(&self) -> String {
        let mut guesses = self.finished().filter_map(|(trial, findings)| {
            Some((trial, findings.iter().find(|finding| !finding.role.is_about_experiment())?))
        });
        guesses.next().map_or_else(String::new, |(trial, finding)| {
            format!("; with {} confidence, in {} {}", finding.confidence.as_str(), trial.trial.variant, finding.title())
        })
    }

    /// Limits on reading the figures, each once with the trials it holds for.
    fn limits(&self) -> String {
        let mut limits: Vec<(&'a Finding, Vec<String>)> = Vec::new();
        for (trial, findings) in self.finished() {
            for finding in findings.iter().filter(|finding| finding.role == Role::LimitsReading) {
                match limits.iter_mut().find(|(known, _)| known.kind() == finding.kind()) {
                    Some((_, labels)) if labels.last().is_some_and(|last| *last == trial.trial.label()) => {}
                    Some((_, labels)) => labels.push(trial.trial.label()),
                    None => limits.push((finding, vec![trial.trial.label()])),
                }
            }
        }
        let clause = |(finding, labels): (&Finding, Vec<String>)| {
            format!("; in {} {}", few(&labels), words_of(&finding.evidence).clause(finding))
        };
        limits.into_iter().map(clause).collect()
    }

    /// The first of so many variants that something limits which is no finding.
    fn limited(&self, variants: usize) -> Option<(usize, &'a Limit)> {
        let all = self.comparison.variants.iter().take(variants).enumerate();
        let mut limits = all.filter_map(|(at, variant)| Some((at, self.limit_of(&variant.variant)?)));
        limits.find(|(_, limit)| matches!(limit.verdict, LimitVerdict::NotCpu { .. } | LimitVerdict::Cpu { .. }))
    }

    /// The verdict on the first finished trial of a variant.
    fn limit_of(&self, variant: &str) -> Option<&'a Limit> {
        let mut trials = self.evidence.trials.iter().zip(self.limits);
        let is_meant = |trial: &TrialEvidence| trial.trial.state == TrialState::Done && trial.trial.variant == variant;
        trials.find(|(trial, _)| is_meant(trial)).map(|(_, limit)| limit)
    }

    /// The variant after this one that changed the figures most, against the first; `None` if none did.
    fn best_after(&self, at: usize) -> Option<&'a VariantSummary> {
        let first = self.comparison.variants.first()?;
        let later = self.comparison.variants[at + 1..].iter();
        most_changed(later.filter(|other| self.are_loaded_alike(first, other)))
    }

    /// Effects of the variants after the narrow one.
    fn after(&self, narrow: usize) -> String {
        let later = &self.comparison.variants[narrow + 1..];
        let Some(first) = self.comparison.variants.first().filter(|_| !later.is_empty()) else { return String::new() };
        if self.is_story(narrow) {
            return later.iter().map(|variant| self.step(first, variant, narrow)).collect();
        }
        let Some(best) = self.best_after(narrow) else {
            let is_compared = later.iter().any(|other| other.against_first.is_some());
            return match is_compared {
                true => "; no later variant changed that by more than noise".into(),
                false => "; too little was measured to compare later variants with it".into(),
            };
        };
        let against = if narrow > 0 { format!(" against {}", first.variant) } else { String::new() };
        format!("; {} {}{against}{}", best.variant, changes(first, best), self.next(best))
    }

    /// The bottleneck of a variant, to follow its effect.
    fn next(&self, variant: &VariantSummary) -> String {
        self.narrowest(&variant.variant).map_or_else(String::new, |finding| format!(", and there {}", finding.title()))
    }

    /// True if the variants from the narrow one on are a few steps, each with another cause first.
    fn is_story(&self, narrow: usize) -> bool {
        let steps = &self.comparison.variants[narrow..];
        let causes: Vec<Option<FindingKind>> =
            steps.iter().map(|variant| self.narrowest(&variant.variant).map(|finding| finding.kind())).collect();
        let all_differ = causes.windows(2).all(|pair| pair[0] != pair[1]);
        let are_known = causes[..causes.len() - 1].iter().all(Option::is_some);
        (STORY_STEPS_MIN..=STORY_STEPS_MAX).contains(&steps.len()) && are_known && all_differ
    }

    /// Effect of one step of a story, against the run's first variant, and its bottleneck.
    fn step(&self, first: &VariantSummary, variant: &VariantSummary, narrow: usize) -> String {
        let is_next = narrow == 0 && self.comparison.variants.get(1).is_some_and(|v| v.variant == variant.variant);
        let against = if is_next { String::new() } else { format!(" against {}", first.variant) };
        let brought = match gain(variant) {
            Some(_) => changes(first, variant),
            None => "changed nothing by more than noise".into(),
        };
        format!("; {} {brought}{against}{}", variant.variant, self.next(variant))
    }

    /// The largest change from the first variant to another, with the first one's name.
    fn effect(&self) -> Option<(&str, String)> {
        let first = self.comparison.variants.first()?;
        let best = most_changed(self.comparison.variants.iter())?;
        Some((first.variant.as_str(), format!("{} {}", best.variant, changes(first, best))))
    }

    /// The sentence for variants without a narrow place and without a change larger than noise.
    fn differences(&self) -> String {
        let measured: Vec<&VariantSummary> = self.comparison.variants.iter().filter(|v| v.repetitions > 0).collect();
        let [_, others @ ..] = &measured[..] else { return String::new() };
        if others.is_empty() {
            return String::new();
        }
        let names: Vec<String> = measured.iter().map(|variant| variant.variant.clone()).collect();
        let is_once = measured.iter().all(|variant| variant.repetitions == 1);
        match () {
            () if others.iter().all(|other| other.against_first.is_none()) => {
                format!("; too little was measured to tell {} apart", list(&names))
            }
            () if others.iter().any(|other| is_unclear(other)) && is_once => {
                format!("; one trial each is too little to compare {}", list(&names))
            }
            () if others.iter().any(|other| is_unclear(other)) => {
                format!("; noise hides whether {} differ", list(&names))
            }
            () => format!("; no difference between {} that noise does not explain", list(&names)),
        }
    }
}

/// True if noise hides how a variant differs from the first.
fn is_unclear(variant: &VariantSummary) -> bool {
    let of = |change: &Change| change.meaning == Meaning::Unclear;
    variant.against_first.as_ref().is_some_and(|difference| of(&difference.rate) || of(&difference.mean))
}

/// The variant that gained most or, when none gained, lost most; `None` if all are the same as the first.
fn most_changed<'a>(variants: impl Iterator<Item = &'a VariantSummary>) -> Option<&'a VariantSummary> {
    let changed: Vec<(&VariantSummary, f64)> = variants.filter_map(|variant| Some((variant, gain(variant)?))).collect();
    let best = changed.iter().filter(|(_, gain)| *gain > 0.0).max_by(|a, b| a.1.total_cmp(&b.1));
    let worst = changed.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    best.or(worst).map(|(variant, _)| *variant)
}

/// More throughput and less latency, as logarithms; `None` if neither changed.
fn gain(variant: &VariantSummary) -> Option<f64> {
    let difference = variant.against_first.as_ref()?;
    let log_ratio = |change: &Change| change.meaning.is_change().then(|| change.ratio.ln_1p());
    match (log_ratio(&difference.rate), log_ratio(&difference.mean)) {
        (None, None) => None,
        (rate, mean) => Some(rate.unwrap_or(0.0) - mean.unwrap_or(0.0)),
    }
}

/// Changes from the first variant to another, the larger one first. Changes of about the same size keep the order
/// of the table.
fn changes(first: &VariantSummary, variant: &VariantSummary) -> String {
    let Some(difference) = &variant.against_first else { return String::new() };
    let Some((old, new)) = VariantFigures::of(first).zip(VariantFigures::of(variant)) else { return String::new() };
    let rates = (units::rate(old.rate), units::rate(new.rate));
    let means = (units::duration(old.mean_ns), units::duration(new.mean_ns));
    let mut changes = [("throughput", &difference.rate, &rates), ("mean latency", &difference.mean, &means)];
    let size = |change: &Change| change.ratio.ln_1p().abs();
    if size(&difference.mean) > size(&difference.rate) * MUCH_LARGER {
        changes.reverse();
    }
    let parts =
        changes.into_iter().filter_map(|(what, change, values)| describe_change(what, change, &values.0, &values.1));
    parts.collect::<Vec<_>>().join(" and ")
}

fn describe_change(what: &str, change: &Change, old: &str, new: &str) -> Option<String> {
    let size = |ratio: f64| match ratio {
        r if r >= FACTOR_FROM - 1.0 => format!("{} times", units::number(1.0 + r)),
        r => units::percent(r.abs()),
    };
    let verb = match change.meaning {
        Meaning::Higher => "raised",
        Meaning::Lower => "lowered",
        Meaning::Same | Meaning::Unclear => return None,
    };
    let by = if change.ratio >= FACTOR_FROM - 1.0 { "" } else { "by " };
    Some(format!("{verb} {what} {by}{} ({old} to {new})", size(change.ratio)))
}

/// As [`list`], but no more than a few.
fn few(names: &[String]) -> String {
    match names.len().checked_sub(LABELS_MAX).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", names[..LABELS_MAX].join(", ")),
        None => list(names),
    }
}

pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::{Beat, query, run_of, server};
    use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

    use crate::conclude;

    use super::*;
    use crate::Reading;
    use crate::limit::limit;

    fn trial(variant: &str, rate: f64, latency_ms: f64) -> TrialBuilder {
        TrialBuilder::new(variant).service("shop", Some(0.5)).steady(30, Load { vus: 8, rate, latency_ms })
    }

    fn narrow(trial: TrialBuilder) -> TrialBuilder {
        let beat = Beat { first_ms: 5.0, step_ms: 5.0, length_ms: 3.0 };
        let orders = server("shop", "GET /orders")
            .at(0.0, 100.0)
            .child(query("SELECT * FROM orders").at(1.0, 2.0))
            .children(run_of(10, beat, |_| query("SELECT name FROM customer WHERE id = ?")));
        trial.traces((0..5).map(|number| orders.clone().trace(number)))
    }

    fn said(trials: impl IntoIterator<Item = TrialBuilder>) -> String {
        let trials: Vec<TrialEvidence> = trials.into_iter().map(TrialBuilder::build).collect();
        let none = vec![Vec::new(); trials.len()];
        conclude(run_of_trials(trials), none, Default::default(), &Thresholds::default()).sentence
    }

    const NARROW: &str = "In as-is, GET /orders fetches rows one at a time: 10 similar queries in each request (48 % of \
                          the latency of GET /orders)";

    #[test]
    fn the_narrow_place_and_what_the_fix_gained() {
        let fixed = || trial("fixed", 200.0, 40.0);
        let as_is = || narrow(trial("as-is", 100.0, 80.0));
        let gained =
            "; fixed raised throughput by 100 % (100/s to 200/s) and lowered mean latency by 50 % (80.0 ms to 40.0 ms)";
        assert_eq!(said([as_is()]), format!("{NARROW}."));
        let sentence = said([as_is(), fixed()]);
        assert_eq!(sentence, format!("{NARROW}{gained}."));
        assert_eq!(
            said([as_is(), trial("fixed", 100.0, 80.0)]),
            format!("{NARROW}; no later variant changed that by more than noise.")
        );
        let next = said([as_is(), trial("worse", 50.0, 90.0), fixed().cpu("shop", 0, |_| 0.49)]);
        assert!(next.ends_with(", and there shop uses up its CPU limit: 98 % of 0.50 cores."), "{next}");
        assert!(said([as_is(), trial("fixed", 500.0, 80.0)]).contains("raised throughput 5 times (100/s to 500/s)"));
    }

    #[test]
    fn the_larger_change_comes_first() {
        let sentence = said([narrow(trial("as-is", 100.0, 80.0)), trial("fixed", 200.0, 10.0)]);
        let gained =
            "fixed lowered mean latency by 88 % (80.0 ms to 10.0 ms) and raised throughput by 100 % (100/s to 200/s)";
        assert!(sentence.contains(gained), "{sentence}");
        let outcome = said([healthy("plain", 100.0), healthy("cached", 400.0)]);
        assert!(
            outcome.starts_with("Plain is limited by something at shop that is not CPU: 8 users wait"),
            "{outcome}"
        );
        assert!(outcome.ends_with("; cached raised throughput 4 times (100/s to 400/s)."), "{outcome}");
    }

    #[test]
    fn throughput_is_compared_between_loads_of_one_kind_only() {
        let paced = TrialBuilder::new("paced").service("shop", Some(0.5)).arrivals(
            30,
            60.0,
            Load { vus: 8, rate: 60.0, latency_ms: 80.0 },
        );
        let sentence = said([narrow(trial("as-is", 100.0, 80.0)), paced]);
        assert!(!sentence.contains("throughput by"), "{sentence}");
        assert!(sentence.starts_with(&format!("{NARROW}; no later variant changed that")), "{sentence}");
    }

    #[test]
    fn a_story_of_steps_is_reported_in_whole() {
        let as_is = narrow(trial("as-is", 100.0, 80.0));
        let same = trial("same", 100.0, 80.0).cpu("shop", 0, |_| 0.49);
        let sentence = said([as_is, same, trial("fixed", 500.0, 80.0)]);
        let steps = "; same changed nothing by more than noise, and there shop uses up its CPU limit: 98 % of 0.50 cores; \
                     fixed raised throughput 5 times (100/s to 500/s) against as-is";
        assert_eq!(sentence, format!("{NARROW}{steps}."));
    }

    /// The verdict on the limit of a healthy trial, whose users all wait.
    const WAITS: &str = "a is limited by something at shop that is not CPU: 8 users wait 80.0 ms for each response; 94 % of \
                         the latency passes before its spans begin or after they end, and it uses 0.10 cores";

    /// A complete trial without any fault.
    fn healthy(variant: &str, rate: f64) -> TrialBuilder {
        trial(variant, rate, 80.0).cpu("shop", 0, |_| 0.1).traces([server("shop", "GET /").at(0.0, 5.0).trace(0)])
    }

    #[test]
    fn what_could_not_be_seen_is_not_called_healthy() {
        let unseen = said([trial("a", 100.0, 80.0)]);
        assert_eq!(unseen, "No finding; a is not judged: the only load was 8 users, within the limits of the caveats.");
    }

    #[test]
    fn a_healthy_run_has_no_finding() {
        let waits = "limited by something at shop that is not CPU";
        let why = "8 users wait 80.0 ms for each response; 94 % of the latency passes before its spans begin or after they \
                   end, and it uses 0.10 cores";
        assert_eq!(said([healthy("a", 100.0)]), format!("No finding; a is {waits}: {why}."));
        assert_eq!(
            said([healthy("a", 100.0), healthy("b", 101.0)]),
            format!("No finding; a and b are {waits}; one trial each is too little to compare a and b.")
        );
        let slower = said([healthy("plain", 100.0), healthy("sidecars", 40.0)]);
        assert_eq!(
            slower,
            format!(
                "No bottleneck was found; plain is {waits}: {why}; sidecars is not judged: the only load was 8 users, under \
                 which the busiest service used 20 % of its CPU; sidecars lowered throughput by 60 % (100/s to 40.0/s); in \
                 sidecars the rates differ, so only CPU per request can be compared."
            )
        );
    }

    #[test]
    fn what_is_too_short_to_be_compared_is_not_called_the_same() {
        let short = |variant: &str, rate: f64| {
            let load = Load { vus: 8, rate, latency_ms: 80.0 };
            let trial = TrialBuilder::new(variant).service("shop", Some(0.5)).steady(1, load);
            trial.cpu("shop", 0, |_| 0.1).traces([server("shop", "GET /").at(0.0, 5.0).trace(0)])
        };
        let sentence = said([short("a", 100.0), short("b", 150.0)]);
        assert!(sentence.ends_with("; too little was measured to tell a and b apart."), "{sentence}");
    }

    /// The sentence for healthy trials, one for each of these lists of findings.
    fn reported(findings: &[Vec<Finding>]) -> String {
        let variants = ["a", "b", "c", "d", "e", "f"];
        let trials: Vec<TrialEvidence> =
            variants.iter().zip(findings).map(|(variant, _)| healthy(variant, 100.0).build()).collect();
        let (evidence, thresholds) = (run_of_trials(trials), Thresholds::default());
        let of_trial = |(trial, findings): (&TrialEvidence, &Vec<Finding>)| {
            Reading::with(trial, &thresholds, |reading| limit(reading, findings))
        };
        let limits: Vec<Limit> = evidence.trials.iter().zip(findings).map(of_trial).collect();
        let comparison = &crate::compare(&evidence, &thresholds);
        let (breakdowns, objectives) = (&[], &[]);
        let (evidence, limits, thresholds) = (&evidence, &limits, &thresholds);
        Story { evidence, findings, limits, breakdowns, objectives, comparison, thresholds }.sentence()
    }

    fn finding(detector: &str, role: Role) -> Finding {
        Finding { role, cost_share: 0.5, ..Finding::new(detector.parse::<FindingKind>().unwrap(), 1) }
    }

    #[test]
    fn findings_about_the_experiment_are_neither_the_narrow_place_nor_forgotten() {
        let one = |detector, role| reported(&[vec![finding(detector, role)]]);
        let none = format!("No bottleneck was found; {WAITS}; in a");
        for detector in ["generator-limited", "instrumentation-gap", "not-steady"] {
            assert_eq!(
                one(detector, Role::LimitsReading),
                format!("{none} {}.", finding(detector, Role::LimitsReading).title())
            );
        }
        let unsteady = one("not-steady", Role::Invalidates);
        let begins = "Unreliable, because in a no window was steady enough for a mean: ";
        assert_eq!(
            unsteady,
            format!(
                "{begins}no bottleneck was found; a is not judged: the lack of a steady state makes the figures invalid."
            )
        );
        let (narrow, limit) =
            (finding("throttling", Role::NarrowPlace), finding("generator-limited", Role::LimitsReading));
        let said = format!("In a, {} (50 % {}); in a {}.", narrow.title(), narrow.cost_of(), limit.title());
        assert_eq!(reported(&[vec![narrow, limit]]), said);
    }

    #[test]
    fn a_load_that_was_carried_cannot_show_a_gain() {
        let limited = || vec![finding("offered-load-limited", Role::LimitsReading)];
        let carried = "the system completed the whole offered load, so throughput cannot show a gain.";
        assert_eq!(reported(&[limited()]), format!("No bottleneck was found; {WAITS}; in a {carried}"));
        let many = reported(&[limited(), limited(), limited(), limited(), limited(), limited()]);
        assert!(many.ends_with(&format!("; in a, b, c, d and 2 more {carried}")), "{many}");
    }

    #[test]
    fn a_guess_is_reported_as_one() {
        let guess = finding("cross-partition-query", Role::CostsMore);
        let low = format!("with low confidence, in a {}.", guess.title());
        assert_eq!(reported(&[vec![guess]]), format!("No bottleneck was found; {WAITS}; {low}"));
    }

    #[test]
    fn a_system_that_fails_every_request_is_reported_and_the_generator_is_not_blamed() {
        let failing = |variant: &str| {
            let mut trial = trial(variant, 100.0, 80.0).verdict(Verdict::Invalid, "All 3,000 requests failed.").build();
            for second in &mut trial.seconds {
                second.errors.status += std::mem::take(&mut second.succeeded);
                second.latency = Default::default();
            }
            trial
        };
        let said = |trials: Vec<TrialEvidence>| {
            let none = vec![Vec::new(); trials.len()];
            conclude(run_of_trials(trials), none, Default::default(), &Thresholds::default()).sentence
        };
        assert_eq!(said(vec![failing("a")]), "In a the system failed all 3,000 requests (status 3,000).");
        let both = said(vec![failing("a"), failing("b")]);
        assert_eq!(both, "In a and b the system failed all 6,000 requests (status 6,000).");
        let sentence = said(vec![failing("a"), trial("b", 100.0, 80.0).build()]);
        assert!(sentence.starts_with("In a the system failed all 3,000 requests (status 3,000); no "), "{sentence}");
        assert!(!sentence.contains("generator"), "{sentence}");
    }

    #[test]
    fn failed_requests_of_a_variant_are_reported_beside_what_another_gained() {
        let failing = |failed: u64| {
            let mut trial = narrow(trial("as-is", 100.0, 80.0)).build();
            trial.seconds[0].errors.timeout = failed;
            trial
        };
        let fixed = || trial("fixed", 200.0, 40.0).build();
        let said = |trials: Vec<TrialEvidence>| {
            let none = vec![Vec::new(); trials.len()];
            conclude(run_of_trials(trials), none, Default::default(), &Thresholds::default()).sentence
        };
        let sentence = said(vec![failing(100), fixed()]);
        assert!(sentence.ends_with("; in as-is 100 of 3,100 requests failed (timeout 100)."), "{sentence}");
        let sentence = said(vec![failing(10), fixed()]);
        assert!(!sentence.contains("failed"), "{sentence}");
    }

    #[test]
    fn what_is_not_to_be_believed_comes_first() {
        let sentence = said([trial("a", 100.0, 80.0).verdict(Verdict::Invalid, "Late."), trial("b", 100.0, 80.0)]);
        assert!(sentence.starts_with("Unreliable, because in a the load generator"), "{sentence}");
        let starved = || {
            TrialBuilder::new("c").arrivals(30, 100.0, Load { vus: 9, rate: 80.0, latency_ms: 90.0 }).held_back(30, 20)
        };
        let sentence = said([trial("a", 80.0, 90.0).verdict(Verdict::Invalid, "Late."), starved()]);
        let both = "Unreliable, because in a the load generator, not the system, determined the figures and in c max_vus \
                    limited the load: no bottleneck was found";
        assert!(sentence.starts_with(both), "{sentence}");
        assert_eq!(said([]), "No trial finished, so there is no result.");
        let cut = trial("a", 100.0, 80.0).state(TrialState::Failed);
        assert_eq!(said([cut]), "No trial finished, so there is no result.");
    }
}
