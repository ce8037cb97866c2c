//! Published conclusions, each judged by what a run measured and what Narrows found in it.

use narrows_diagnose::words::InWords;
use narrows_model::comparison::Outcome;
use narrows_model::finding::{Finding, FindingKind};
use narrows_model::published::{Beside, BesideCell, Conclusion, Condition, Measure, Part, Subject, figure_name};
use narrows_model::units;

use crate::bottleneck::{Bottleneck, bottlenecks};
use crate::measures;
use crate::recurring::{self, VariantFindings};
use crate::section::{Cell, Column, Row, Table};

/// A published conclusion and whether a run comes to it too.
pub(crate) struct Judged<'a> {
    pub(crate) conclusion: &'a Conclusion,
    /// Whether it comes back; `None` if a variant or a figure that it is about was not measured.
    pub(crate) comes_back: Option<bool>,
    /// Conditions as the run shows them: every one, or only those that are not true.
    pub(crate) shown: Vec<String>,
}

/// State of a condition in a run.
struct Shown {
    is_true: Option<bool>,
    text: String,
}

/// The conclusions of an experiment in the order of its file.
pub(crate) fn judged(outcome: &Outcome) -> Vec<Judged<'_>> {
    let Some(published) = &outcome.notes.published else { return Vec::new() };
    if published.conclusions.is_empty() {
        return Vec::new();
    }
    let run = Run { outcome, bottlenecks: bottlenecks(outcome), findings: recurring::by_variant(outcome) };
    published.conclusions.iter().map(|conclusion| run.judge(conclusion)).collect()
}

/// A line for each conclusion; `None` without any.
pub(crate) fn table(judged: &[Judged<'_>]) -> Option<Table> {
    let columns = vec![Column::left("published conclusion"), Column::left("comes back?"), Column::left("because")];
    let row = |one: &Judged<'_>| {
        let because = one.conclusion.because.trim_end_matches('.');
        let because = [one.shown.join("; "), because.to_owned()];
        let because: Vec<String> = because.into_iter().filter(|text| !text.is_empty()).collect();
        let comes_back = match one.comes_back {
            Some(true) => "✓ yes",
            Some(false) => "✗ no",
            None => "not measured",
        };
        Row::new([
            Cell::from(one.conclusion.claim.clone()),
            Cell::from(comes_back.to_owned()),
            because.join(". ").into(),
        ])
    };
    (!judged.is_empty()).then(|| Table::new(columns, judged.iter().map(row).collect()))
}

/// A run with what was concluded of its variants.
struct Run<'a> {
    outcome: &'a Outcome,
    bottlenecks: Vec<Bottleneck<'a>>,
    findings: Vec<VariantFindings<'a>>,
}

