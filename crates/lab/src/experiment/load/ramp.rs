//! `stages` and `levels`: a number of users, or a rate, that changes.

use std::time::Duration;

use narrows_model::load::StageShape;

use super::flow::{STEP_LIST, STEPS};
use super::model::{USERS, USERS_OR_NONE, scaled};
use crate::experiment::document::at::At;
use crate::experiment::document::tree::Form;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Key, Value, optional, parameter};
use crate::experiment::grammar::kind;
use crate::experiment::grammar::shape::{Field, KeyForm, Map, Rule, Shape};
use crate::experiment::grammar::values::{LISTED_MAX, POSITIVE_DURATION};

/// So many levels are one a second for a quarter of an hour; more is a slip of the pen.
const LEVELS_MAX: f64 = 1000.0;

const STAGES_KEY: &str = "stages";

/// The keys of a ramp, of which each level is a `T`.
pub(crate) struct Ramp<T: 'static> {
    pub(crate) start: Key<T>,
    /// The level that it starts at without `start`.
    start_without: f64,
    target: Key<T>,
    from: Key<T>,
    add: Key<T>,
    to: Key<T>,
}

pub(crate) const RATE: Value<f64> = parameter(&kind::RATE);
const RATE_OR_NONE: Value<f64> = parameter(&kind::RATE_OR_NONE);

pub(crate) const OF_USERS: Ramp<u32> = Ramp {
    start: Key::beside(
        "start_vus",
        USERS_OR_NONE,
        &[STAGES_KEY],
        "Virtual users at the beginning of `stages`. Without it, 1.",
    ),
    start_without: 1.0,
    target: Key::required("target", USERS_OR_NONE, "Virtual users at its end."),
    from: Key::required("from", USERS, "Virtual users of the first level."),
    add: Key::required("add", USERS, "Virtual users that each level adds."),
    to: Key::required("to", USERS, "Virtual users of the last level, exactly."),
};

pub(crate) const OF_RATES: Ramp<f64> = Ramp {
    start: Key::beside(
        "start_rate",
        RATE_OR_NONE,
        &[STAGES_KEY],
        "The rate at the beginning of `stages`. Without it, 0.",
    ),
    start_without: 0.0,
    target: Key::required("target", RATE_OR_NONE, "The rate at its end."),
    from: Key::required("from", RATE, "The rate of the first level."),
    add: Key::required("add", RATE, "The rate that each level adds."),
    to: Key::required("to", RATE, "The rate of the last level, exactly."),
};

const DURATION: Key<Duration> = Key::required("duration", POSITIVE_DURATION, "How long the stage takes.");

const EVERY: Key<Duration> = Key::required("every", POSITIVE_DURATION, "How long each level takes.");

const USER_LEVELS: Shape =
    Shape::Map(Map::new(&[OF_USERS.from.field, OF_USERS.add.field, EVERY.field, OF_USERS.to.field]));

const RATE_LEVELS: Shape =
    Shape::Map(Map::new(&[OF_RATES.from.field, OF_RATES.add.field, EVERY.field, OF_RATES.to.field]));

pub(crate) const USER_STAGES: Field = optional(
    STAGES_KEY,
    Shape::List { item: &Shape::Map(Map::new(&[DURATION.field, OF_USERS.target.field])), least: 1, most: LISTED_MAX },
    "Intervals of time over which the number of users goes evenly to a target.",
);

pub(crate) const RATE_STAGES: Field = optional(
    STAGES_KEY,
    Shape::List { item: &Shape::Map(Map::new(&[DURATION.field, OF_RATES.target.field])), least: 1, most: LISTED_MAX },
    "Intervals of time over which the rate goes evenly to a target.",
);

const LEVELS_KEY: &str = "levels";

pub(crate) const LEVELS_OF_USERS: Field =
    optional(LEVELS_KEY, USER_LEVELS, "Load levels of equal length, each some users above the one before.");

pub(crate) const LEVELS_OF_RATES: Field =
    optional(LEVELS_KEY, RATE_LEVELS, "Load levels of equal length, each some rate above the one before.");

/// `steps` beside a ramp of users: as a map it is another spelling of `levels`.
pub(crate) const STEPS_OR_USER_LEVELS: Field = steps_or(Shape::Either(&[STEP_LIST, USER_LEVELS]));

/// `steps` beside a ramp of rates: as a map it is another spelling of `levels`.
pub(crate) const STEPS_OR_RATE_LEVELS: Field = steps_or(Shape::Either(&[STEP_LIST, RATE_LEVELS]));

const fn steps_or(shape: Shape) -> Field {
    optional(
        STEPS.name(),
        shape,
        "A list: the requests of an iteration, one after the other. A map: the same as `levels`.",
    )
}

/// A ramp has stages or levels.
pub(crate) const RAMP_RULES: &[Rule] =
    &[Rule::ExactlyOne(&[USER_STAGES.given(), LEVELS_OF_USERS.given(), STEPS.given_as(KeyForm::AsMap)])];

/// A stage of users or of a rate.
pub(crate) struct Part {
    pub(crate) duration: Duration,
    pub(crate) target: f64,
    pub(crate) shape: StageShape,
}

/// Reads where a ramp begins, and its parts. `None` after an error that was reported, now or
/// before.
pub(crate) fn ramp<T: Into<f64>>(
    at: At<'_>,
    keys: &Ramp<T>,
    time_scale: f64,
    report: &mut Report,
) -> Option<(f64, Vec<Part>)> {
    let is_map = |at: &At<'_>| matches!(at.node.form, Form::Map(_));
    if let Some(levels) = at.get(&LEVELS_OF_USERS).or_else(|| at.get(&STEPS).filter(is_map)) {
        return stepped(levels, keys, time_scale, report);
    }
    let stages = at.get(&USER_STAGES)?;
    let part = |at: At<'_>| {
        let duration = scaled(at.read(&DURATION)?, time_scale);
        Some(Part { duration, target: at.read(&keys.target)?.into(), shape: StageShape::Linear })
    };
    let parts: Vec<Part> = stages.items().map(part).collect::<Option<_>>()?;
    let start = if at.has(&keys.start) { at.read(&keys.start)?.into() } else { keys.start_without };
    if start == 0.0 && parts.iter().all(|part| part.target == 0.0) {
        report.add(stages.key_place(), stages.path(), Problem::new("expected a target above 0 in at least one stage"));
        return None;
    }
    Some((start, parts))
}

/// Levels `from`, `from + add`, … below `to`, and `to` itself.
fn stepped<T: Into<f64>>(at: At<'_>, keys: &Ramp<T>, time_scale: f64, report: &mut Report) -> Option<(f64, Vec<Part>)> {
    let duration = scaled(at.read(&EVERY)?, time_scale);
    let (from, to): (f64, f64) = (at.read(&keys.from)?.into(), at.read(&keys.to)?.into());
    let mut report_here = |message| report.add(at.key_place(), at.path(), Problem::new(message));
    if from > to {
        report_here(format!("expected `from` to be `to` or less, found {from} and {to}"));
        return None;
    }
    // Rates need not be whole, and their sum may miss `to` by what a double rounds.
    const ROUNDING: f64 = 1e-9;
    let add: f64 = at.read(&keys.add)?.into();
    let below = ((to - from) / add - ROUNDING).ceil().max(0.0);
    if below >= LEVELS_MAX {
        report_here(format!("expected at most {LEVELS_MAX} levels, found {}", below + 1.0));
        return None;
    }
    let levels = (0..below as u32).map(|level| from + f64::from(level) * add).chain([to]);
    Some((from, levels.map(|target| Part { duration, target, shape: StageShape::Step }).collect()))
}
