//! Published figures beside what was measured.
//!
//! A measured value is that of the operation the experiment names, or of the load, as its clients saw it, where it names none;
//! that of a figure with a part is about its service or scenario. Nothing is scaled, and what was not measured stays empty.
//! Of several repetitions it is the median.

use narrows_model::comparison::{ReplicaSummary, ServiceSummary, VariantSummary};
use narrows_model::counting;
use narrows_model::evidence::{LoadFigures, RunEvidence, TrialEvidence};
use narrows_model::operation::{CallSummary, OperationSummary};
use narrows_model::published::{Beside, BesideCell, Measure, Notes, Part, Published, PublishedFigure, Standing};

use crate::compare::metric;
use crate::stats::median;

/// A variant with each of its repetitions.
struct Variant<'a> {
    name: &'a str,
    repetitions: Vec<(&'a TrialEvidence, VariantSummary)>,
}

/// One row per published figure, in its order; empty when the experiment names none. A metric that is neither published
/// nor reported has no row.
pub(crate) fn beside(notes: &Notes, run: &RunEvidence) -> Vec<Beside> {
    let Some(published) = &notes.published else { return Vec::new() };
    let of_trial = |name, trial| (trial, super::summary(name, &[trial]));
    let variants = super::variants(run).into_iter().map(|(name, trials)| Variant {
        name,
        repetitions: trials.into_iter().map(|trial| of_trial(name, trial)).collect(),
    });
    let variants: Vec<Variant<'_>> = variants.collect();
    let rows = published.figures.iter().map(|figure| row(published, figure, run, &variants));
    rows.filter(|row| row.cells.iter().any(|cell| cell.published.is_some() || cell.measured.is_some())).collect()
}

fn row(published: &Published, figure: &PublishedFigure, run: &RunEvidence, variants: &[Variant<'_>]) -> Beside {
    let cell = |variant: &Variant<'_>| {
        let values = variant.repetitions.iter().filter_map(|(trial, summary)| match (&figure.metric, &figure.part) {
            (Some(name), _) => metric::measured(trial, name),
            (None, Some(Part::Scenario(name))) => of_scenario(figure.measure, name, trial),
            (None, Some(Part::Service(name))) => of_service(figure.measure, name, summary),
            (None, None) => measured(published, figure.measure, summary),
        });
        let values: Vec<f64> = values.collect();
        let range = [values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max)];
        BesideCell {
            variant: variant.name.to_owned(),
            published: of_variant(&figure.values, variant.name).copied(),
            ratio_to: of_variant(&published.ratio_to, variant.name).cloned(),
            standing: standing(published, figure, variant.name, variants),
            range: range[0].zip(range[1]).filter(|_| values.len() > 1).map(|(low, high)| [low, high]),
            measured: median(values),
        }
    };
    let cells = variants.iter().map(cell).collect();
    let metric = figure.metric.as_ref().map(|name| metric::titled(run, name));
    Beside { measure: figure.measure, metric, part: figure.part.clone(), cells, remark: figure.remark.clone() }
}

fn of_variant<'a, T>(values: &'a [(String, T)], variant: &str) -> Option<&'a T> {
    values.iter().find(|(name, _)| name == variant).map(|(_, value)| value)
}

