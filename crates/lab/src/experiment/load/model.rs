//! How many virtual users a scenario has, or how often its iterations begin: from the file to the plan.

use std::time::Duration;

use narrows_model::load::{Arrivals, Iterations, LoadModel, RateStage, Stage};

use super::flow::{MODEL, PACE, STEPS};
use super::ramp::{self, Part, RATE, ramp};
use crate::experiment::document::at::At;
use crate::experiment::error::Report;
use crate::experiment::grammar::key::{Key, Value, parameter};
use crate::experiment::grammar::kind::{self, Whole};
use crate::experiment::grammar::shape::{Branch, Map};
use crate::experiment::grammar::values::POSITIVE_DURATION;

/// Most virtual users of a scenario.
const VUS_MAX: u64 = 100_000;

/// Most iterations of a scenario.
const ITERATIONS_MAX: u64 = 1_000_000_000_000;

const CONSTANT_VUS: &str = "constant-vus";
const RAMPING_VUS: &str = "ramping-vus";
const SHARED_ITERATIONS: &str = "shared-iterations";
const PER_VU_ITERATIONS: &str = "per-vu-iterations";
const CONSTANT_ARRIVAL_RATE: &str = "constant-arrival-rate";
const RAMPING_ARRIVAL_RATE: &str = "ramping-arrival-rate";

pub(crate) const USERS: Value<u32> = parameter(&Whole::new(1, VUS_MAX));
pub(crate) const USERS_OR_NONE: Value<u32> = parameter(&Whole::new(0, VUS_MAX));
const ITERATION_COUNT: Value<u64> = parameter(&Whole::new(1, ITERATIONS_MAX));

const VUS: Key<u32> = Key::required("vus", USERS, "Virtual users.");

const DURATION: Key<Duration> = Key::required("duration", POSITIVE_DURATION, "For how long, after the warm-up.");

const ITERATIONS: Key<u64> = Key::required("iterations", ITERATION_COUNT, "Iterations of all users together.");

const ITERATIONS_EACH: Key<u64> = Key::required("iterations", ITERATION_COUNT, "Iterations of each user.");

const MAX_DURATION: Key<Duration> = Key::optional(
    "max_duration",
    POSITIVE_DURATION,
    "When to stop even if iterations are left. Without it, there is no limit.",
);

const ITERATION_RATE: Key<f64> =
    Key::required("rate", RATE, "Iterations to begin: a number per second, or `500/s`, `30/min`, `1000/h`.");

const MAX_VUS: Key<u32> = Key::default(
    "max_vus",
    USERS,
    "1000",
    "The most virtual users, and so connections, at a time. What arrives when all are busy waits for one and counts as \
     late.",
);

const ARRIVALS: Key<Arrivals> = Key::default(
    "arrivals",
    parameter(&kind::ARRIVALS),
    "uniform",
    "How arrivals are spaced: evenly, at random as those of many independent clients, or so many at the same moment as \
     those of clients whose timers tick together (`hey -c 82 -q 130` sends bursts of 82, which are bursts every 7.7 ms).",
);

/// Keys of the scenarios of each model beside the keys of all.
pub(crate) const BRANCHES: &[Branch] = &[
    Branch { value: CONSTANT_VUS, map: Map::new(&[VUS.field, DURATION.field, PACE.field, STEPS]) },
    Branch {
        value: RAMPING_VUS,
        map: Map {
            fields: &[
                ramp::OF_USERS.start.field,
                ramp::USER_STAGES,
                ramp::LEVELS_OF_USERS,
                PACE.field,
                ramp::STEPS_OR_USER_LEVELS,
            ],
            rules: ramp::RAMP_RULES,
            others: None,
        },
    },
    Branch {
        value: SHARED_ITERATIONS,
        map: Map::new(&[VUS.field, ITERATIONS.field, MAX_DURATION.field, PACE.field, STEPS]),
    },
    Branch {
        value: PER_VU_ITERATIONS,
        map: Map::new(&[VUS.field, ITERATIONS_EACH.field, MAX_DURATION.field, PACE.field, STEPS]),
    },
    Branch {
        value: CONSTANT_ARRIVAL_RATE,
        map: Map::new(&[ITERATION_RATE.field, DURATION.field, MAX_VUS.field, ARRIVALS.field, STEPS]),
    },
    Branch {
        value: RAMPING_ARRIVAL_RATE,
        map: Map {
            fields: &[
                ramp::OF_RATES.start.field,
                ramp::RATE_STAGES,
                ramp::LEVELS_OF_RATES,
                MAX_VUS.field,
                ARRIVALS.field,
                ramp::STEPS_OR_RATE_LEVELS,
            ],
            rules: ramp::RAMP_RULES,
            others: None,
        },
    },
];

