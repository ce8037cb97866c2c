//! Clauses on the effects of variants: what the best of them gained, or every step of a story.

use narrows_model::comparison::{Change, Meaning, VariantSummary};
use narrows_model::finding::FindingKind;
use narrows_model::finding::evidence::variant::VariantFigures;
use narrows_model::units;

use super::{Story, list};
use crate::read::sidecars::is_open;
use crate::words::InWords;

/// From this ratio on a change is reported as a factor.
const FACTOR_FROM: f64 = 3.0;
/// A change so many times as large as another, as logarithms, is reported before it.
const MUCH_LARGER: f64 = 1.25;
/// As many variants make a story of steps; with fewer there is nothing between the first and the best.
const STORY_STEPS_MIN: usize = 3;
/// Maximum number of steps in the sentence.
const STORY_STEPS_MAX: usize = 5;

impl<'a> Story<'a> {
    /// The variant after this one that changed the figures most, against the first; `None` if none did.
    pub(super) fn best_after(&self, at: usize) -> Option<&'a VariantSummary> {
        let first = self.comparison.variants.first()?;
        let later = self.comparison.variants[at + 1..].iter();
        most_changed(later.filter(|other| self.are_loaded_alike(first, other)))
    }

    /// Effects of the variants after the narrow one.
    pub(super) fn after(&self, narrow: usize) -> String {
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

    /// The largest change from the first variant to another, with the first one's name.
    pub(super) fn effect(&self) -> Option<(&str, String)> {
        let first = self.comparison.variants.first()?;
        let best = most_changed(self.comparison.variants.iter())?;
        Some((first.variant.as_str(), format!("{} {}", best.variant, changes(first, best))))
    }

    /// The sentence for variants without a narrow place and without a change larger than noise.
    pub(super) fn differences(&self) -> String {
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

    /// True if both get calls as fast as they respond, or both at a rate: else throughput is the load's doing.
    fn are_loaded_alike(&self, first: &VariantSummary, other: &VariantSummary) -> bool {
        let is_open = |summary: &VariantSummary| {
            self.finished().find(|(trial, _)| trial.trial.variant == summary.variant).map(|(trial, _)| is_open(trial))
        };
        is_open(first) == is_open(other)
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
}

/// More throughput and less latency, as logarithms; `None` if neither changed.
pub(super) fn gain(variant: &VariantSummary) -> Option<f64> {
    let difference = variant.against_first.as_ref()?;
    let log_ratio = |change: &Change| change.meaning.is_change().then(|| change.ratio.ln_1p());
    match (log_ratio(&difference.rate), log_ratio(&difference.mean)) {
        (None, None) => None,
        (rate, mean) => Some(rate.unwrap_or(0.0) - mean.unwrap_or(0.0)),
    }
}

/// The variant that gained most or, when none gained, lost most; `None` if all are the same as the first.
fn most_changed<'a>(variants: impl Iterator<Item = &'a VariantSummary>) -> Option<&'a VariantSummary> {
    let changed: Vec<(&VariantSummary, f64)> = variants.filter_map(|variant| Some((variant, gain(variant)?))).collect();
    let best = changed.iter().filter(|(_, gain)| *gain > 0.0).max_by(|a, b| a.1.total_cmp(&b.1));
    let worst = changed.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    best.or(worst).map(|(variant, _)| *variant)
}

/// True if noise hides how a variant differs from the first.
fn is_unclear(variant: &VariantSummary) -> bool {
    let of = |change: &Change| change.meaning == Meaning::Unclear;
    variant.against_first.as_ref().is_some_and(|difference| of(&difference.rate) || of(&difference.mean))
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

#[cfg(test)]
mod tests {
    use narrows_testkit::spans::server;
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::super::fixture::{NARROW, healthy, narrow, said, trial};

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
}
