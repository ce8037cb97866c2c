//! The findings of a variant's repetitions, each cause told once.
//!
//! Two findings are one cause when detector, resource, operation and query agree; the dearest of them speaks for all, and the
//! report says in how many repetitions it was seen.

use narrows_model::comparison::Outcome;
use narrows_model::finding::Finding;
use narrows_model::run::TrialState;

/// What was found in one variant.
pub(crate) struct VariantFindings<'a> {
    pub(crate) variant: &'a str,
    /// Trials of the variant that were measured, as indices into the outcome's trials.
    pub(crate) trials: Vec<usize>,
    /// In the order they were ranked in, by the first trial that has them.
    pub(crate) findings: Vec<Recurring<'a>>,
}

/// One cause.
pub(crate) struct Recurring<'a> {
    /// The dearest of its kind.
    pub(crate) finding: &'a Finding,
    /// In how many trials of the variant.
    pub(crate) seen: usize,
}

/// The variants in the order of their first trial.
pub(crate) fn by_variant(outcome: &Outcome) -> Vec<VariantFindings<'_>> {
    let mut variants: Vec<VariantFindings<'_>> = Vec::new();
    for (index, evidence) in outcome.evidence.trials.iter().enumerate() {
        let trial = &evidence.trial;
        let position = variants.iter().position(|v| v.variant == trial.variant).unwrap_or_else(|| {
            variants.push(VariantFindings { variant: &trial.variant, trials: Vec::new(), findings: Vec::new() });
            variants.len() - 1
        });
        let findings = outcome.findings.get(index).map_or(&[][..], Vec::as_slice);
        if trial.state == TrialState::Done || !findings.is_empty() {
            variants[position].trials.push(index);
        }
        findings.iter().for_each(|finding| variants[position].add(finding));
    }
    variants
}

impl<'a> VariantFindings<'a> {
    fn add(&mut self, finding: &'a Finding) {
        let same = |other: &Finding| subject(other) == subject(finding);
        match self.findings.iter_mut().find(|known| same(known.finding)) {
            Some(known) => {
                known.seen = (known.seen + 1).min(self.trials.len());
                if finding.cost_share > known.finding.cost_share {
                    known.finding = finding;
                }
            }
            None => self.findings.push(Recurring { finding, seen: 1 }),
        }
    }

    /// `seen in 2 of 3 repetitions`; none when there was one repetition only.
    pub(crate) fn recurrence(&self, recurring: &Recurring<'_>) -> Option<String> {
        (self.trials.len() > 1).then(|| format!("seen in {} of {} repetitions", recurring.seen, self.trials.len()))
    }

    /// What to say in place of findings when there are none.
    pub(crate) fn nothing(&self) -> &'static str {
        if self.trials.is_empty() { "not measured" } else { "no finding" }
    }
}

/// What a finding is about: two findings with the same subject are one cause. Titles carry figures and are left out; of
/// the evidence its first line counts, which is the query in its general form.
fn subject(finding: &Finding) -> (&str, &str, Option<&str>, Option<&str>) {
    let evidence = finding.evidence_text.as_deref().and_then(|text| text.lines().next());
    (&finding.detector, &finding.resource, finding.operation.as_deref(), evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn repetitions_tell_a_cause_once() {
        let mut outcome = fixture::outcome();
        let mut again = outcome.evidence.trials[0].clone();
        again.trial.repetition = 2;
        outcome.evidence.trials.insert(1, again);
        let mut dearer = outcome.findings[0].clone();
        dearer.truncate(1);
        dearer[0].cost_share = 0.99;
        outcome.findings.insert(1, dearer);
        let variants = by_variant(&outcome);
        assert_eq!(
            variants.iter().map(|v| (v.variant, v.trials.len())).collect::<Vec<_>>(),
            [("as-is", 2), ("fixed", 1)]
        );
        let told: Vec<_> = variants[0].findings.iter().map(|f| (f.seen, f.finding.cost_share)).collect();
        assert_eq!(told, [(2, 0.99), (1, 0.12)]);
        assert_eq!(variants[0].recurrence(&variants[0].findings[1]).as_deref(), Some("seen in 1 of 2 repetitions"));
    }
}