/// The names of all models, in the order of [`BRANCHES`].
pub(crate) const MODELS: &[&str] = &names();

const fn names() -> [&'static str; BRANCHES.len()] {
    let mut names = [""; BRANCHES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = BRANCHES[at].value;
        at += 1;
    }
    names
}

/// Builds a scenario's model. `None` if an error was reported, now or before.
pub(crate) fn build(at: At<'_>, time_scale: f64, report: &mut Report) -> Option<LoadModel> {
    match at.read(&MODEL)? {
        CONSTANT_VUS => {
            Some(LoadModel::ConstantVus { vus: at.read(&VUS)?, duration: scaled(at.read(&DURATION)?, time_scale) })
        }
        SHARED_ITERATIONS => of_iterations(at, Iterations::Shared(at.read(&ITERATIONS)?)),
        PER_VU_ITERATIONS => of_iterations(at, Iterations::PerVu(at.read(&ITERATIONS_EACH)?)),
        CONSTANT_ARRIVAL_RATE => Some(LoadModel::ConstantArrivalRate {
            rate: at.read(&ITERATION_RATE)?,
            duration: scaled(at.read(&DURATION)?, time_scale),
            vus_max: at.read(&MAX_VUS)?,
            arrivals: at.read(&ARRIVALS)?,
        }),
        RAMPING_ARRIVAL_RATE => ramping_rate(at, time_scale, report),
        RAMPING_VUS => ramping_vus(at, time_scale, report),
        _ => None,
    }
}

/// How the iterations of a scenario arrive; `None` in a closed model.
pub(crate) fn arrivals(at: At<'_>) -> Option<Arrivals> {
    at.read(&ARRIVALS)
}

fn of_iterations(at: At<'_>, iterations: Iterations) -> Option<LoadModel> {
    Some(LoadModel::Iterations { vus: at.read(&VUS)?, iterations, max_duration: at.read(&MAX_DURATION) })
}

fn ramping_vus(at: At<'_>, time_scale: f64, report: &mut Report) -> Option<LoadModel> {
    let (start, parts) = ramp(at, &ramp::OF_USERS, time_scale, report)?;
    let stage = |part: Part| Stage { duration: part.duration, target: part.target as u32, shape: part.shape };
    Some(LoadModel::RampingVus { start_vus: start as u32, stages: parts.into_iter().map(stage).collect() })
}

fn ramping_rate(at: At<'_>, time_scale: f64, report: &mut Report) -> Option<LoadModel> {
    let (start_rate, parts) = ramp(at, &ramp::OF_RATES, time_scale, report)?;
    let stage = |part: Part| RateStage { duration: part.duration, target: part.target, shape: part.shape };
    Some(LoadModel::RampingArrivalRate {
        start_rate,
        stages: parts.into_iter().map(stage).collect(),
        vus_max: at.read(&MAX_VUS)?,
        arrivals: at.read(&ARRIVALS)?,
    })
}

/// A length of time of the load, in the time of this run.
pub(crate) fn scaled(duration: Duration, time_scale: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * time_scale).unwrap_or(duration)
}