impl Run<'_> {
    fn judge<'a>(&self, conclusion: &'a Conclusion) -> Judged<'a> {
        let all: Vec<Shown> = conclusion.holds.iter().map(|condition| self.condition(condition)).collect();
        let comes_back = if all.iter().any(|one| one.is_true == Some(false)) {
            Some(false)
        } else {
            all.iter().all(|one| one.is_true.is_some()).then_some(true)
        };
        let is_shown = |one: &Shown| comes_back == Some(true) || one.is_true != Some(true);
        let shown = all.into_iter().filter(is_shown).map(|one| one.text).collect();
        Judged { conclusion, comes_back, shown }
    }

    fn condition(&self, condition: &Condition) -> Shown {
        let variant = condition.variant.as_str();
        match &condition.subject {
            Subject::Bottleneck(kind) => self.bottleneck(variant, *kind),
            Subject::Finding(kind) => self.finding(variant, *kind),
            Subject::Figure { name, to, at_least, at_most, larger_than_to } => {
                let shown = self.figure(variant, name, to.as_deref(), [*at_least, *at_most]);
                let steps =
                    to.iter().flat_map(|to| larger_than_to.iter().map(move |other| [to, variant, other.as_str()]));
                steps.fold(shown, |shown, step| self.beside(shown, name, step))
            }
        }
    }

    fn bottleneck(&self, variant: &str, kind: FindingKind) -> Shown {
        let Some(found) = self.bottlenecks.iter().find(|one| one.variant == variant) else { return not_run(variant) };
        Shown { is_true: Some(found.kind == Some(kind)), text: format!("{variant}: {}", found.what) }
    }

    fn finding(&self, variant: &str, kind: FindingKind) -> Shown {
        let Some(all) = self.findings.iter().find(|one| one.variant == variant && !one.trials.is_empty()) else {
            return not_run(variant);
        };
        let with_effects = all.findings.iter().flat_map(|one| std::iter::once(one.finding).chain(&one.finding.effects));
        let found: Option<&Finding> = with_effects.into_iter().find(|one| one.kind() == kind);
        let text = found.map_or_else(|| format!("no {}", kind.id()), |one| one.title());
        Shown { is_true: Some(found.is_some()), text: format!("{variant}: {text}") }
    }

    /// The figure of this name over the variants.
    fn row(&self, name: &str) -> Option<&Beside> {
        let named = |row: &&Beside| match row.measure {
            Measure::Metric => row.metric.as_deref().is_some_and(|titled| is_metric(titled, name)),
            measure => figure_name(measure.as_str(), row.part.as_ref().map(Part::name)) == name,
        };
        self.outcome.beside.iter().find(named)
    }

    /// A condition that also holds only if the first step of a figure, between two variants, is larger than the next one.
    fn beside(&self, shown: Shown, name: &str, [from, variant, other]: [&str; 3]) -> Shown {
        let value = |variant: &str| measured(self.row(name)?, variant);
        let (Some(from_value), Some(value), Some(other_value)) = (value(from), value(variant), value(other)) else {
            return Shown { is_true: shown.is_true.filter(|is_true| !is_true), ..not_run(other) };
        };
        let is_larger = (from_value - value).abs() > (value - other_value).abs();
        let text =
            format!("{}, {} step than on to {other}", shown.text, if is_larger { "a larger" } else { "no larger" });
        Shown { is_true: shown.is_true.map(|is_true| is_true && is_larger), text }
    }

    fn figure(&self, variant: &str, name: &str, to: Option<&str>, [at_least, at_most]: [Option<f64>; 2]) -> Shown {
        let row = self.row(name);
        let measured = |variant: &str| row.and_then(|row| measured(row, variant));
        let (Some(row), Some(value)) = (row, measured(variant)) else { return not_run(variant) };
        let subject = format!("{} of {variant}", measures::name(row));
        let Some(to) = to else {
            return bounded(value, [at_least, at_most], |value| measures::value(row.measure, Some(value)), &subject);
        };
        let Some(base) = measured(to).filter(|base| *base > 0.0) else { return not_run(to) };
        let shown = |ratio| format!("×{}", units::three(ratio));
        bounded(value / base, [at_least, at_most], shown, &format!("{subject} to {to}"))
    }
}

/// Measured value of a variant.
fn measured(row: &Beside, variant: &str) -> Option<f64> {
    let is_of_variant = |cell: &&BesideCell| cell.variant == variant;
    row.cells.iter().find(is_of_variant)?.measured.filter(|value| value.is_finite())
}

/// Whether a metric's title, which may have a unit behind it, is that of the metric.
fn is_metric(titled: &str, name: &str) -> bool {
    titled.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}

fn not_run(variant: &str) -> Shown {
    Shown { is_true: None, text: format!("{variant} was not measured") }
}

