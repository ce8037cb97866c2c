//! Faults of replicas while they are under load: killed, paused, restarted.

use std::time::Duration;

use narrows_load::planned_windows;

use super::network::Network;
use crate::experiment::bound::{BoundLoad, Deed, Fault};
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::check::{Pass, check};
use crate::experiment::grammar::complete::complete;
use crate::experiment::grammar::key::{Key, Value, optional, parameter};
use crate::experiment::grammar::kind;
use crate::experiment::grammar::shape::{Field, Map, Rule, Shape};
use crate::experiment::grammar::values::{DURATION, MANY, POSITIVE_DURATION};
use crate::experiment::load::LOAD;
use crate::experiment::load::command::COMMAND;
use crate::experiment::load::model::scaled;
use crate::experiment::placeholders::names::Values;
use crate::experiment::variants::{VARIANT_NAME, Variant};

const REPLICA: Value<String> = parameter(&kind::TEXT);

const AT: Key<Duration> = Key::required("at", DURATION, "The time from the beginning of the load, warm-up included.");

const KILL: Key<String> = Key::optional(
    "kill",
    REPLICA,
    "The replica that is killed: `SERVICE`, `SERVICE[0]` or `SERVICE-1` for the first. All its processes get \
     `SIGKILL`. With `restart: always` it is started again 200 ms later, else it stays down.",
);

const PAUSE: Key<String> = Key::optional(
    "pause",
    REPLICA,
    "The replica whose processes all stand still (`SIGSTOP`), for the time of `for` or to the end of the load.",
);

const FOR: Key<Duration> = Key::beside("for", POSITIVE_DURATION, &[PAUSE.name()], "How long it is paused.");

const RESTART: Key<String> = Key::optional(
    "restart",
    REPLICA,
    "The replica that is stopped as `stop` says and started again at once, or started if it is down.",
);

const VARIANTS: Field = optional(
    "variants",
    Shape::List { item: &VARIANT_NAME.shape(), least: 1, most: MANY },
    "The variants that it happens in. Without it, all.",
);

const FAULTS_LIST: Shape = Shape::List { item: &FAULT, least: 0, most: MANY };

static FAULT: Shape = Shape::Map(Map {
    fields: &[AT.field, KILL.field, PAUSE.field, FOR.field, RESTART.field, VARIANTS],
    rules: &[Rule::ExactlyOne(&[KILL.given(), PAUSE.given(), RESTART.given()]), Rule::Needs(PAUSE.name(), FOR.name())],
    others: None,
});

pub(crate) const FAULTS: Field = optional("faults", FAULTS_LIST, "What is done to replicas while they are under load.");

/// Reports what does not depend on a variant: unknown variants, and a load that shows nothing.
pub(crate) fn check_all(root: At<'_>, variants: &[Variant], report: &mut Report) {
    let Some(faults) = root.get(&FAULTS) else { return };
    if root.get(&LOAD).is_some_and(|load| load.has(&COMMAND)) {
        let problem = Problem::new(
            "faults need a load of `scenarios`: Narrows cannot follow another program's load second by second",
        );
        report.add(faults.key_place(), faults.path(), problem);
    }
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    for fault in faults.items() {
        let Some(listed) = fault.get(&VARIANTS) else { continue };
        for at in listed.items() {
            if let Some(name) = at.text().filter(|name| !names.contains(name)) {
                report.add(at.place(), at.path(), Problem::unknown("variant", name, names.iter().copied()));
            }
        }
    }
}

/// The faults of a variant, earliest first.
pub(crate) fn build(
    root: At<'_>,
    variant: &str,
    values: &Values<'_>,
    network: &Network<'_>,
    load: Option<&BoundLoad>,
    report: &mut Report,
) -> Vec<Fault> {
    let Some(at) = root.get(&FAULTS) else { return Vec::new() };
    let node = complete(at.node, &FAULTS_LIST, values);
    let at = at.with(&node);
    check(at, &FAULTS_LIST, Pass::Bound, report);
    let end = load.and_then(end_of);
    let happens = |fault: &At<'_>| {
        fault.get(&VARIANTS).is_none_or(|listed| listed.items().any(|name| name.text() == Some(variant)))
    };
    let mut faults = Vec::new();
    for fault in at.items().filter(happens) {
        faults.extend(build_one(fault, network, end, report));
    }
    faults.sort_by_key(|fault: &Fault| fault.at);
    faults
}

/// When the load ends, if that is not its last request's business.
fn end_of(load: &BoundLoad) -> Option<Duration> {
    let BoundLoad::Plan(plan) = load else { return None };
    planned_windows(plan).iter().map(|window| window.end).max().filter(|end| *end < Duration::MAX)
}

fn build_one(at: At<'_>, network: &Network<'_>, end: Option<Duration>, report: &mut Report) -> Option<Fault> {
    let scale = network.bindings.time_scale;
    let (deed, target) = [(&KILL, Deed::Kill), (&RESTART, Deed::Restart), (&PAUSE, Deed::Pause(Duration::ZERO))]
        .into_iter()
        .find_map(|(key, deed)| Some((deed, at.get(key)?)))?;
    let (service, replica) = match replica_named(target.text()?, network).and_then(|found| ours(found, network)) {
        Ok(found) => found,
        Err(problem) => {
            report.add(target.place(), target.path(), problem);
            return None;
        }
    };
    let when = scaled(at.read(&AT)?, scale);
    if let (Some(end), Some(written)) = (end, at.get(&AT))
        && when >= end
    {
        let ends = narrows_model::units::duration(end.as_nanos() as f64);
        let problem = Problem::new(format!("the load ends after {ends}, before this fault"));
        report.add(written.place(), written.path(), problem);
    }
    let deed = match deed {
        Deed::Pause(_) => Deed::Pause(scaled(at.read(&FOR)?, scale)),
        other => other,
    };
    Some(Fault { at: when, deed, service, replica })
}

/// Refuses a replica that somebody else has started: there is no process here to send signals to.
fn ours(found: (String, u32), network: &Network<'_>) -> Result<(String, u32), Problem> {
    if network.is_elsewhere(&found.0) {
        let problem = Problem::new(format!("Narrows did not start `{}`, so it cannot stop it", found.0));
        return Err(problem.hint("faults need a service with `run` or a component"));
    }
    Ok(found)
}

/// The service and replica of `store[1]`.
fn by_index(text: &str) -> Option<(&str, u32)> {
    let (name, rest) = text.split_once('[')?;
    Some((name, rest.strip_suffix(']')?.parse().ok()?))
}

/// The service and replica of `store-2`, whose replicas count from 1.
fn by_number(text: &str) -> Option<(&str, u32)> {
    let (name, number) = text.rsplit_once('-')?;
    Some((name, number.parse::<u32>().ok()?.checked_sub(1)?))
}

/// `store`, `store[1]` (from 0) or `store-2` (from 1).
fn replica_named(text: &str, network: &Network<'_>) -> Result<(String, u32), Problem> {
    let mut candidates = [Some((text, 0)), by_index(text), by_number(text)].into_iter().flatten();
    let found = candidates.find_map(|(name, replica)| Some((name, replica, network.count(name)?)));
    match found {
        Some((name, replica, count)) if replica < count => Ok((name.to_owned(), replica)),
        Some((name, _, count)) => {
            let last = count.saturating_sub(1);
            Err(Problem::new(format!("`{name}` has no replica `{text}`; it has `{name}[0]` to `{name}[{last}]`")))
        }
        None => Err(Problem::unknown("replica", text, network.services())),
    }
}