/// Standing of a variant's measured value. A ratio to a fitted value is fitted.
fn standing(published: &Published, figure: &PublishedFigure, variant: &str, variants: &[Variant<'_>]) -> Standing {
    let fitted = |variant: &str| of_variant(&figure.fitted, variant);
    if let Some(by) = fitted(variant) {
        return Standing::Fitted(by.clone());
    }
    if let Some(by) = of_variant(&figure.given, variant) {
        return Standing::Given(by.clone());
    }
    if let Some(name) = &figure.restates {
        return Standing::Restated(name.clone());
    }
    let named = of_variant(&published.ratio_to, variant).map(String::as_str);
    let base = named.or(variants.first().map(|first| first.name)).filter(|_| figure.measure.is_compared_by_ratio());
    match base.and_then(|base| Some((base, fitted(base)?))) {
        Some((base, by)) => Standing::Fitted(format!("{by} of {base}")),
        None => Standing::Free,
    }
}

/// A figure of one repetition.
fn measured(published: &Published, measure: Measure, repetition: &VariantSummary) -> Option<f64> {
    let is_of_load = matches!(
        measure,
        Measure::Rate | Measure::Requests | Measure::Failed | Measure::ErrorRate | Measure::Cpu | Measure::Memory
    );
    if is_of_load || published.operation.is_none() {
        return of_load(measure, repetition);
    }
    of_operation(measure, operation(published, repetition)?)
}

/// Figures of all requests of the load; `None` for what only an operation has.
fn of_load(measure: Measure, variant: &VariantSummary) -> Option<f64> {
    match measure {
        Measure::Rate => variant.rate,
        Measure::Requests => Some(variant.requests as f64),
        Measure::Failed => Some(variant.errors as f64),
        Measure::ErrorRate => Some(variant.error_rate),
        Measure::Mean => variant.mean_ns,
        Measure::P50 => variant.p50_ns,
        Measure::P95 => variant.p95_ns,
        Measure::P99 => variant.p99_ns,
        Measure::Cpu => sum(variant, |service| Some(service.cpu_mean)),
        Measure::Memory => sum(variant, memory),
        Measure::Completed => Some(variant.requests.saturating_sub(variant.errors) as f64),
        Measure::CpuShare
        | Measure::RequestShare
        | Measure::Throttled
        | Measure::CallsPerOperation
        | Measure::AttemptsPerOperation
        | Measure::ChargePerOperation
        | Measure::Metric => None,
    }
}

/// A figure of all services together; none without services that were sampled.
fn sum(variant: &VariantSummary, of: fn(&ServiceSummary) -> Option<f64>) -> Option<f64> {
    variant.services.iter().filter_map(of).reduce(|a, b| a + b)
}

fn memory(service: &ServiceSummary) -> Option<f64> {
    service.memory_pss_mean.or(Some(service.memory_mean))
}

/// A figure of the requests of a scenario; `None` if the scenario sent none.
fn of_scenario(measure: Measure, scenario: &str, trial: &TrialEvidence) -> Option<f64> {
    let totals = counting::totals(trial.counted_rows(), |row| row.scenario == scenario);
    if totals.ended() == 0 {
        return None;
    }
    let load = LoadFigures::from(&totals);
    match measure {
        Measure::Rate => load.rate,
        Measure::Requests => Some(load.requests as f64),
        Measure::Failed => Some(load.failed as f64),
        Measure::ErrorRate => Some(totals.error_rate()),
        Measure::Mean => load.latency.mean_ns,
        Measure::P50 => load.latency.p50_ns,
        Measure::P95 => load.latency.p95_ns,
        Measure::P99 => load.latency.p99_ns,
        _ => None,
    }
}

/// A figure of one service; `None` if it was not sampled, or if a share has no base.
fn of_service(measure: Measure, service: &str, variant: &VariantSummary) -> Option<f64> {
    let service = variant.services.iter().find(|summary| summary.service == service)?;
    let largest = |of: fn(&ReplicaSummary) -> Option<f64>| service.replicas.iter().filter_map(of).reduce(f64::max);
    match measure {
        Measure::Cpu => Some(service.cpu_mean),
        Measure::Memory => memory(service),
        Measure::CpuShare => largest(|replica| Some(replica.cpu_mean / replica.cpu_limit_cores?)),
        Measure::RequestShare => {
            let all: f64 = service.replicas.iter().filter_map(|replica| replica.rate).sum();
            largest(|replica| replica.rate).map(|rate| rate / all).filter(|share| share.is_finite())
        }
        _ => None,
    }
}

fn of_operation(measure: Measure, operation: &OperationSummary) -> Option<f64> {
    let of_store = || operation.calls.iter().filter(|call| call.is_database);
    let sum = |value: fn(&CallSummary) -> f64| of_store().map(value).sum::<f64>();
    match measure {
        Measure::Rate
        | Measure::Requests
        | Measure::Failed
        | Measure::ErrorRate
        | Measure::Cpu
        | Measure::Memory
        | Measure::CpuShare
        | Measure::RequestShare
        | Measure::Metric => None,
        Measure::Mean => operation.if_completed(operation.mean_ns),
        Measure::P50 => operation.if_completed(operation.p50_ns),
        Measure::P95 => operation.if_completed(operation.p95_ns),
        Measure::P99 => operation.if_completed(operation.p99_ns),
        Measure::Completed => Some(operation.completed),
        Measure::Throttled => Some(sum(|call| call.throttled)),
        Measure::CallsPerOperation => Some(sum(|call| call.succeeded_per_operation)),
        Measure::AttemptsPerOperation => Some(sum(|call| call.attempts_per_operation)),
        Measure::ChargePerOperation => of_store().filter_map(|call| call.charge_per_operation).reduce(|a, b| a + b),
    }
}

/// The operation that the figures are about; without a service, the first of that name.
fn operation<'a>(published: &Published, variant: &'a VariantSummary) -> Option<&'a OperationSummary> {
    let name = published.operation.as_ref()?;
    let is_of_service = |summary: &OperationSummary| published.service.as_ref().is_none_or(|s| *s == summary.service);
    variant.operations.iter().find(|summary| summary.name == *name && is_of_service(summary))
}

