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

mod doubts;
mod effects;
mod failures;
#[cfg(test)]
mod fixture;
mod missed;
mod verdicts;

use narrows_model::breakdown::Breakdown;
use narrows_model::comparison::{Comparison, ObjectiveResult, VariantSummary};
use narrows_model::evidence::{RunEvidence, TrialEvidence};
use narrows_model::finding::{Finding, narrow_place};
use narrows_model::limit::Limit;
use narrows_model::run::TrialState;
use narrows_model::units;

use self::effects::gain;
use crate::thresholds::Thresholds;
use crate::words::{InWords, limit_headline, limit_reason};

/// Trials named for one limit of the reading; further ones are counted.
const LABELS_MAX: usize = 4;

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

    /// The trials that ran to their end.
    fn finished(&self) -> impl Iterator<Item = (&'a TrialEvidence, &'a [Finding])> {
        self.trials().filter(|(trial, _)| trial.trial.state == TrialState::Done)
    }

    /// The narrow place of the first finished trial of a variant that has one.
    fn narrowest(&self, variant: &str) -> Option<&'a Finding> {
        let of_variant = self.finished().filter(|(trial, _)| trial.trial.variant == variant);
        of_variant.into_iter().find_map(|(_, findings)| narrow_place(findings))
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
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
