//! Clauses on figures that are not the system's, and on how far the others can be read.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Finding, FindingKind, Role};
use narrows_model::run::Verdict;

use super::{Story, few, list};
use crate::detectors::generator_limited::{is_held_back, is_of_system};
use crate::detectors::words_of;

impl<'a> Story<'a> {
    /// The trials whose figures are not the system's.
    pub(super) fn distrust(&self) -> String {
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

    /// Limits on reading the figures, each once with the trials it holds for.
    pub(super) fn limits(&self) -> String {
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
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::Role;
    use narrows_model::run::{TrialState, Verdict};
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::super::fixture::{WAITS, finding, reported, said, trial};
    use crate::words::InWords;

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