#[cfg(test)]
mod tests {
    use narrows_model::evidence::TrialEvidence;
    use narrows_testkit::operations::{operation, store_calls};
    use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

    use super::*;

    fn trial(variant: &str, repetition: u32, attempts: (f64, f64)) -> TrialEvidence {
        let mut utilization = operation("drones", "GET /utilization", 10, 20.0, 500.0);
        utilization.calls = vec![store_calls("query", std::iter::repeat_n((attempts.0, attempts.1, 580.0), 10))];
        let load = Load { vus: 10, rate: 20.0, latency_ms: 510.0 };
        TrialBuilder::new(variant).repetition(repetition).steady(10, load).operation(utilization).build()
    }

    fn notes(operation: Option<&str>) -> Notes {
        let figure = |measure, value| PublishedFigure {
            measure,
            metric: None,
            part: None,
            values: vec![("a".to_owned(), value)],
            fitted: Vec::new(),
            given: Vec::new(),
            restates: None,
            remark: "Elsewhere.".into(),
        };
        let published = Published {
            source: "A journal".into(),
            service: Some("drones".into()),
            operation: operation.map(str::to_owned),
            found: String::new(),
            conclusions: Vec::new(),
            ratio_to: vec![("b".to_owned(), "a".to_owned())],
            figures: Measure::ALL.map(|measure| figure(measure, 7.0)).into(),
        };
        Notes { published: Some(published), ..Notes::default() }
    }

    #[test]
    fn every_measure_finds_its_value() {
        let run =
            run_of_trials([trial("a", 1, (180.0, 20.0)), trial("a", 2, (180.0, 40.0)), trial("b", 1, (20.0, 0.0))]);
        let rows = beside(&notes(Some("GET /utilization")), &run);
        let value = |measure: Measure, at: usize| {
            let cell = &rows.iter().find(|row| row.measure == measure).unwrap().cells[at];
            (cell.published, cell.measured)
        };
        for (measure, a, b) in [
            (Measure::Rate, 20.0, 20.0),
            (Measure::Requests, 200.0, 200.0),
            (Measure::Failed, 0.0, 0.0),
            (Measure::ErrorRate, 0.0, 0.0),
            (Measure::Mean, 500e6, 500e6),
            (Measure::Completed, 200.0, 200.0),
            (Measure::Throttled, 300.0, 0.0),
            (Measure::CallsPerOperation, 9.0, 1.0),
            (Measure::AttemptsPerOperation, 10.5, 1.0),
            (Measure::ChargePerOperation, 29.0, 29.0),
        ] {
            assert_eq!((value(measure, 0), value(measure, 1)), ((Some(7.0), Some(a)), (None, Some(b))), "{measure:?}");
        }
        assert!(value(Measure::P99, 0).1.is_some_and(|p99| (p99 / 500e6 - 1.0).abs() < 0.01));
        assert_eq!((rows.len(), rows[0].remark.as_str()), (Measure::ALL.len(), "Elsewhere."));
        let throttled = rows.iter().find(|row| row.measure == Measure::Throttled).unwrap();
        assert_eq!((throttled.cells[0].range, throttled.cells[1].range), (Some([200.0, 400.0]), None));
    }

