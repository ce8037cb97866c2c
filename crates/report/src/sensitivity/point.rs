//! Figures of a run that are compared with those of runs with another value of a parameter.

use narrows_model::comparison::{Outcome, VariantSummary};
use narrows_model::published::{Beside, Measure};
use narrows_model::sensitivity::{Point, PointConclusion, PointFigure, PointOfVariant};

use crate::bottleneck::bottlenecks;
use crate::conclusions::{Judged, judged};
use crate::measures;

/// The bottlenecks of a run, the published conclusions judged by it, and its figures that can be compared between variants:
/// those that are published, or else throughput and mean latency.
pub fn point(outcome: &Outcome) -> Point {
    let all = bottlenecks(outcome);
    let named = |variant: &str| all.iter().find(|one| one.variant == variant).map_or("", |one| &one.name).to_owned();
    let variants = outcome
        .comparison
        .variants
        .iter()
        .map(|summary| PointOfVariant { variant: summary.variant.clone(), bottleneck: named(&summary.variant) });
    let run = &outcome.evidence.run;
    Point {
        started_ns: run.started_ns,
        machine: run.environment.clone(),
        variants: variants.collect(),
        figures: if outcome.beside.is_empty() { of_load(outcome) } else { published(&outcome.beside) },
        conclusions: judged(outcome).into_iter().map(conclusion).collect(),
    }
}

fn conclusion(judged: Judged<'_>) -> PointConclusion {
    let instead = if judged.comes_back == Some(true) { String::new() } else { judged.shown.join("; ") };
    PointConclusion { claim: judged.conclusion.claim.clone(), comes_back: judged.comes_back, instead }
}

/// Counts are left out, because they grow with the length of a run; shares of failures, because most are zero.
fn published(rows: &[Beside]) -> Vec<PointFigure> {
    let is_compared = |row: &&Beside| {
        let is_count = matches!(
            row.measure,
            Measure::Requests | Measure::Failed | Measure::Completed | Measure::Throttled | Measure::ErrorRate
        );
        !is_count && row.cells.iter().any(|cell| cell.measured.is_some())
    };
    let figure = |row: &Beside| PointFigure {
        name: measures::name(row),
        values: row.cells.iter().map(|cell| cell.measured).collect(),
        fitted: row.cells.iter().map(|cell| cell.standing.is_fitted()).collect(),
        bases: (0..row.cells.len()).map(|at| measures::base_at(row, at).unwrap_or(at)).collect(),
    };
    rows.iter().filter(is_compared).map(figure).collect()
}

fn of_load(outcome: &Outcome) -> Vec<PointFigure> {
    let variants = &outcome.comparison.variants;
    let figure = |name: &str, of: fn(&VariantSummary) -> Option<f64>| PointFigure {
        name: name.to_owned(),
        values: variants.iter().map(&of).collect(),
        fitted: vec![false; variants.len()],
        bases: vec![0; variants.len()],
    };
    vec![figure("throughput", |variant| variant.rate), figure("mean duration", |variant| variant.mean_ns)]
}

#[cfg(test)]
mod tests {
    use narrows_model::finding::FindingKind;
    use narrows_model::published::{Conclusion, Condition, Standing, Subject};

    use super::*;
    use crate::fixture::{self, drones};

    #[test]
    fn published_figures_are_compared_except_counts() {
        let mut outcome = drones::outcome();
        outcome.beside[1].cells[2].standing = Standing::Fitted("store_delay_ms".to_owned());
        let point = point(&outcome);
        let names: Vec<&str> = point.figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["throughput", "mean duration", "calls per operation", "RU per operation"]);
        assert_eq!(point.figures[1].fitted, [false, false, true, false]);
        assert_eq!(point.variants[0].bottleneck, "throttling at azure.cosmosdb");
        assert_eq!(point.variants[3].variant, "partition-key");
    }

    #[test]
    fn published_conclusions_are_judged_by_the_run() {
        let mut outcome = drones::outcome();
        let conclusion = |kind: FindingKind| {
            let holds = vec![Condition { variant: "baseline".to_owned(), subject: Subject::Bottleneck(kind) }];
            Conclusion { claim: kind.id().to_owned(), holds, because: "So it was.".to_owned() }
        };
        outcome.notes.published.as_mut().unwrap().conclusions =
            [FindingKind::Throttling, FindingKind::SlowQuery].map(conclusion).to_vec();
        let conclusions = point(&outcome).conclusions;
        let expected =
            PointConclusion { claim: "throttling".to_owned(), comes_back: Some(true), instead: String::new() };
        assert_eq!(conclusions[0], expected);
        assert_eq!((conclusions[1].claim.as_str(), conclusions[1].comes_back), ("slow-query", Some(false)));
        assert!(conclusions[1].instead.starts_with("baseline: "), "{}", conclusions[1].instead);
    }

    #[test]
    fn without_published_figures_throughput_and_mean_are_compared() {
        let point = point(&fixture::outcome());
        let names: Vec<&str> = point.figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["throughput", "mean duration"]);
        assert!(point.figures[0].ratio_to_base(1).is_some_and(|ratio| ratio > 4.0));
        assert!(point.conclusions.is_empty());
    }
}
