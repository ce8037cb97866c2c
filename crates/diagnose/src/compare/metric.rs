//! The value that a metric of a service had in a trial, for published figures of one.
//!
//! It is the median of its points from the beginning of the load to its end, over all services; the
//! value of a gauge that is reported again and again therefore counts by how long it held.

use narrows_model::evidence::{RunEvidence, TrialEvidence, Usage};
use narrows_model::run::WindowKind;
use narrows_model::series::Series;

/// A metric's name and its unit, such as `hello.time (s)`. UCUM's annotations, such as `{event}`, are no units.
pub(crate) fn titled(run: &RunEvidence, name: &str) -> String {
    let unit = run.trials.iter().flat_map(|trial| of_name(trial, name)).map(|series| series.key.unit.as_str()).next();
    match unit {
        Some(unit) if !unit.is_empty() && !unit.contains('{') && unit != "1" => format!("{name} ({unit})"),
        _ => name.to_owned(),
    }
}

/// The median of a metric in a trial; `None` if no service reported it under load.
pub(crate) fn measured(trial: &TrialEvidence, name: &str) -> Option<f64> {
    let usage = Usage::from_values(under_load(trial, name).collect());
    (usage.points > 0).then_some(usage.p50)
}

fn under_load<'a>(trial: &'a TrialEvidence, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    let counted = trial.windows.iter().filter(|window| window.kind != WindowKind::Warmup);
    let from = counted.clone().map(|window| window.start_ns).min();
    let to = counted.map(|window| window.end_ns).max();
    let bounds = from.zip(to).unwrap_or((0, 0));
    let points = of_name(trial, name).flat_map(|series| &series.points);
    points.filter(move |point| (bounds.0..=bounds.1).contains(&point.time_ns)).map(|point| point.value)
}

fn of_name<'a>(trial: &'a TrialEvidence, name: &'a str) -> impl Iterator<Item = &'a Series> {
    trial.series.iter().filter(move |series| series.key.name == name)
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::{Load, TrialBuilder, run_of_trials};

    use super::*;

    fn trial(variant: &str, repetition: u32, value: f64) -> TrialEvidence {
        let load = Load { vus: 1, rate: 1.0, latency_ms: 10.0 };
        TrialBuilder::new(variant)
            .repetition(repetition)
            .warmup(2, load)
            .steady(3, load)
            .series("hello.time", "hub", 0, move |second| if second < 2 { 1000.0 } else { value })
            .build()
    }

    #[test]
    fn it_is_the_median_without_warm_up() {
        let trial = trial("a", 1, 5.0);
        assert_eq!(measured(&trial, "hello.time"), Some(5.0));
        assert_eq!(measured(&trial, "hello.events"), None);
    }

    #[test]
    fn a_title_says_the_unit_where_there_is_one() {
        let mut run = run_of_trials([trial("a", 1, 5.0)]);
        for (unit, title) in [
            ("s", "hello.time (s)"),
            ("By", "hello.time (By)"),
            ("{event}/s", "hello.time"),
            ("1", "hello.time"),
            ("", "hello.time"),
        ] {
            run.trials[0].series.iter_mut().for_each(|series| unit.clone_into(&mut series.key.unit));
            assert_eq!(titled(&run, "hello.time"), title);
        }
        assert_eq!(titled(&run, "hello.events"), "hello.events");
    }
}