    #[test]
    fn a_ratio_to_a_fitted_value_is_fitted_and_what_is_given_or_restated_is_not_free() {
        let run = run_of_trials(["a", "b", "c"].map(|variant| trial(variant, 1, (180.0, 20.0))));
        let mut notes = notes(None);
        for figure in notes.published.iter_mut().flat_map(|published| &mut published.figures) {
            match figure.measure {
                Measure::Mean | Measure::Requests => figure.fitted = vec![("a".into(), "cpus".into())],
                Measure::P50 => figure.given = vec![("c".into(), "partitions".into())],
                Measure::P95 => figure.restates = Some("p50".into()),
                _ => {}
            }
        }
        let rows = beside(&notes, &run);
        let standings = |measure| {
            let row = rows.iter().find(|row| row.measure == measure).unwrap();
            row.cells.iter().map(|cell| cell.standing.clone()).collect::<Vec<_>>()
        };
        let fitted = |by: &str| Standing::Fitted(by.to_owned());
        assert_eq!(standings(Measure::Mean), [fitted("cpus"), fitted("cpus of a"), fitted("cpus of a")]);
        assert_eq!(
            standings(Measure::Requests),
            [fitted("cpus"), Standing::Free, Standing::Free],
            "counts have no base"
        );
        assert_eq!(standings(Measure::P50), [Standing::Free, Standing::Free, Standing::Given("partitions".into())]);
        assert!(standings(Measure::P95).iter().all(|one| *one == Standing::Restated("p50".into())));
    }

    #[test]
    fn without_an_operation_it_is_the_load() {
        let run = run_of_trials([trial("a", 1, (180.0, 20.0)), trial("a", 2, (180.0, 20.0))]);
        let rows = beside(&notes(None), &run);
        let value = |measure| rows.iter().find(|row| row.measure == measure).unwrap().cells[0].measured;
        let mean = value(Measure::Mean).unwrap();
        assert!((mean / 510e6 - 1.0).abs() < 0.01, "{mean}");
        assert_eq!((value(Measure::Completed), value(Measure::Throttled)), (Some(200.0), None));
    }

    #[test]
    fn a_figure_with_a_part_is_of_its_scenario_or_its_service() {
        let load = Load { vus: 10, rate: 20.0, latency_ms: 510.0 };
        let mut trial = TrialBuilder::new("a")
            .service("database", Some(0.5))
            .service("database", Some(0.5))
            .steady(10, load)
            .cpu("database", 0, |_| 0.1)
            .cpu("database", 1, |_| 0.4)
            .build();
        let scenario = trial.seconds[0].scenario.clone();
        let mut writes = trial.seconds.clone();
        writes.iter_mut().for_each(|row| "writes".clone_into(&mut row.scenario));
        trial.seconds.extend(writes);
        let run = run_of_trials([trial]);
        let value = |measure: Measure, part: Part| {
            let mut notes = notes(None);
            let figures = &mut notes.published.as_mut().unwrap().figures;
            figures.retain(|figure| figure.measure == measure);
            figures[0].part = Some(part);
            beside(&notes, &run)[0].cells[0].measured
        };
        let of_service = |measure, name: &str| value(measure, Part::Service(name.to_owned()));
        // The share is that of the replica nearest to its limit, the cores are those of both.
        for (measure, expected) in [(Measure::CpuShare, 0.8), (Measure::Cpu, 0.5)] {
            let measured = of_service(measure, "database");
            assert!(measured.is_some_and(|value| (value - expected).abs() < 1e-9), "{measure:?}: {measured:?}");
        }
        assert_eq!((of_service(Measure::Cpu, "web"), of_service(Measure::RequestShare, "database")), (None, None));
        let of_scenario = |measure, name: &str| value(measure, Part::Scenario(name.to_owned()));
        for (name, requests) in [("writes", Some(200.0)), (scenario.as_str(), Some(200.0)), ("reads", None)] {
            assert_eq!(of_scenario(Measure::Requests, name), requests, "{name}");
        }
        assert_eq!(of_scenario(Measure::Rate, "writes"), Some(20.0));
        assert!(of_scenario(Measure::Mean, "writes").is_some_and(|mean| (mean / 510e6 - 1.0).abs() < 0.01));
    }

    #[test]
    fn what_was_not_measured_stays_empty() {
        let run = run_of_trials([trial("a", 1, (180.0, 20.0))]);
        let rows = beside(&notes(Some("GET /other")), &run);
        let measured: Vec<Option<f64>> = rows.iter().map(|row| row.cells[0].measured).collect();
        assert_eq!(measured[..4], [Some(20.0), Some(200.0), Some(0.0), Some(0.0)]);
        assert_eq!(measured[4..], [None; 14]);
        assert_eq!(beside(&Notes::default(), &run), []);
        let mut neither = notes(None);
        for figure in neither.published.iter_mut().flat_map(|published| &mut published.figures) {
            figure.metric = Some("cache.hit_ratio".to_owned());
            figure.values.clear();
        }
        assert_eq!(beside(&neither, &run), []);
    }
}
