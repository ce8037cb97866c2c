//! From the load of the file to the plan that the load engine runs, or to the command that makes the load instead.

use std::path::Path;

use narrows_model::load::{Connections, LoadPlan, Scenario, Tracing};

use super::bound::{Bindings, BoundLoad};
use super::check::{Pass, check};
use super::complete::complete;
use super::data::{Files, Sources};
use super::load_grammar::LOAD;
use super::mistake::Report;
use super::model::scaled;
use super::names::Values;
use super::target::{Target, protocol};
use super::tree::At;
use super::{command, flow, kind, model, read, when};

/// Builds the load. None if an error was reported, now or before.
pub(super) fn build(
    root: At<'_>,
    values: &Values<'_>,
    bindings: &Bindings,
    (dir, files): (&Path, &mut Files),
    report: &mut Report,
) -> Option<BoundLoad> {
    let at = root.get("load")?;
    let node = complete(at.node, &LOAD, values);
    let at = at.with(&node);
    check(at, &LOAD, Pass::Bound, report);
    let target = Target::find(at, root, bindings, report);
    if at.get("command").is_some() {
        return command::build(at, dir).map(BoundLoad::Command);
    }
    plan(at, target, values, bindings, (dir, files), report).map(BoundLoad::Plan)
}

fn plan(
    at: At<'_>,
    target: Option<Target>,
    values: &Values<'_>,
    bindings: &Bindings,
    (dir, files): (&Path, &mut Files),
    report: &mut Report,
) -> Option<LoadPlan> {
    let sources = Sources::build(at, dir, files, report);
    let host = target.as_ref().map_or("", |target| &target.host);
    let scenarios = scenarios((at, values), host, &sources, bindings.time_scale, report);
    let tls = target.as_ref().map(|target| target.tls(at, dir, report));
    let client_addresses = target.as_ref().and_then(|target| target.client_addresses(at, report));
    Some(LoadPlan {
        targets: target?.addresses,
        client_addresses: client_addresses?,
        protocol: protocol(at)?,
        tls: tls?.ok()?,
        scenarios: scenarios?,
        data: sources.into_plan(),
        tracing: tracing(at.get("tracing")?, bindings),
        timeout: read::duration(at, "timeout")?,
        drain: read::duration(at, "drain")?,
        seed: bindings.seed,
        threads: threads(at),
        connections: connections(at)?,
    })
}

fn connections(at: At<'_>) -> Option<Connections> {
    match at.get("connections")?.text()? {
        "keep-alive" => Some(Connections::KeepAlive),
        "per-request" => Some(Connections::PerRequest),
        _ => None,
    }
}

fn threads(at: At<'_>) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Half of the machine stays with the system under load.
    read::whole(at, "threads").unwrap_or((cores / 2).max(1)).min(cores)
}

fn tracing(at: At<'_>, bindings: &Bindings) -> Option<Tracing> {
    let sample = match at.text() {
        Some(text) => kind::boolean(text)?.then_some(1.0)?,
        None => read::number(at, "sample")?,
    };
    Some(Tracing { sample, tag: bindings.trace_tag() })
}

fn scenarios(
    (load, values): (At<'_>, &Values<'_>),
    host: &str,
    sources: &Sources,
    time_scale: f64,
    report: &mut Report,
) -> Option<Vec<Scenario>> {
    let warmup = scaled(read::duration(load, "warmup")?, time_scale);
    let scenarios = load.get("scenarios")?;
    let built: Vec<Option<Scenario>> = when::taking_part(&scenarios, values, report)
        .into_iter()
        .map(|(name, at)| {
            let flows = flow::build(at, host, sources, report);
            let model = model::build(at, time_scale, report);
            let flows = flows?;
            Some(Scenario {
                name: name.to_owned(),
                model: model?,
                warmup,
                cookies: flow::cookies(at, &flows),
                flows,
                think_time: read::duration(at, "think_time")?,
                pace: read::duration(at, "pace"),
            })
        })
        .collect();
    built.into_iter().collect()
}
