//! What is done to replicas while they are under load: killed, paused, restarted.

use std::time::Duration;

use narrows_load::planned_windows;

use super::bound::{BoundLoad, Deed, Fault};
use super::check::{Pass, check};
use super::complete::complete;
use super::grammar::{DURATION, MANY, POSITIVE_DURATION, beside, optional, required};
use super::kind::Kind;
use super::mistake::{Report, Wrong};
use super::model::scaled;
use super::names::Values;
use super::network::Network;
use super::read;
use super::shape::{Map, Rule, Scope, Shape, key};
use super::tree::At;
use super::variant::Variant;

static REPLICA: Shape = Shape::Scalar(Kind::Text, Scope::Parameters);
static VARIANT: Shape = Shape::Scalar(Kind::VariantName, Scope::Literal);

/// The list of them.
pub(super) static FAULTS: Shape = Shape::List { item: &FAULT, least: 0, most: MANY };

static FAULT: Shape = Shape::Map(Map {
    fields: &[
        required("at", &DURATION, "The time from the beginning of the load, warm-up included."),
        optional("kill", &REPLICA, "The replica that is killed: `SERVICE`, `SERVICE[0]` or `SERVICE-1` for the first."),
        optional("pause", &REPLICA, "The replica that is paused for a while."),
        beside("for", &POSITIVE_DURATION, &["pause"], "How long it is paused."),
        optional(
            "restart",
            &REPLICA,
            "The replica that is stopped gracefully and started again, or started if it is down.",
        ),
        optional(
            "variants",
            &Shape::List { item: &VARIANT, least: 1, most: MANY },
            "The variants that it happens in. Without it, all.",
        ),
    ],
    rules: &[Rule::ExactlyOne(&[key("kill"), key("pause"), key("restart")]), Rule::Needs("pause", "for")],
    others: None,
});

/// Tells what does not depend on a variant: names of variants that there are none of, and a load that shows nothing.
pub(super) fn check_all(root: At<'_>, variants: &[Variant], report: &mut Report) {
    let Some(faults) = root.get("faults") else { return };
    if root.node.get("load").is_some_and(|load| load.get("command").is_some()) {
        let wrong = Wrong::new(
            "faults need a load of `scenarios`: Narrows cannot follow another program's load second by second",
        );
        report.add(faults.key_place(), faults.path(), wrong);
    }
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    for fault in faults.items() {
        let Some(listed) = fault.get("variants") else { continue };
        for at in listed.items() {
            if let Some(name) = at.text().filter(|name| !names.contains(name)) {
                report.add(at.place(), at.path(), Wrong::unknown("variant", name, names.iter().copied()));
            }
        }
    }
}

/// The faults of a variant, earliest first.
pub(super) fn build(
    root: At<'_>,
    variant: &str,
    values: &Values<'_>,
    network: &Network<'_>,
    load: Option<&BoundLoad>,
    report: &mut Report,
) -> Vec<Fault> {
    let Some(at) = root.get("faults") else { return Vec::new() };
    let node = complete(at.node, &FAULTS, values);
    let at = at.with(&node);
    check(at, &FAULTS, Pass::Bound, report);
    let end = load.and_then(end_of);
    let happens = |fault: &At<'_>| {
        fault.get("variants").is_none_or(|listed| listed.items().any(|name| name.text() == Some(variant)))
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
    let (deed, target) = [("kill", Deed::Kill), ("restart", Deed::Restart), ("pause", Deed::Pause(Duration::ZERO))]
        .into_iter()
        .find_map(|(key, deed)| Some((deed, at.get(key)?)))?;
    let (service, replica) = match replica_named(target.text()?, network) {
        Ok(found) => found,
        Err(wrong) => {
            report.add(target.place(), target.path(), wrong);
            return None;
        }
    };
    let when = scaled(read::duration(at, "at")?, scale);
    if let (Some(end), Some(written)) = (end, at.get("at"))
        && when >= end
    {
        let ends = narrows_model::units::duration(end.as_nanos() as f64);
        let wrong = Wrong::new(format!("the load ends after {ends}, before this fault"));
        report.add(written.place(), written.path(), wrong);
    }
    let deed = match deed {
        Deed::Pause(_) => Deed::Pause(scaled(read::duration(at, "for")?, scale)),
        other => other,
    };
    Some(Fault { at: when, deed, service, replica })
}

/// `store`, `store[1]` (from 0) or `store-2` (from 1).
fn replica_named(text: &str, network: &Network<'_>) -> Result<(String, u32), Wrong> {
    let by_index = || {
        let (name, rest) = text.split_once('[')?;
        Some((name, rest.strip_suffix(']')?.parse::<u32>().ok()?))
    };
    let by_number = || {
        let (name, number) = text.rsplit_once('-')?;
        Some((name, number.parse::<u32>().ok()?.checked_sub(1)?))
    };
    let known = |(name, replica)| Some((name, replica, network.count(name)?));
    let found = known((text, 0)).or_else(|| known(by_index()?)).or_else(|| known(by_number()?));
    match found {
        Some((name, replica, count)) if replica < count => Ok((name.to_owned(), replica)),
        Some((name, _, count)) => {
            let last = count.saturating_sub(1);
            Err(Wrong::new(format!("`{name}` has no replica `{text}`; it has `{name}[0]` to `{name}[{last}]`")))
        }
        None => Err(Wrong::unknown("replica", text, network.services())),
    }
}
