//! How many virtual users a scenario has, or how often its iterations begin: from the file to the plan.

use std::time::Duration;

use narrows_model::load::{Arrivals, LoadModel, RateStage, Stage, StageShape};

use super::mistake::{Report, Wrong};
use super::tree::{At, Form};
use super::{quantity, read};

/// So many levels are one a second for a quarter of an hour; more is a slip of the pen.
const LEVELS_MAX: f64 = 1000.0;

/// Builds a scenario's model. None if an error was reported, now or before.
pub(super) fn build(at: At<'_>, time_scale: f64, report: &mut Report) -> Option<LoadModel> {
    match at.get("model")?.text()? {
        "constant-vus" => Some(LoadModel::ConstantVus {
            vus: read::whole(at, "vus")?,
            duration: scaled_duration(at, "duration", time_scale)?,
        }),
        "shared-iterations" => Some(LoadModel::SharedIterations {
            vus: read::whole(at, "vus")?,
            iterations: read::whole(at, "iterations")?,
            max_duration: read::duration(at, "max_duration"),
        }),
        "per-vu-iterations" => Some(LoadModel::PerVuIterations {
            vus: read::whole(at, "vus")?,
            iterations: read::whole(at, "iterations")?,
            max_duration: read::duration(at, "max_duration"),
        }),
        "constant-arrival-rate" => Some(LoadModel::ConstantArrivalRate {
            rate: rate(at, "rate")?,
            duration: scaled_duration(at, "duration", time_scale)?,
            vus_max: read::whole(at, "max_vus")?,
            arrivals: arrivals(at)?,
        }),
        "ramping-arrival-rate" => ramping_rate(at, time_scale, report),
        "ramping-vus" => ramping_vus(at, time_scale, report),
        _ => None,
    }
}

fn ramping_vus(at: At<'_>, time_scale: f64, report: &mut Report) -> Option<LoadModel> {
    let read_level = |at: At<'_>, key: &str| read::whole::<u32>(at, key).map(f64::from);
    let (start, parts) = ramp(at, 1.0, "start_vus", read_level, time_scale, report)?;
    let stage = |part: Part| Stage { duration: part.duration, target: part.target as u32, shape: part.shape };
    Some(LoadModel::RampingVus { start_vus: start as u32, stages: parts.into_iter().map(stage).collect() })
}

fn ramping_rate(at: At<'_>, time_scale: f64, report: &mut Report) -> Option<LoadModel> {
    let (start_rate, parts) = ramp(at, 0.0, "start_rate", rate, time_scale, report)?;
    let stage = |part: Part| RateStage { duration: part.duration, target: part.target, shape: part.shape };
    Some(LoadModel::RampingArrivalRate {
        start_rate,
        stages: parts.into_iter().map(stage).collect(),
        vus_max: read::whole(at, "max_vus")?,
        arrivals: arrivals(at)?,
    })
}

/// A stage of users or of a rate.
struct Part {
    duration: Duration,
    target: f64,
    shape: StageShape,
}

/// Where a ramp begins, and its parts.
fn ramp(
    at: At<'_>,
    start: f64,
    start_key: &str,
    read_level: impl Fn(At<'_>, &str) -> Option<f64>,
    time_scale: f64,
    report: &mut Report,
) -> Option<(f64, Vec<Part>)> {
    let is_map = |at: &At<'_>| matches!(at.node.form, Form::Map(_));
    if let Some(levels) = at.get("levels").or_else(|| at.get("steps").filter(is_map)) {
        let every = scaled_duration(levels, "every", time_scale)?;
        let level = |key| read_level(levels, key);
        return stepped(levels, every, (level("from")?, level("add")?, level("to")?), report);
    }
    let stages = at.get("stages")?;
    let part = |at: At<'_>| {
        let duration = scaled_duration(at, "duration", time_scale)?;
        Some(Part { duration, target: read_level(at, "target")?, shape: StageShape::Linear })
    };
    let parts: Vec<Part> = stages.items().map(part).collect::<Option<_>>()?;
    let start = match at.get(start_key) {
        Some(_) => read_level(at, start_key)?,
        None => start,
    };
    if start == 0.0 && parts.iter().all(|part| part.target == 0.0) {
        report.add(stages.key_place(), stages.path(), Wrong::new("expected a target above 0 in at least one stage"));
        return None;
    }
    Some((start, parts))
}

/// Levels `from`, `from + add`, … below `to`, and `to` itself.
fn stepped(
    at: At<'_>,
    every: Duration,
    (from, add, to): (f64, f64, f64),
    report: &mut Report,
) -> Option<(f64, Vec<Part>)> {
    let mut tell = |message| report.add(at.key_place(), at.path(), Wrong::new(message));
    if from > to {
        tell(format!("expected `from` to be `to` or less, found {from} and {to}"));
        return None;
    }
    // Rates need not be whole, and their sum may miss `to` by what a double rounds.
    const ROUNDING: f64 = 1e-9;
    let below = ((to - from) / add - ROUNDING).ceil().max(0.0);
    if below >= LEVELS_MAX {
        tell(format!("expected at most {LEVELS_MAX} levels, found {}", below + 1.0));
        return None;
    }
    let levels = (0..below as u32).map(|level| from + f64::from(level) * add).chain([to]);
    Some((from, levels.map(|target| Part { duration: every, target, shape: StageShape::Step }).collect()))
}

fn rate(at: At<'_>, key: &str) -> Option<f64> {
    quantity::rate(at.get(key)?.text()?)
}

fn arrivals(at: At<'_>) -> Option<Arrivals> {
    match at.get("arrivals")?.text()? {
        "uniform" => Some(Arrivals::Uniform),
        "poisson" => Some(Arrivals::Poisson),
        _ => None,
    }
}

fn scaled_duration(at: At<'_>, key: &str, time_scale: f64) -> Option<Duration> {
    Some(scaled(read::duration(at, key)?, time_scale))
}

/// A length of time of the load, in the time of this run.
pub(super) fn scaled(duration: Duration, time_scale: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * time_scale).unwrap_or(duration)
}
