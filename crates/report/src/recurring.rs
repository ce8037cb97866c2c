//! The findings of a variant's repetitions, each cause reported once.
//!
//! Two findings are one cause when detector, resource, operation and query agree; the dearest of them speaks for all, and the
//! report shows in how many repetitions it was seen.

use narrows_diagnose::words::{self, InWords};
use narrows_model::comparison::Outcome;
use narrows_model::finding::{Finding, FindingKind, Role, Wording};
use narrows_model::run::TrialState;
use narrows_model::units;

/// Findings of one variant.
pub(crate) struct VariantFindings<'a> {
    pub(crate) variant: &'a str,
    /// Trials of the variant that were measured, as indices into the outcome's trials.
    pub(crate) trials: Vec<usize>,
    /// In the order they were ranked in, by the first trial that has them.
    pub(crate) findings: Vec<RecurringFinding<'a>>,
}

/// One cause.
pub(crate) struct RecurringFinding<'a> {
    /// The dearest of its kind.
    pub(crate) finding: &'a Finding,
    /// Its role in the variant: only the first narrow place of its trials is that of the variant.
    pub(crate) role: Role,
    /// Start of its trial's load, nanoseconds since the Unix epoch.
    begins_ns: i64,
    /// In how many trials of the variant.
    pub(crate) seen: usize,
    /// All findings of its trial.
    of_trial: &'a [Finding],
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
        let begins_ns = evidence.windows.first().map(|window| window.start_ns).or(trial.started_ns).unwrap_or(0);
        findings.iter().for_each(|finding| variants[position].add(finding, findings, begins_ns));
    }
    variants
}

impl<'a> VariantFindings<'a> {
    fn add(&mut self, finding: &'a Finding, of_trial: &'a [Finding], begins_ns: i64) {
        let has_narrow = self.findings.iter().any(|known| known.role == Role::NarrowPlace);
        let role = match finding.role {
            Role::NarrowPlace if has_narrow => Role::InTheWay,
            role => role,
        };
        let same = |other: &Finding| subject(other) == subject(finding);
        match self.findings.iter_mut().find(|known| same(known.finding)) {
            Some(known) => {
                known.seen = (known.seen + 1).min(self.trials.len());
                if role == Role::NarrowPlace {
                    known.role = role;
                }
                if finding.cost_share > known.finding.cost_share {
                    (known.finding, known.of_trial, known.begins_ns) = (finding, of_trial, begins_ns);
                }
            }
            None => self.findings.push(RecurringFinding { finding, role, begins_ns, seen: 1, of_trial }),
        }
    }

    /// `seen in 2 of 3 repetitions`; `None` if there was one repetition only.
    pub(crate) fn recurrence(&self, recurring: &RecurringFinding<'_>) -> Option<String> {
        (self.trials.len() > 1).then(|| format!("seen in {} of {} repetitions", recurring.seen, self.trials.len()))
    }

    /// Text in place of findings if there are none.
    pub(crate) fn nothing(&self) -> &'static str {
        if self.trials.is_empty() { "not measured" } else { "no finding" }
    }
}

impl RecurringFinding<'_> {
    pub(crate) fn wording(&self) -> Wording {
        self.finding.wording(self.of_trial)
    }

    /// Its role in its trial, if that has to be stated.
    pub(crate) fn place(&self) -> Option<&'static str> {
        match self.role {
            Role::NarrowPlace => Some("▶ the narrow place"),
            Role::Invalidates => Some("about the experiment: the figures are not the system's"),
            Role::LimitsReading => Some("about the experiment, not the system"),
            Role::CostsMore => Some("costs more than needed; not the bottleneck yet"),
            Role::InTheWay => None,
        }
    }

    /// The part of the trial that it was seen in: `“40 users”, 10.0 s from 32.0 s on`; `None` if it holds for all.
    pub(crate) fn period(&self) -> Option<String> {
        let period = self.finding.period.as_ref()?;
        let length_ns = period.end_ns.saturating_sub(period.start_ns).max(0);
        let from_ns = period.start_ns.saturating_sub(self.begins_ns).max(0);
        let (length, from) = (units::duration(length_ns as f64), units::duration(from_ns as f64));
        Some(format!("{}, {length} from {from} on", period.label))
    }
}

/// An effect in one line, with its cost and how sure it is, and why it is one.
pub(crate) fn effect(finding: &Finding, wording: &Wording) -> (String, String) {
    let cost = format!("{} {}", units::percent(finding.cost_share), wording.cost_of);
    let line = format!("{} ({cost}, {} confidence)", wording.title, finding.confidence.as_str());
    (line, wording.reasons.last().cloned().unwrap_or_default())
}

/// Predicted gains of the changes that a finding and its effects suggest, each change once, one line each.
pub(crate) fn gains(finding: &Finding) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for gain in std::iter::once(finding).chain(&finding.effects).filter_map(|one| one.gain.as_ref()) {
        let line = words::gain(gain);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Subject of a finding: two findings with the same subject are one cause. Titles carry figures and are left out; of
/// the evidence its first line counts, which is the query in its general form.
fn subject(finding: &Finding) -> (FindingKind, &str, Option<&str>, Option<String>) {
    let evidence = finding.evidence_text().and_then(|text| text.lines().next().map(str::to_owned));
    (finding.kind(), &finding.resource, finding.operation.as_deref(), evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_part_of_a_trial_is_reported_from_where_its_load_began() {
        let outcome = fixture::outcome();
        let findings = &by_variant(&outcome)[0].findings;
        assert_eq!(findings[0].period(), None);
        assert_eq!(findings[1].period().as_deref(), Some("“8 users”, 1 min 0 s from 10.0 s on"));
        assert_eq!((findings[0].place(), findings[1].place()), (Some("▶ the narrow place"), None));
    }

    #[test]
    fn a_variant_has_one_narrow_place() {
        let mut outcome = fixture::outcome();
        outcome.evidence.trials[1].trial.variant = "as-is".to_owned();
        let mut other = outcome.findings[0].clone();
        other.reverse();
        (other[0].role, other[1].role) = (Role::NarrowPlace, Role::InTheWay);
        outcome.findings[1] = other;
        let places = |outcome: &Outcome| {
            let variants = by_variant(outcome);
            variants[0].findings.iter().map(|found| found.role == Role::NarrowPlace).collect::<Vec<_>>()
        };
        assert_eq!(places(&outcome), [true, false]);
        outcome.findings[0][0].role = Role::InTheWay;
        assert_eq!(places(&outcome), [false, true]);
    }

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
