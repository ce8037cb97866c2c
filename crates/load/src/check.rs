//! What a plan must not say. Templates are checked where they are compiled.

use std::time::Duration;

use narrows_model::load::{DataSource, DataValues, LoadModel, LoadPlan, Scenario};

use crate::Error;

/// The most virtual users of one scenario.
pub const VUS_MAX: u32 = 1_000_000;
/// The most load threads.
pub const THREADS_MAX: usize = 1024;

/// Checks all of a plan but its templates.
pub(crate) fn check(plan: &LoadPlan) -> Result<(), Error> {
    require(!plan.targets.is_empty(), "targets", || "there is none, expected at least one".into())?;
    require(!plan.scenarios.is_empty(), "scenarios", || "there is none, expected at least one".into())?;
    require(plan.timeout > Duration::ZERO, "timeout", || "it is 0, expected more".into())?;
    require((1..=THREADS_MAX).contains(&plan.threads), "threads", || {
        format!("{}, expected 1 to {THREADS_MAX}", plan.threads)
    })?;
    if let Some(tracing) = plan.tracing {
        require((0.0..=1.0).contains(&tracing.sample), "tracing", || {
            format!("sampled share {}, expected 0 to 1", tracing.sample)
        })?;
    }
    plan.scenarios.iter().try_for_each(check_scenario)?;
    plan.data.iter().try_for_each(check_data)
}

fn check_scenario(scenario: &Scenario) -> Result<(), Error> {
    let place = format!("scenario {}", scenario.name);
    let (vus, least) = match &scenario.model {
        LoadModel::ConstantVus { vus, .. } | LoadModel::SharedIterations { vus, .. } => (*vus, 1),
        LoadModel::RampingVus { start_vus, stages } => {
            require(!stages.is_empty(), &place, || "no stage, expected at least one".into())?;
            (stages.iter().map(|stage| stage.target).fold(*start_vus, u32::max), 0)
        }
    };
    require((least..=VUS_MAX).contains(&vus), &place, || format!("{vus} users, expected {least} to {VUS_MAX}"))
}

fn check_data(source: &DataSource) -> Result<(), Error> {
    let place = format!("data {}", source.name);
    match &source.values {
        DataValues::Integers { from, to } => require(from <= to, &place, || format!("from {from} is above to {to}")),
        DataValues::Rows { rows, .. } => {
            require(!rows.is_empty(), &place, || "no row, expected at least one".into())?;
            let uneven = rows.iter().position(|row| row.len() != rows[0].len());
            require(uneven.is_none(), &place, || {
                format!("row {} has other columns than the first", uneven.unwrap_or(0) + 1)
            })
        }
    }
}

fn require(holds: bool, place: &str, problem: impl FnOnce() -> String) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::plan(place, problem())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{constant_plan, rows};
    use narrows_model::load::{Pick, Tracing};

    #[test]
    fn each_mistake_is_named() {
        type Change = fn(&mut LoadPlan);
        let cases: [(Change, &str); 11] = [
            (|p| p.targets.clear(), "targets: there is none, expected at least one"),
            (|p| p.scenarios.clear(), "scenarios: there is none, expected at least one"),
            (|p| p.timeout = Duration::ZERO, "timeout: it is 0, expected more"),
            (|p| p.threads = 0, "threads: 0, expected 1 to 1024"),
            (
                |p| p.tracing = Some(Tracing { sample: f64::NAN, tag: [0; 4] }),
                "tracing: sampled share NaN, expected 0 to 1",
            ),
            (
                |p| p.scenarios[0].model = LoadModel::ConstantVus { vus: 0, duration: Duration::from_secs(1) },
                "scenario a: 0 users, expected 1 to 1000000",
            ),
            (
                |p| p.scenarios[0].model = LoadModel::RampingVus { start_vus: 1, stages: Vec::new() },
                "scenario a: no stage, expected at least one",
            ),
            (
                |p| {
                    p.scenarios[0].model =
                        LoadModel::SharedIterations { vus: 2_000_000, iterations: 1, max_duration: None }
                },
                "scenario a: 2000000 users, expected 1 to 1000000",
            ),
            (|p| p.data.push(rows(&[], Pick::Random)), "data owner: no row, expected at least one"),
            (
                |p| p.data.push(rows(&[&["a"], &["a", "b"]], Pick::Random)),
                "data owner: row 2 has other columns than the first",
            ),
            (
                |p| {
                    let values = DataValues::Integers { from: 2, to: 1 };
                    p.data.push(DataSource { name: "n".into(), values });
                },
                "data n: from 2 is above to 1",
            ),
        ];
        for (change, expected) in cases {
            let mut plan = constant_plan();
            assert!(check(&plan).is_ok());
            change(&mut plan);
            assert_eq!(check(&plan).unwrap_err().to_string(), format!("load plan: {expected}"));
        }
    }
}
