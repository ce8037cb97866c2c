//! Errors that a plan must not contain. Templates are checked where they are compiled.

use std::collections::BTreeSet;
use std::time::Duration;

use narrows_model::load::{DataSource, DataValues, Flow, LoadModel, LoadPlan, Scenario, Step};

use crate::Error;
use crate::models;

/// The most virtual users of one scenario.
pub const VUS_MAX: u32 = 1_000_000;
/// The most load threads.
pub const THREADS_MAX: usize = 1024;
/// The lowest and the highest rate of arrivals, per second.
pub const RATE_MIN: f64 = 1e-3;
/// See [`RATE_MIN`].
pub const RATE_MAX: f64 = 1e7;
/// The most redirects that a step may follow.
pub const REDIRECTS_MAX: u8 = 20;

/// Checks all of a plan but its templates.
pub(crate) fn check(plan: &LoadPlan) -> Result<(), Error> {
    require(!plan.targets.is_empty(), "targets", || "at least one target is required".into())?;
    require(!plan.scenarios.is_empty(), "scenarios", || "at least one scenario is required".into())?;
    require(plan.timeout > Duration::ZERO, "timeout", || "it must be above 0".into())?;
    require((1..=THREADS_MAX).contains(&plan.threads), "threads", || {
        format!("{}, expected 1 to {THREADS_MAX}", plan.threads)
    })?;
    if let Some(tracing) = plan.tracing {
        require((0.0..=1.0).contains(&tracing.sample), "tracing", || {
            format!("sampled share {}, expected 0 to 1", tracing.sample)
        })?;
    }
    check_addresses(plan)?;
    plan.scenarios.iter().try_for_each(check_scenario)?;
    plan.data.iter().try_for_each(check_data)
}

fn check_addresses(plan: &LoadPlan) -> Result<(), Error> {
    for address in &plan.client_addresses {
        let other = plan.targets.iter().find(|target| target.is_ipv4() != address.is_ipv4());
        require(other.is_none(), "client addresses", || {
            let target = other.map(ToString::to_string).unwrap_or_default();
            format!("{address} cannot reach {target}, expected addresses of the same family")
        })?;
    }
    Ok(())
}

fn check_scenario(scenario: &Scenario) -> Result<(), Error> {
    let place = format!("scenario {}", scenario.name);
    check_model(&scenario.model, &place)?;
    require(!scenario.model.is_open() || scenario.pace.is_none(), &place, || {
        "`pace` is not allowed with an arrival rate".into()
    })?;
    check_flows(&scenario.flows, &place)
}

fn check_model(model: &LoadModel, place: &str) -> Result<(), Error> {
    let model = models::build(model);
    if let Some(error) = model.error() {
        return Err(Error::plan(place, error));
    }
    let (least, vus) = (model.vus_min(), model.vus_max());
    require((least..=VUS_MAX).contains(&vus), place, || format!("{vus} users, expected {least} to {VUS_MAX}"))
}

fn check_flows(flows: &[Flow], place: &str) -> Result<(), Error> {
    require(!flows.is_empty(), place, || "at least one flow is required".into())?;
    for flow in flows {
        let place = if flow.name.is_empty() { place.to_owned() } else { format!("{place}, flow {}", flow.name) };
        require(flow.weight.is_finite() && flow.weight > 0.0, &place, || {
            format!("weight {}, expected more than 0", flow.weight)
        })?;
        require(!flow.steps.is_empty(), &place, || "at least one step is required".into())?;
        flow.steps.iter().try_for_each(|step| check_step(step, &place))?;
    }
    check_names(flows, place)
}

fn check_names(flows: &[Flow], place: &str) -> Result<(), Error> {
    let unnamed = flows.iter().any(|flow| flow.steps.len() > 1 && flow.steps.iter().any(|step| step.name.is_empty()));
    require(!unnamed, place, || "each of several steps needs a name".into())?;
    // A flow of one step may go by the flow's name alone.
    let called = |flow: &Flow, step: &Step| if step.name.is_empty() { flow.name.clone() } else { step.name.clone() };
    let names = flows.iter().flat_map(|flow| flow.steps.iter().map(move |step| called(flow, step)));
    let mut known = BTreeSet::new();
    let twice = names.into_iter().find(|name| !known.insert(name.clone()));
    require(twice.is_none(), place, || {
        format!("two steps are named {:?}, expected different names", twice.unwrap_or_default())
    })
}

fn check_step(step: &Step, place: &str) -> Result<(), Error> {
    require(step.redirects_max <= REDIRECTS_MAX, place, || {
        format!("{} redirects, expected at most {REDIRECTS_MAX}", step.redirects_max)
    })
}

