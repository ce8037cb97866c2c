//! From the load of the file to the plan that the load engine runs.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use narrows_model::load::{Connections, LoadModel, LoadPlan, Scenario, Stage, StageShape, Tracing};

use super::bound::Bindings;
use super::check::{Pass, check};
use super::complete::complete;
use super::data::{Files, Sources};
use super::grammar::LOAD;
use super::kind;
use super::mistake::{Report, Wrong};
use super::names::{HOST, Names, Values};
use super::tree::At;
use super::{address, read, request};

/// So many steps are one step a second for a quarter of an hour; more is a slip of the pen.
const STEPS_MAX: u64 = 1000;

/// Builds the plan. None when a mistake was told, now or before.
pub(super) fn build(
    root: At<'_>,
    values: &Values<'_>,
    bindings: &Bindings,
    (dir, files): (&Path, &mut Files),
    report: &mut Report,
) -> Option<LoadPlan> {
    let at = root.get("load")?;
    let node = complete(at.node, &LOAD, values);
    let at = at.with(&node);
    check(at, &LOAD, Pass::Bound, report);
    let target = target(at, root, bindings, report);
    let sources = Sources::build(at, dir, files, report);
    let host = target.as_ref().map_or("", |target| &target.host);
    let warmup = scaled(read::duration(at, "warmup")?, bindings.time_scale);
    let scenarios = scenarios(at, host, warmup, &sources, bindings.time_scale, report);
    let connections = match at.get("connections")?.text()? {
        "per-request" => Connections::PerRequest,
        _ => Connections::KeepAlive,
    };
    Some(LoadPlan {
        targets: target?.addresses,
        scenarios: scenarios?,
        data: sources.into_plan(),
        tracing: tracing(at.get("tracing")?, bindings),
        timeout: read::duration(at, "timeout")?,
        drain: read::duration(at, "drain")?,
        seed: bindings.seed,
        threads: threads(at),
        connections,
    })
}

struct Target {
    addresses: Vec<SocketAddr>,
    host: String,
}

fn target(load: At<'_>, root: At<'_>, bindings: &Bindings, report: &mut Report) -> Option<Target> {
    let at = load.get("target")?;
    let text = at.text()?;
    if let Ok(authority) = address::parse(text) {
        return Some(Target { addresses: Vec::new(), host: authority.to_owned() });
    }
    let ports: Vec<u16> = bindings.ports_of(text).collect();
    if let Some(first) = ports.first() {
        let host = format!("{HOST}:{first}");
        let addresses = ports.into_iter().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).collect();
        return Some(Target { addresses, host });
    }
    let names = Names::of(root.node);
    let services = names.services()?;
    if kind::Kind::Target.is_met_by(at.node) && !services.contains(&text) {
        let wrong = Wrong::unknown("service", text, services.iter().copied());
        let wrong = if services.is_empty() { wrong.hint("describe it under `system.services`") } else { wrong };
        report.add(at.place(), at.path(), wrong);
    }
    None
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
    load: At<'_>,
    host: &str,
    warmup: Duration,
    sources: &Sources,
    time_scale: f64,
    report: &mut Report,
) -> Option<Vec<Scenario>> {
    let scenarios = load.get("scenarios")?;
    let built: Vec<Option<Scenario>> = scenarios
        .entries()
        .map(|(name, at)| {
            let request = at.get("request").and_then(|at| request::build(at, host, sources, report));
            let model = model(at, time_scale, report);
            Some(Scenario {
                name: name.to_owned(),
                model: model?,
                warmup,
                request: request?,
                think_time: read::duration(at, "think_time")?,
                pace: read::duration(at, "pace"),
            })
        })
        .collect();
    built.into_iter().collect()
}

fn model(at: At<'_>, time_scale: f64, report: &mut Report) -> Option<LoadModel> {
    let duration = |at, key| Some(scaled(read::duration(at, key)?, time_scale));
    match at.get("model")?.text()? {
        "constant-vus" => {
            Some(LoadModel::ConstantVus { vus: read::whole(at, "vus")?, duration: duration(at, "duration")? })
        }
        "shared-iterations" => Some(LoadModel::SharedIterations {
            vus: read::whole(at, "vus")?,
            iterations: read::whole(at, "iterations")?,
            max_duration: read::duration(at, "max_duration"),
        }),
        _ => match at.get("steps") {
            Some(steps) => stepped(steps, duration(steps, "every")?, report),
            None => {
                let stages = at.get("stages")?;
                let stage = |at| {
                    Some(Stage {
                        duration: duration(at, "duration")?,
                        target: read::whole(at, "target")?,
                        shape: StageShape::Linear,
                    })
                };
                let start_vus = read::whole(at, "start_vus").unwrap_or(1);
                ramping(stages, start_vus, stages.items().map(stage).collect::<Option<_>>()?, report)
            }
        },
    }
}

fn ramping(at: At<'_>, start_vus: u32, stages: Vec<Stage>, report: &mut Report) -> Option<LoadModel> {
    if start_vus == 0 && stages.iter().all(|stage| stage.target == 0) {
        report.add(at.key_place(), at.path(), Wrong::new("expected a user in at least one stage, found none"));
        return None;
    }
    Some(LoadModel::RampingVus { start_vus, stages })
}

/// Levels `from`, `from + add`, … below `to`, and `to` itself.
fn stepped(at: At<'_>, every: Duration, report: &mut Report) -> Option<LoadModel> {
    let level = |key| read::whole::<u32>(at, key);
    let (from, add, to) = (level("from")?, level("add")?, level("to")?);
    if from > to {
        let wrong = Wrong::new(format!("expected `from` to be `to` or less, found {from} and {to}"));
        report.add(at.key_place(), at.path(), wrong);
        return None;
    }
    let below = u64::from((to - from).div_ceil(add.max(1)));
    if below >= STEPS_MAX {
        let wrong = Wrong::new(format!("expected at most {STEPS_MAX} steps, found {}", below + 1));
        report.add(at.key_place(), at.path(), wrong);
        return None;
    }
    let levels = (0..below as u32).map(|step| from + step * add).chain([to]);
    let stages = levels.map(|target| Stage { duration: every, target, shape: StageShape::Step }).collect();
    Some(LoadModel::RampingVus { start_vus: from, stages })
}

fn scaled(duration: Duration, time_scale: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * time_scale).unwrap_or(duration)
}