/// A value beside its bounds; the one that it misses is named.
fn bounded(value: f64, [at_least, at_most]: [Option<f64>; 2], shown: impl Fn(f64) -> String, subject: &str) -> Shown {
    let below = at_least.filter(|least| value < *least).map(|least| format!(", not at least {}", shown(least)));
    let above = at_most.filter(|most| value > *most).map(|most| format!(", not at most {}", shown(most)));
    let missed = below.or(above);
    let is_true = missed.is_none();
    Shown { is_true: Some(is_true), text: format!("{subject} {}{}", shown(value), missed.unwrap_or_default()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;

    fn outcome(conditions: Vec<(&str, Subject)>) -> Outcome {
        let mut outcome = drones::outcome();
        let condition = |(variant, subject): (&str, Subject)| Condition { variant: variant.to_owned(), subject };
        let holds = conditions.into_iter().map(condition).collect();
        let conclusion = Conclusion { claim: "It throttles.".to_owned(), holds, because: "900 units.".to_owned() };
        outcome.notes.published.as_mut().unwrap().conclusions = vec![conclusion];
        outcome
    }

    fn rate(to: Option<&str>, at_least: Option<f64>, at_most: Option<f64>) -> Subject {
        Subject::Figure {
            name: "rate".to_owned(),
            to: to.map(str::to_owned),
            at_least,
            at_most,
            larger_than_to: Vec::new(),
        }
    }

    fn of(conditions: Vec<(&str, Subject)>) -> (Option<bool>, String) {
        let outcome = outcome(conditions);
        let judged = judged(&outcome);
        (judged[0].comes_back, judged[0].shown.join("; "))
    }

    #[test]
    fn a_conclusion_comes_back_where_all_its_conditions_are_true() {
        let throttling = || ("baseline", Subject::Bottleneck(FindingKind::Throttling));
        let (comes_back, shown) = of(vec![throttling(), ("parallel", rate(Some("baseline"), Some(2.0), None))]);
        assert_eq!(comes_back, Some(true), "{shown}");
        assert!(
            shown.starts_with("baseline: ") && shown.ends_with("; throughput of parallel to baseline ×2.85"),
            "{shown}"
        );
        let missed = "throughput of parallel to baseline ×2.85, not at most ×2.50";
        let beside = of(vec![throttling(), ("parallel", rate(Some("baseline"), Some(2.0), Some(2.5)))]);
        assert_eq!(beside, (Some(false), missed.to_owned()));
        let (comes_back, shown) = of(vec![("partition-key", Subject::Bottleneck(FindingKind::Throttling))]);
        assert!(comes_back == Some(false) && shown.starts_with("partition-key: "), "{shown}");
        let (comes_back, shown) = of(vec![("baseline", Subject::Finding(FindingKind::MemoryGrowth))]);
        assert_eq!((comes_back, shown.as_str()), (Some(false), "baseline: no memory-growth"));
        assert_eq!(of(vec![("baseline", rate(None, Some(20.0), Some(30.0)))]).0, Some(true));
        let mut outcome = outcome(vec![("baseline", Subject::Finding(FindingKind::MemoryGrowth))]);
        outcome.findings[0][0].effects.push(Finding::new(FindingKind::MemoryGrowth, 1));
        assert_eq!(judged(&outcome)[0].comes_back, Some(true), "an effect of another finding");
    }

    #[test]
    fn what_was_not_measured_is_no_denial() {
        let unknown = ("test-9", rate(Some("baseline"), Some(1.0), None));
        assert_eq!(of(vec![unknown.clone()]), (None, "test-9 was not measured".to_owned()));
        let false_beside = ("parallel", rate(Some("baseline"), None, Some(1.0)));
        assert_eq!(of(vec![unknown, false_beside]).0, Some(false), "one condition that is not true decides");
    }

    #[test]
    fn the_table_has_what_the_run_shows_and_what_its_authors_say() {
        let outcome = outcome(vec![("baseline", rate(None, Some(20.0), None))]);
        let table = table(&judged(&outcome)).unwrap();
        let cells = &table.groups[0].rows[0].cells;
        let expected = ["It throttles.", "✓ yes", "throughput of baseline 26.0/s. 900 units"];
        assert_eq!(cells[..], expected.map(|text| Cell::from(text.to_owned())));
        assert!(super::table(&judged(&drones::outcome())).is_none());
    }
}
