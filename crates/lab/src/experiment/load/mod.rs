//! From the load of the file to the plan that the load engine runs, or to the command that makes the load instead.

pub(crate) mod address;
pub(crate) mod agents;
pub(crate) mod checks;
pub(crate) mod client_addresses;
pub(crate) mod command;
mod conditions;
pub(crate) mod data;
pub(crate) mod flow;
pub(crate) mod model;
mod ramp;
pub(crate) mod request;
pub(crate) mod target;
mod variables;

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_model::load::{Arrivals, Connections, LoadPlan, Protocol, Retry, Scenario, Tracing};

use super::bound::{Bindings, BoundLoad};
use super::document::at::At;
use super::error::Report;
use super::grammar::check::{Pass, check};
use super::grammar::complete::complete;
use super::grammar::key::{Key, default, optional, parameter, required};
use super::grammar::kind::{self, Whole, Words};
use super::grammar::shape::{Field, Map, NamedMap, Rule, Shape};
use super::grammar::values::{DURATION, FLAG, MANY, POSITIVE_DURATION};
use super::language::Language;
use super::placeholders::names::Values;
use agents::{AGENTS, WHEN_AGENT_LOST};
use client_addresses::CLIENT_ADDRESSES;
use command::{COMMAND, CWD, ENV, LIMIT, RESULTS};
use data::{DATA_SOURCES, DataFiles, Sources};
use flow::{PACE, SCENARIO, THINK_TIME};
use model::scaled;
use target::{TARGET, TLS, Target};

const PROTOCOL: Key<Protocol> = Key::default(
    "protocol",
    parameter(&Words(&[("http1", Protocol::Http1), ("http2", Protocol::Http2)])),
    "http1",
    "The protocol: HTTP/1.1, or HTTP/2 (without TLS by prior knowledge, h2c).",
);

const WARMUP: Key<Duration> =
    Key::default("warmup", DURATION, "0s", "How long the first load level is held before anything counts.");

const TIMEOUT: Key<Duration> = Key::default(
    "timeout",
    POSITIVE_DURATION,
    "30s",
    "The timeout of a request, connecting included. A longer request is an error.",
);

const DRAIN: Key<Duration> = Key::optional(
    "drain",
    DURATION,
    "How long to wait for outstanding responses after the load's end. Without it, as long as `timeout` allows.",
);

const RETRY: Key<Retry> = Key::default(
    "retry",
    parameter(&Words(&[("idempotent", Retry::Idempotent), ("never", Retry::Never)])),
    "idempotent",
    "Whether a request with an idempotent method is sent a second time if a kept connection breaks before its response.",
);

const TRACING: Field = default(
    "tracing",
    Shape::Either(&[FLAG.shape(), Shape::Map(Map::new(&[SAMPLE.field]))]),
    "true",
    "Whether requests carry a W3C `traceparent` header.",
);

const SAMPLE: Key<f64> = Key::default(
    "sample",
    parameter(&kind::SHARE),
    "1",
    "The share of requests whose trace is sampled, 0 to 1; services are told that the others are not.",
);

const CONNECTIONS: Key<Connections> = Key::default(
    "connections",
    parameter(&Words(&[("keep-alive", Connections::KeepAlive), ("per-request", Connections::PerRequest)])),
    "keep-alive",
    "Whether a connection carries a user's next request or is closed after each response.",
);

const THREADS: Key<usize> = Key::optional(
    "threads",
    parameter(&Whole::new(1, 1024)),
    "Threads that send, at most as many as there are cores. Without it, half of the cores. Agents have an option for theirs.",
);

pub(super) const SCENARIOS: Field = optional(
    "scenarios",
    Shape::Named(NamedMap { what: "scenario", name: &kind::NAME, value: &SCENARIO, least: 1, most: MANY }),
    "Populations of virtual users by name. All run at the same time.",
);

/// The whole section.
const LOAD_SHAPE: Shape = Shape::Map(Map {
    fields: &[
        TARGET.field,
        PROTOCOL.field,
        TLS,
        CLIENT_ADDRESSES,
        WARMUP.field,
        TIMEOUT.field,
        DRAIN.field,
        RETRY.field,
        TRACING,
        CONNECTIONS.field,
        THREADS.field,
        AGENTS.field,
        WHEN_AGENT_LOST.field,
        SCENARIOS,
        DATA_SOURCES,
        COMMAND,
        ENV,
        CWD.field,
        RESULTS.field,
        LIMIT.field,
    ],
    rules: &[
        Rule::ExactlyOne(&[SCENARIOS.given(), COMMAND.given()]),
        Rule::Needs(SCENARIOS.name(), TARGET.name()),
        Rule::OnlyBeside(&[WHEN_AGENT_LOST.name()], AGENTS.name()),
        Rule::OnlyBeside(&[ENV.name(), CWD.name(), RESULTS.name(), LIMIT.name()], COMMAND.name()),
        Rule::OnlyBeside(
            &[
                PROTOCOL.name(),
                TLS.name(),
                CLIENT_ADDRESSES.name(),
                WARMUP.name(),
                TIMEOUT.name(),
                DRAIN.name(),
                RETRY.name(),
                TRACING.name(),
                CONNECTIONS.name(),
                THREADS.name(),
                AGENTS.name(),
                DATA_SOURCES.name(),
            ],
            SCENARIOS.name(),
        ),
    ],
    others: None,
});

