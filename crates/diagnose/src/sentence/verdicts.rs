//! Clauses on trials without a bottleneck: the verdicts on their limits, and findings that are too unsure.

use narrows_model::evidence::TrialEvidence;
use narrows_model::limit::{Limit, LimitVerdict};
use narrows_model::run::TrialState;

use super::{Story, few};
use crate::words::{InWords, limit_headline, limit_reason};

impl<'a> Story<'a> {
    /// The sentence for a run without a narrow place: the verdicts on the limits of its trials.
    pub(super) fn nothing(&self) -> String {
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

    /// The first finding about the system that is too unsure to be a narrow place.
    pub(super) fn guess(&self) -> String {
        let mut guesses = self.finished().filter_map(|(trial, findings)| {
            Some((trial, findings.iter().find(|finding| !finding.role.is_about_experiment())?))
        });
        guesses.next().map_or_else(String::new, |(trial, finding)| {
            format!("; with {} confidence, in {} {}", finding.confidence.as_str(), trial.trial.variant, finding.title())
        })
    }

    /// The first of so many variants that something limits which is no finding.
    pub(super) fn limited(&self, variants: usize) -> Option<(usize, &'a Limit)> {
        let all = self.comparison.variants.iter().take(variants).enumerate();
        let mut limits = all.filter_map(|(at, variant)| Some((at, self.limit_of(&variant.variant)?)));
        limits.find(|(_, limit)| matches!(limit.verdict, LimitVerdict::NotCpu { .. } | LimitVerdict::Cpu { .. }))
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

    /// The verdict on the first finished trial of a variant.
    fn limit_of(&self, variant: &str) -> Option<&'a Limit> {
        let mut trials = self.evidence.trials.iter().zip(self.limits);
        let is_meant = |trial: &TrialEvidence| trial.trial.state == TrialState::Done && trial.trial.variant == variant;
        trials.find(|(trial, _)| is_meant(trial)).map(|(_, limit)| limit)
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::Role;

    use super::super::fixture::{WAITS, finding, healthy, reported, said, trial};
    use crate::words::InWords;

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
    fn a_guess_is_reported_as_one() {
        let guess = finding("cross-partition-query", Role::CostsMore);
        let low = format!("with low confidence, in a {}.", guess.title());
        assert_eq!(reported(&[vec![guess]]), format!("No bottleneck was found; {WAITS}; {low}"));
    }
}
