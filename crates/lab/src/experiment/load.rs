//! From the load of the file to the plan that the load engine runs, or to the command that makes the load instead.

use std::path::Path;
use std::time::Duration;

use narrows_model::load::{Connections, LoadPlan, Protocol, Retry, Scenario, Tracing};

use super::addresses::Range;
use super::bound::{Bindings, BoundLoad, Results};
use super::check::{Pass, check};
use super::complete::complete;
use super::data::{DATA, Files, Sources};
use super::error::Report;
use super::flow::{PACE, SCENARIO, THINK_TIME};
use super::grammar::{self, DURATION, FLAG, LISTED_MAX, MANY, POSITIVE_DURATION};
use super::key::{Key, Value, default, literal, optional, parameter, trial};
use super::kind::{self, Whole, Words};
use super::model::scaled;
use super::names::Values;
use super::shape::{Field, Map, Named, Rule, Scope, Shape};
use super::target::{TLS_SHAPE, Target};
use super::tree::At;
use super::{command, flow, model, when};

const TEXT: Value<String> = trial(&kind::TEXT);

pub(super) const TARGET: Key<String> = Key::optional(
    "target",
    literal(&kind::TARGET),
    "A service of this file, or `http://host:port` or `https://host:port` of a system that already runs. Users are spread over a \
     service's replicas.",
);

const PROTOCOL: Key<Protocol> = Key::default(
    "protocol",
    parameter(&Words(&[("http1", Protocol::Http1), ("http2", Protocol::Http2)])),
    "http1",
    "The protocol: HTTP/1.1, or HTTP/2 (without TLS by prior knowledge, h2c).",
);

pub(super) const TLS: Field = optional(
    "tls",
    TLS_SHAPE,
    "How the connection is encrypted and what is verified. Without it, `{}` with `https://`, else no TLS.",
);

/// An item of `client_addresses`.
pub(super) const ADDRESSES: Value<Range> = parameter(&kind::ADDRESSES);

pub(super) const CLIENT_ADDRESSES: Field = optional(
    "client_addresses",
    Shape::List { item: &ADDRESSES.shape(), least: 1, most: LISTED_MAX },
    "The addresses to connect from, which users take in turn: single ones, `FIRST-LAST` or `ADDRESS/BITS`. \
     Without it, the kernel chooses.",
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
    "Threads that send, at most as many as there are cores. Without it, half of the cores.",
);

pub(super) const SCENARIOS: Field = optional(
    "scenarios",
    Shape::Named(Named { what: "scenario", name: &kind::NAME, value: &SCENARIO, least: 1, most: MANY }),
    "Populations of virtual users by name. All run at the same time.",
);

pub(super) const DATA_SOURCES: Field = optional(
    "data",
    Shape::Named(Named { what: "data", name: &kind::NAME, value: &DATA, least: 0, most: MANY }),
    "Values by name that `{{name}}` in requests draws from, one row for each iteration.",
);

pub(super) const COMMAND: Field = optional(
    "command",
    Shape::Arguments(Scope::Trial),
    "A program that makes the load instead, and its arguments, as a list. It does not run in a shell.",
);

pub(super) const ENV: Field = optional(
    "env",
    Shape::Named(Named {
        what: "environment variable",
        name: &kind::ENVIRONMENT_NAME,
        value: &TEXT.shape(),
        least: 0,
        most: LISTED_MAX,
    }),
    "Environment variables of `command`, beside those that it inherits and those that Narrows sets. Those given here win.",
);

pub(super) const CWD: Key<String> = Key::optional(
    "cwd",
    TEXT,
    "The folder that `command` is started in, relative to the experiment file's folder, which it is without this.",
);

pub(super) const RESULTS: Key<Results> = Key::optional(
    "results",
    literal(&Words(&[("k6-summary", Results::K6Summary), ("trace-roots", Results::TraceRoots)])),
    "Where the figures of `command` come from: the summary that k6 exports, or the root spans of the traces that it begins. \
     Without it, `k6-summary` when the program is `k6`, else `trace-roots`.",
);

pub(super) const LIMIT: Key<Duration> = Key::optional(
    "duration",
    POSITIVE_DURATION,
    "How long `command` may run before it is ended; `--time-scale` does not change it. Without it, there is no limit.",
);

/// The whole section.
pub(super) const LOAD_SHAPE: Shape = Shape::Map(Map {
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
                DATA_SOURCES.name(),
            ],
            SCENARIOS.name(),
        ),
    ],
    others: None,
});

/// Builds the load. None if an error was reported, now or before.
pub(super) fn build(
    root: At<'_>,
    values: &Values<'_>,
    bindings: &Bindings,
    (dir, files): (&Path, &mut Files),
    report: &mut Report,
) -> Option<BoundLoad> {
    let at = root.get(&grammar::LOAD)?;
    let node = complete(at.node, &LOAD_SHAPE, values);
    let at = at.with(&node);
    check(at, &LOAD_SHAPE, Pass::Bound, report);
    let target = Target::find(at, root, bindings, report);
    if at.has(&COMMAND) {
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
    (load, values): (At<'_>, &Values<'_>),
    host: &str,
    sources: &Sources,
    time_scale: f64,
    report: &mut Report,
) -> Option<Vec<Scenario>> {
    let warmup = scaled(load.read(&WARMUP)?, time_scale);
    let scenarios = load.get(&SCENARIOS)?;
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
                think_time: at.read(&THINK_TIME)?,
                pace: at.read(&PACE),
            })
        })
        .collect();
    built.into_iter().collect()
}