pub(super) const LOAD: Field = required("load", LOAD_SHAPE, "What is sent to the system.");

/// Builds the load; `None` after an error that was reported, now or before.
pub(super) fn build(
    root: At<'_>,
    language: Language,
    values: &Values<'_>,
    bindings: &Bindings,
    files: &mut DataFiles<'_>,
    report: &mut Report,
) -> Option<BoundLoad> {
    let at = root.get(&LOAD)?;
    let node = complete(at.node, &LOAD_SHAPE, values);
    let at = at.with(&node);
    check(at, &LOAD_SHAPE, Pass::Bound, report);
    let target = Target::find(at, root, language, bindings, report);
    if at.has(&COMMAND) {
        return command::build(at, files.dir).map(BoundLoad::Command);
    }
    plan(at, target, values, bindings, files, report).map(BoundLoad::Plan)
}

fn plan(
    at: At<'_>,
    target: Option<Target>,
    values: &Values<'_>,
    bindings: &Bindings,
    files: &mut DataFiles<'_>,
    report: &mut Report,
) -> Option<LoadPlan> {
    let sources = match at.get(&DATA_SOURCES) {
        Some(data) => Sources::build(data, files, report),
        None if LOAD_SHAPE.has_strangers(at.node) => Sources::misspelt(),
        None => Sources::default(),
    };
    let host = target.as_ref().map_or("", |target| &target.host);
    let scenarios = scenarios(at, values, host, &sources, bindings.time_scale, report);
    let tls = target.as_ref().map(|target| target.tls(at, files.dir, report));
    let timeout = at.read(&TIMEOUT)?;
    let client_addresses = target.as_ref().and_then(|target| target.client_addresses(at, report));
    Some(LoadPlan {
        targets: target?.addresses,
        client_addresses: client_addresses?,
        protocol: at.read(&PROTOCOL)?,
        tls: tls?.ok()?,
        scenarios: scenarios?,
        data: sources.into_plan(),
        tracing: tracing(at.get(&TRACING)?, bindings),
        timeout,
        drain: at.read(&DRAIN).unwrap_or(timeout),
        retry: at.read(&RETRY)?,
        seed: bindings.seed,
        threads: threads(at),
        connections: at.read(&CONNECTIONS)?,
    })
}

/// How the iterations of a trial's open models arrive; `None` without one, and if they differ.
pub(super) fn arrivals(root: At<'_>, values: &Values<'_>) -> Option<Arrivals> {
    let at = root.get(&LOAD)?;
    let node = complete(at.node, &LOAD_SHAPE, values);
    let at = at.with(&node);
    let scenarios = at.get(&SCENARIOS)?;
    let taking_part = conditions::taking_part(&scenarios, values, &mut Report::new(""));
    let mut all = taking_part.iter().filter_map(|(_, scenario)| model::arrivals(*scenario));
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// Reports unknown parameters in the conditions of scenarios.
pub(super) fn check_conditions(root: At<'_>, parameters: &BTreeMap<String, String>, report: &mut Report) {
    let Some(load) = root.get(&LOAD) else { return };
    if let Some(scenarios) = load.get(&SCENARIOS) {
        conditions::check(scenarios, parameters, report);
    }
}

fn threads(at: At<'_>) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Half of the machine stays with the system under load.
    at.read(&THREADS).unwrap_or((cores / 2).max(1)).min(cores)
}

fn tracing(at: At<'_>, bindings: &Bindings) -> Option<Tracing> {
    let sample = match at.value(FLAG) {
        Some(is_on) => is_on.then_some(1.0)?,
        None => at.read(&SAMPLE)?,
    };
    Some(Tracing { sample, tag: bindings.trace_tag() })
}

fn scenarios(
    load: At<'_>,
    values: &Values<'_>,
    host: &str,
    sources: &Sources,
    time_scale: f64,
    report: &mut Report,
) -> Option<Vec<Scenario>> {
    let warmup = scaled(load.read(&WARMUP)?, time_scale);
    let scenarios = load.get(&SCENARIOS)?;
    let built: Vec<Option<Scenario>> = conditions::taking_part(&scenarios, values, report)
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
                think_time: at.read(&THINK_TIME)?,
                pace: at.read(&PACE),
            })
        })
        .collect();
    built.into_iter().collect()
}