fn check_data(source: &DataSource) -> Result<(), Error> {
    let place = format!("data {}", source.name);
    match &source.values {
        DataValues::Integers { from, to } => {
            require(from <= to, &place, || format!("`from` ({from}) is above `to` ({to})"))
        }
        DataValues::Rows { rows, .. } => {
            require(!rows.is_empty(), &place, || "at least one row is required".into())?;
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
    use narrows_model::load::{Arrivals, Iterations, Pick, RateStage, StageShape, Tracing};

    fn arriving(rate: f64, vus_max: u32) -> LoadModel {
        let duration = Duration::from_secs(1);
        LoadModel::ConstantArrivalRate { rate, duration, vus_max, arrivals: Arrivals::Uniform }
    }

    fn ramping(start_rate: f64, targets: &[f64]) -> LoadModel {
        let stage =
            |target: &f64| RateStage { duration: Duration::from_secs(1), target: *target, shape: StageShape::Linear };
        let stages = targets.iter().map(stage).collect();
        LoadModel::RampingArrivalRate { start_rate, stages, vus_max: 1, arrivals: Arrivals::Poisson }
    }

    fn name_steps(plan: &mut LoadPlan, names: &[&str]) {
        let steps = &mut plan.scenarios[0].flows[0].steps;
        let step = steps[0].clone();
        *steps = names.iter().map(|name| Step { name: (*name).to_owned(), ..step.clone() }).collect();
    }

    #[test]
    fn what_may_be_said_is_not_refused() {
        let mut plan = constant_plan();
        for model in [arriving(RATE_MIN, 1), arriving(RATE_MAX, VUS_MAX), ramping(0.0, &[10.0, 0.0])] {
            plan.scenarios[0].model = model;
            check(&plan).unwrap();
        }
        name_steps(&mut plan, &["login", "list"]);
        check(&plan).unwrap();
    }

    #[test]
    fn addresses_reach_all_targets() {
        let mut plan = constant_plan();
        plan.client_addresses = vec![[127, 0, 0, 2].into()];
        check(&plan).unwrap();
        plan.targets.push((std::net::Ipv6Addr::LOCALHOST, 80).into());
        assert_eq!(
            check(&plan).unwrap_err().to_string(),
            "load plan: client addresses: 127.0.0.2 cannot reach [::1]:80, expected addresses of the same family"
        );
    }

    #[test]
    fn each_mistake_is_named() {
        type Change = fn(&mut LoadPlan);
        let cases: [(Change, &str); 25] = [
            (|p| p.targets.clear(), "targets: at least one target is required"),
            (|p| p.scenarios.clear(), "scenarios: at least one scenario is required"),
            (|p| p.timeout = Duration::ZERO, "timeout: it must be above 0"),
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
                "scenario a: at least one stage is required",
            ),
            (
                |p| {
                    p.scenarios[0].model =
                        LoadModel::Iterations { vus: 2_000_000, iterations: Iterations::Shared(1), max_duration: None }
                },
                "scenario a: 2000000 users, expected 1 to 1000000",
            ),
            (
                |p| {
                    p.scenarios[0].model =
                        LoadModel::Iterations { vus: 0, iterations: Iterations::PerVu(1), max_duration: None }
                },
                "scenario a: 0 users, expected 1 to 1000000",
            ),
            (
                |p| p.scenarios[0].model = arriving(0.0, 1),
                "scenario a: 0 iterations per second, expected 0.001 to 10000000",
            ),
            (
                |p| p.scenarios[0].model = arriving(f64::NAN, 1),
                "scenario a: NaN iterations per second, expected 0.001 to 10000000",
            ),
            (|p| p.scenarios[0].model = arriving(1.0, 0), "scenario a: 0 users, expected 1 to 1000000"),
            (|p| p.scenarios[0].model = ramping(1.0, &[]), "scenario a: at least one stage is required"),
            (|p| p.scenarios[0].model = ramping(0.0, &[0.0]), "scenario a: at least one rate must be above 0"),
            (
                |p| p.scenarios[0].model = ramping(0.0, &[f64::INFINITY]),
                "scenario a: inf iterations per second, expected 0.001 to 10000000",
            ),
            (
                |p| {
                    p.scenarios[0].model = arriving(1.0, 1);
                    p.scenarios[0].pace = Some(Duration::from_secs(1));
                },
                "scenario a: `pace` is not allowed with an arrival rate",
            ),
            (|p| p.scenarios[0].flows.clear(), "scenario a: at least one flow is required"),
            (|p| p.scenarios[0].flows[0].steps.clear(), "scenario a: at least one step is required"),
            (
                |p| {
                    p.scenarios[0].flows[0].weight = 0.0;
                    p.scenarios[0].flows[0].name = "buy".into();
                },
                "scenario a, flow buy: weight 0, expected more than 0",
            ),
            (
                |p| name_steps(p, &["list", "list"]),
                "scenario a: two steps are named \"list\", expected different names",
            ),
            (|p| name_steps(p, &["list", ""]), "scenario a: each of several steps needs a name"),
            (|p| p.scenarios[0].flows[0].steps[0].redirects_max = 21, "scenario a: 21 redirects, expected at most 20"),
            (|p| p.data.push(rows(&[], Pick::Random)), "data owner: at least one row is required"),
            (
                |p| p.data.push(rows(&[&["a"], &["a", "b"]], Pick::Random)),
                "data owner: row 2 has other columns than the first",
            ),
            (
                |p| {
                    let values = DataValues::Integers { from: 2, to: 1 };
                    p.data.push(DataSource { name: "n".into(), values });
                },
                "data n: `from` (2) is above `to` (1)",
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
